//! What the player needs of the SDK. Older versions have a file of their own.

use std::sync::Arc;

use github_copilot_sdk::rpc::{HandlePendingToolCallRequest, HistoryClearContextRequest, HistoryTruncateRequest};
use github_copilot_sdk::session::Session;
use github_copilot_sdk::{
    Client, ClientOptions, DeliveryMode, MessageOptions, ProviderConfig, ResumeSessionConfig,
    SessionConfig, SystemMessageConfig, ToolSet, Transport,
};
use serde_json::{Value, json};

use crate::desk::{Order, Step};
use crate::handlers::Handlers;
use crate::player::{Fault, Player};
use crate::seat::Seat;

impl Player {
    /// A step on an open session.
    pub async fn act(&self, seat: &Seat, session: &Session, step: &Step) -> Result<Value, Fault> {
        let rpc = session.rpc();
        match step.name.as_str() {
            "send" => {
                let mut message = MessageOptions::new(&step.prompt);
                match step.mode.as_str() {
                    "enqueue" => message = message.with_mode(DeliveryMode::Enqueue),
                    "immediate" => message = message.with_mode(DeliveryMode::Immediate),
                    _ => {}
                }
                return Ok(json!(session.send(message).await?));
            }
            "send_and_wait" => {
                let answer = session.send_and_wait(&step.prompt).await?;
                return Ok(answer.map_or(Value::Null, |event| event.data["content"].clone()));
            }
            "clear" => {
                let prompt = step.prompt.clone();
                let request = HistoryClearContextRequest { prompt };
                return Ok(json!(rpc.history().clear_context(request).await?));
            }
            "truncate" => {
                let events = session.get_events().await?;
                let last = events.iter().rfind(|e| e.event_type == step.event);
                let event_id = last.ok_or("no event of the type")?.id.clone();
                let request = HistoryTruncateRequest { event_id };
                return Ok(json!(rpc.history().truncate(request).await?));
            }
            "answer" => {
                let request = HandlePendingToolCallRequest {
                    request_id: self.request_of(&step.call)?.into(),
                    result: Some(json!(step.text)),
                    error: None,
                };
                return Ok(json!(rpc.tools().handle_pending_tool_call(request).await?));
            }
            "get_events" => return Ok(json!(session.get_events().await?)),
            "get_mode" => return Ok(json!(rpc.mode().get().await?)),
            "get_model" => return Ok(json!(rpc.model().get_current().await?.model_id)),
            "wait_event" => seat.until(&step.event, &step.call, step.count.max(1)).await,
            "abort" => session.abort().await?,
            "disconnect" => session.disconnect().await?,
            "stop" => seat.client.stop().await?,
            // SIGKILL to a runtime of our own, a closed socket to one we joined
            "kill" => seat.client.force_stop(),
            other => return Err(format!("this host does not know the step {other}").into()),
        }
        Ok(Value::Null)
    }

    /// Seats a client and gives it a session: a new one, or the case's.
    pub async fn open(self: &Arc<Self>, step: &Step) -> Result<String, Fault> {
        let options = ClientOptions::new()
            .with_base_directory(&self.order.home)
            .with_transport(self.transport()?); // the binary is COPILOT_CLI_PATH
        let seat = Arc::new(Seat::new(Client::start(options).await?));
        self.seats
            .lock()
            .unwrap()
            .insert(step.client.clone(), seat.clone());
        let session = if step.name == "create" {
            seat.create(self.create(step)?).await?
        } else {
            loop {
                match seat.resume(self.resume(step)?).await {
                    // A runtime that was just killed may still hold the session
                    // for a moment.
                    Err(fault) if fault.to_string().contains("busy in process") => continue,
                    session => break session?,
                }
            }
        };
        *self.session.lock().unwrap() = Some(session.id().clone());
        Ok(session.id().to_string())
    }

    fn transport(&self) -> Result<Transport, Fault> {
        let Order { over, server, .. } = &self.order;
        Ok(match over.as_str() {
            "stdio" => Transport::Stdio,
            "tcp" => Transport::Tcp {
                port: 0,
                connection_token: None,
            },
            _ => {
                let (host, port) = server.url.split_once(':').ok_or("server.url has no port")?;
                Transport::External {
                    host: host.to_string(),
                    port: port.parse()?,
                    connection_token: Some(server.token.clone()),
                }
            }
        })
    }

    fn create(self: &Arc<Self>, step: &Step) -> Result<SessionConfig, Fault> {
        let handlers = self.handlers(step);
        Ok(SessionConfig::default()
            .with_model(&self.order.model.name)
            .with_provider(self.provider())
            .with_system_message(self.system())
            .with_available_tools(ToolSet::new().add_custom("*")?.into_vec()) // only ours
            .with_streaming(self.order.streaming)
            .with_tools(handlers.tools(step))
            .with_permission_handler(Arc::new(handlers)))
    }

    fn resume(self: &Arc<Self>, step: &Step) -> Result<ResumeSessionConfig, Fault> {
        let handlers = self.handlers(step);
        let id = self.session.lock().unwrap().clone();
        Ok(
            ResumeSessionConfig::new(id.ok_or("there is no session to resume")?)
                .with_model(&self.order.model.name)
                .with_provider(self.provider())
                .with_system_message(self.system())
                .with_available_tools(ToolSet::new().add_custom("*")?.into_vec())
                .with_streaming(self.order.streaming)
                .with_tools(handlers.tools(step))
                .with_permission_handler(Arc::new(handlers))
                .with_continue_pending_work(step.continues),
        )
    }

    fn handlers(self: &Arc<Self>, step: &Step) -> Handlers {
        Handlers {
            player: self.clone(),
            client: step.client.clone(),
        }
    }

    fn provider(&self) -> ProviderConfig {
        ProviderConfig::new(&self.order.model.base_url)
            .with_provider_type("openai")
            .with_api_key("none")
    }

    fn system(&self) -> SystemMessageConfig {
        SystemMessageConfig::new()
            .with_mode("replace")
            .with_content(&self.order.system)
    }
}
