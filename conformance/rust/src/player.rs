//! Plays one case.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use github_copilot_sdk::rpc::{HandlePendingToolCallRequest, HistoryClearContextRequest};
use github_copilot_sdk::session::Session;
use github_copilot_sdk::{
    Client, ClientOptions, DeliveryMode, MessageOptions, ProviderConfig, ResumeSessionConfig,
    SessionConfig, SessionId, SystemMessageConfig, ToolSet, Transport,
};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::desk::{self, Entry, Observation, Order, Step};
use crate::handlers::Handlers;
use crate::seat::Seat;

type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Handlers run at the same time as the main steps, so what they share is behind
/// locks. No lock is held over an await.
pub struct Player {
    pub order: Order,
    log: Mutex<Vec<Entry>>,
    seats: Mutex<BTreeMap<String, Arc<Seat>>>,
    gates: Mutex<HashMap<String, watch::Sender<bool>>>,
    session: Mutex<Option<SessionId>>,
}

impl Player {
    pub fn new(order: Order) -> Arc<Self> {
        Arc::new(Self {
            order,
            log: Mutex::default(),
            seats: Mutex::default(),
            gates: Mutex::default(),
            session: Mutex::default(),
        })
    }

    pub async fn play(self: Arc<Self>) -> Observation {
        self.run("host", "a", &self.order.host).await;
        let seats = self.seats.lock().unwrap().clone();
        let mut events = HashMap::new();
        let mut faults = Vec::new();
        for (name, seat) in seats {
            match seat.leave().await {
                Ok(seen) => _ = events.insert(name, seen),
                Err(fault) => faults.push(format!("stop {name}: {fault}")),
            }
        }
        Observation {
            log: std::mem::take(&mut *self.log.lock().unwrap()),
            events,
            error: faults.join("\n"),
        }
    }

    /// Runs steps until one of them ends a handler, and returns that one.
    pub async fn run(self: &Arc<Self>, at: &str, client: &str, steps: &[Step]) -> Option<Step> {
        for step in steps {
            if ["return", "throw", "decide"].contains(&step.name.as_str()) {
                return Some(step.clone());
            }
            let mut step = step.clone();
            if step.client.is_empty() {
                step.client = client.to_string();
            }
            eprintln!("{at}: {}", step.name); // shown only where the case hangs
            let (value, error) = match self.step(&step).await {
                Ok(value) => (value, String::new()),
                Err(fault) => (Value::Null, fault.to_string()),
            };
            self.log.lock().unwrap().push(Entry {
                at: at.to_string(),
                name: step.name,
                label: step.label,
                value,
                error,
            });
        }
        None
    }

    async fn step(self: &Arc<Self>, step: &Step) -> Result<Value, Fault> {
        match step.name.as_str() {
            "create" | "resume" => return Ok(json!(self.open(step).await?)),
            "wait_gate" => {
                _ = self
                    .gate(&step.gate)
                    .subscribe()
                    .wait_for(|open| *open)
                    .await
            }
            "open_gate" => _ = self.gate(&step.gate).send_replace(true),
            "wait_model" => _ = desk::ask(&format!("model/wait/{}", step.count), None).await?,
            "release_model" => {
                let path = format!("model/release/{}", step.count);
                desk::ask(&path, Some(String::new())).await?;
            }
            "park" => std::future::pending().await, // a handler that never returns
            _ => {
                let seat = self.seats.lock().unwrap().get(&step.client).cloned();
                let Some((seat, session)) = seat.and_then(|s| s.session().map(|o| (s, o))) else {
                    return Err(format!("client {} has no session", step.client).into());
                };
                return self.act(&seat, &session, step).await;
            }
        }
        Ok(Value::Null)
    }

    /// A step on an open session.
    async fn act(&self, seat: &Seat, session: &Session, step: &Step) -> Result<Value, Fault> {
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
    async fn open(self: &Arc<Self>, step: &Step) -> Result<String, Fault> {
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

    /// The gate of this name; open_gate opens it for good.
    fn gate(&self, name: &str) -> watch::Sender<bool> {
        let mut gates = self.gates.lock().unwrap();
        gates.entry(name.to_string()).or_default().clone()
    }

    /// The request id under which the runtime asked for a call.
    fn request_of(&self, call: &str) -> Result<String, Fault> {
        let seats = self.seats.lock().unwrap();
        seats
            .values()
            .flat_map(|seat| seat.events())
            .find(|e| e.event_type == "external_tool.requested" && e.data["toolCallId"] == call)
            .and_then(|e| Some(e.data["requestId"].as_str()?.to_string()))
            .ok_or_else(|| format!("nobody was asked for call {call}").into())
    }
}
