//! Plays one case.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use github_copilot_sdk::SessionId;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::desk::{self, Entry, Observation, Order, Step};
use crate::seat::Seat;

pub type Fault = Box<dyn std::error::Error + Send + Sync>;

/// Handlers run at the same time as the main steps, so what they share is behind
/// locks. No lock is held over an await.
pub struct Player {
    pub order: Order,
    log: Mutex<Vec<Entry>>,
    pub seats: Mutex<BTreeMap<String, Arc<Seat>>>,
    gates: Mutex<HashMap<String, watch::Sender<bool>>>,
    pub session: Mutex<Option<SessionId>>,
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

    /// The gate of this name; open_gate opens it for good.
    fn gate(&self, name: &str) -> watch::Sender<bool> {
        let mut gates = self.gates.lock().unwrap();
        gates.entry(name.to_string()).or_default().clone()
    }

    /// The request id under which the runtime asked for a call.
    pub fn request_of(&self, call: &str) -> Result<String, Fault> {
        let seats = self.seats.lock().unwrap();
        seats
            .values()
            .flat_map(|seat| seat.events())
            .find(|e| e.event_type == "external_tool.requested" && e.data["toolCallId"] == call)
            .and_then(|e| Some(e.data["requestId"].as_str()?.to_string()))
            .ok_or_else(|| format!("nobody was asked for call {call}").into())
    }
}
