//! One client of a case: its connection, its session, and what it was told.
//!
//! This version of the SDK can be listened to only once the session is there;
//! what came before is asked for.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};

use github_copilot_sdk::session::Session;
use github_copilot_sdk::subscription::{EventSubscription, RecvError};
use github_copilot_sdk::{Client, Error, ResumeSessionConfig, SessionConfig, SessionEvent};
use serde_json::Value;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub struct Seat {
    pub client: Client,
    session: Mutex<Option<Arc<Session>>>,
    events: watch::Sender<Vec<SessionEvent>>,
    listener: Mutex<Option<JoinHandle<()>>>,
}

impl Seat {
    pub fn new(client: Client) -> Self {
        Self {
            client,
            session: Mutex::default(),
            events: watch::Sender::default(),
            listener: Mutex::default(),
        }
    }

    pub async fn create(&self, config: SessionConfig) -> Result<Arc<Session>, Error> {
        self.sit(self.client.create_session(config).await?).await
    }

    pub async fn resume(&self, config: ResumeSessionConfig) -> Result<Arc<Session>, Error> {
        self.sit(self.client.resume_session(config).await?).await
    }

    async fn sit(&self, session: Session) -> Result<Arc<Session>, Error> {
        let told = session.subscribe();
        let mut before = session.get_messages().await?;
        let start = before
            .iter()
            .rposition(|e| ["session.start", "session.resume"].contains(&e.event_type.as_str()));
        before.drain(..start.unwrap_or(0));
        let known = before.iter().map(|e| e.id.clone()).collect();
        self.events.send_replace(before);
        let listener = tokio::spawn(listen(told, known, self.events.clone()));
        *self.listener.lock().unwrap() = Some(listener);
        let session = Arc::new(session);
        *self.session.lock().unwrap() = Some(session.clone());
        Ok(session)
    }

    pub fn session(&self) -> Option<Arc<Session>> {
        self.session.lock().unwrap().clone()
    }

    pub fn events(&self) -> Vec<SessionEvent> {
        self.events.borrow().clone()
    }

    /// Returns once `count` events of a type were seen, for one call if named.
    pub async fn until(&self, event: &str, call: &str, count: usize) {
        let fits = |e: &&SessionEvent| {
            e.event_type == event && (call.is_empty() || e.data["toolCallId"] == call)
        };
        let mut events = self.events.subscribe();
        // The seat itself keeps the sender, so the wait cannot fail.
        let _ = events
            .wait_for(|all| all.iter().filter(fits).count() >= count)
            .await;
    }

    /// Ends the client and returns all it was told, in order.
    pub async fn leave(&self) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        self.client.stop().await?;
        // The listener ends with the session, which ends with its last holder.
        let session = self.session.lock().unwrap().take();
        if let Some(session) = session {
            session.stop_event_loop().await;
        }
        let listener = self.listener.lock().unwrap().take();
        if let Some(listener) = listener {
            listener.await?;
        }
        Ok(serde_json::to_value(self.events())?)
    }
}

/// Keeps what a session tells, until it ends.
async fn listen(
    mut told: EventSubscription,
    known: HashSet<String>,
    events: watch::Sender<Vec<SessionEvent>>,
) {
    loop {
        match told.recv().await {
            Ok(event) if known.contains(&event.id) => {}
            Ok(event) => {
                eprintln!("  {}", event.event_type);
                events.send_modify(|all| all.push(event));
            }
            Err(RecvError::Closed) => return,
            Err(end) => panic!("this host was too slow: {end}"),
        }
    }
}
