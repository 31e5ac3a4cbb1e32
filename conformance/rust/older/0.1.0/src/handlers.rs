//! The handler of everything a session asks: the call's id says what it does.

use std::sync::Arc;

use async_trait::async_trait;
use github_copilot_sdk::handler::{PermissionResult, SessionHandler};
use github_copilot_sdk::tool::try_tool_parameters;
use github_copilot_sdk::{
    PermissionRequestData, RequestId, SessionId, Tool, ToolInvocation, ToolResult,
    ToolResultExpanded,
};
use serde_json::json;

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
            let mut tool = Tool::new(&info.name);
            tool.description = info.description.clone();
            if let Some(schema) = &info.parameters {
                tool.parameters = try_tool_parameters(schema.clone()).unwrap_or_default();
            }
            tool
        });
        make.collect()
    }

    async fn play(&self, at: String, steps: Vec<Step>) -> Step {
        let Self { player, client } = self.clone();
        let steps = tokio::spawn(async move { player.run(&at, &client, &steps).await });
        steps.await.expect("steps do not panic").unwrap_or_default()
    }
}

#[async_trait]
impl SessionHandler for Handlers {
    async fn on_external_tool(&self, call: ToolInvocation) -> ToolResult {
        let scripted = self.player.order.handlers.as_ref();
        let Some(steps) = scripted.and_then(|all| all.get(&call.tool_call_id)) else {
            return ToolResult::Text("ok".into());
        };
        let end = self.play(call.tool_call_id, steps.clone()).await;
        if end.kind.is_empty() {
            return ToolResult::Text(end.text);
        }
        ToolResult::Expanded(ToolResultExpanded {
            text_result_for_llm: end.text,
            result_type: end.kind,
            session_log: None,
            error: None,
        })
    }

    async fn on_permission_request(
        &self,
        _session: SessionId,
        _request: RequestId,
        data: PermissionRequestData,
    ) -> PermissionResult {
        let call = data.extra["permissionRequest"]["toolCallId"].as_str();
        let call = call.unwrap_or_default().to_string();
        let scripted = self.player.order.permissions.as_ref();
        let Some(steps) = scripted.and_then(|all| all.get(&call)) else {
            return PermissionResult::Approved;
        };
        let end = self.play(format!("{call}/permission"), steps.clone()).await;
        match end.kind.as_str() {
            "approve-once" => PermissionResult::Approved,
            "reject" if end.text.is_empty() => PermissionResult::Denied,
            "reject" => PermissionResult::Custom(json!({"kind": "reject", "feedback": end.text})),
            "user-not-available" => PermissionResult::UserNotAvailable,
            kind => panic!("this host does not know the decision {kind:?}"),
        }
    }
}
