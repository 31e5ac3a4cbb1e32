//! One client of a case: its connection, its session, and what it was told.

use std::sync::{Arc, Mutex};

use github_copilot_sdk::session::{PreparedSession, Session};
use github_copilot_sdk::subscription::RecvErrorKind;
use github_copilot_sdk::{
    Client, Error, EventSubscription, ResumeSessionConfig, SessionConfig, SessionEvent,
};
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

    /// Makes a session and listens to it from its very first event.
    pub async fn create(&self, config: SessionConfig) -> Result<Arc<Session>, Error> {
        self.start(self.client.prepare_session(config)?).await
    }

    /// The same with a session that there is already.
    pub async fn resume(&self, config: ResumeSessionConfig) -> Result<Arc<Session>, Error> {
        self.start(self.client.prepare_resume_session(config)?)
            .await
    }

    async fn start(&self, prepared: PreparedSession) -> Result<Arc<Session>, Error> {
        let listener = tokio::spawn(listen(prepared.subscribe(), self.events.clone()));
        *self.listener.lock().unwrap() = Some(listener);
        let session = Arc::new(prepared.start().await?);
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
        let listener = self.listener.lock().unwrap().take();
        if let Some(listener) = listener {
            listener.await?;
        }
        Ok(serde_json::to_value(self.events())?)
    }
}

/// Keeps what a session tells, until it ends.
async fn listen(mut told: EventSubscription, events: watch::Sender<Vec<SessionEvent>>) {
    loop {
        match told.recv().await {
            Ok(event) => {
                eprintln!("  {}", event.event_type);
                events.send_modify(|all| all.push(event));
            }
            Err(end) => match end.kind() {
                RecvErrorKind::Closed => return,
                _ => panic!("this host was too slow: {end}"),
            },
        }
    }
}
