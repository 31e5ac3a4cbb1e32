//! The handlers of tools and permissions: the call's id says what they do.

use std::sync::Arc;

use async_trait::async_trait;
use github_copilot_sdk::handler::{PermissionHandler, PermissionResult};
use github_copilot_sdk::tool::ToolHandler;
use github_copilot_sdk::{
    DeferMode, Error, ErrorKind, PermissionRequestData, RequestId, SessionId, Tool, ToolInvocation,
    ToolResult, ToolResultExpanded,
};

use crate::desk::Step;
use crate::player::Player;

/// Handles what one client is asked.
#[derive(Clone)]
pub struct Handlers {
    pub player: Arc<Player>,
    pub client: String,
}

impl Handlers {
    /// Makes the tools that a create or resume step declares.
    pub fn tools(&self, step: &Step) -> Vec<Tool> {
        let declared = |name: &String| step.tools.iter().flatten().any(|t| t == name);
        let known = self.player.order.tools.iter();
        let make = known.filter(|info| declared(&info.name)).map(|info| {
            let mut tool = Tool::new(&info.name)
                .with_description(&info.description)
                .with_is_terminal(info.terminal)
                .with_handler(Arc::new(self.clone()));
            if let Some(schema) = &info.parameters {
                tool = tool.with_parameters(schema.clone());
            }
            if info.defer_never {
                tool = tool.with_defer(DeferMode::Never);
            }
            tool
        });
        make.collect()
    }

    /// Plays the steps of a handler in a task of their own: the SDK drops a
    /// handler whose call is over, and the case goes on.
    async fn play(&self, at: String, steps: Vec<Step>) -> Step {
        let Self { player, client } = self.clone();
        let steps = tokio::spawn(async move { player.run(&at, &client, &steps).await });
        steps.await.expect("steps do not panic").unwrap_or_default()
    }
}

#[async_trait]
impl ToolHandler for Handlers {
    async fn call(&self, call: ToolInvocation) -> Result<ToolResult, Error> {
        let scripted = self.player.order.handlers.as_ref();
        let Some(steps) = scripted.and_then(|all| all.get(&call.tool_call_id)) else {
            return Ok(ToolResult::Text("ok".into()));
        };
        let end = self.play(call.tool_call_id, steps.clone()).await;
        match (end.name.as_str(), end.kind.as_str()) {
            ("throw", _) => Err(Error::with_message(ErrorKind::InvalidConfig, end.text)),
            (_, "") => Ok(ToolResult::Text(end.text)),
            (_, kind) => Ok(ToolResult::Expanded(ToolResultExpanded::new(
                end.text, kind,
            ))),
        }
    }
}

#[async_trait]
impl PermissionHandler for Handlers {
    async fn handle(
        &self,
        _session: SessionId,
        _request: RequestId,
        data: PermissionRequestData,
    ) -> PermissionResult {
        let call = data.tool_call_id.unwrap_or_default();
        let scripted = self.player.order.permissions.as_ref();
        let Some(steps) = scripted.and_then(|all| all.get(&call)) else {
            return PermissionResult::approve_once();
        };
        let end = self.play(format!("{call}/permission"), steps.clone()).await;
        match end.kind.as_str() {
            "approve-once" => PermissionResult::approve_once(),
            "reject" => PermissionResult::reject((!end.text.is_empty()).then_some(end.text)),
            "user-not-available" => PermissionResult::user_not_available(),
            kind => panic!("this host does not know the decision {kind:?}"),
        }
    }
}
