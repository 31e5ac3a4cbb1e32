//! What is said between the runner and a host, and how.

use std::collections::HashMap;
use std::error::Error;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A case as the runner hands it out.
#[derive(Deserialize)]
pub struct Order {
    pub over: String,
    #[serde(default)]
    pub server: Server,
    pub home: String,
    pub model: Model,
    pub system: String,
    pub streaming: bool,
    pub tools: Vec<ToolInfo>,
    #[serde(default)]
    pub handlers: Option<HashMap<String, Vec<Step>>>,
    #[serde(default)]
    pub permissions: Option<HashMap<String, Vec<Step>>>,
    pub host: Vec<Step>,
}

/// A runtime to join, where the case has one (`over: server`).
#[derive(Deserialize, Default)]
pub struct Server {
    pub url: String,
    pub token: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Model {
    pub base_url: String,
    pub name: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
pub struct ToolInfo {
    pub name: String,
    pub description: String,
    pub parameters: Option<Value>,
    pub terminal: bool,
    pub defer_never: bool,
}

/// One thing to do.
#[derive(Deserialize, Clone, Default)]
#[serde(default)]
pub struct Step {
    #[serde(rename = "do")]
    pub name: String,
    pub client: String,
    #[serde(rename = "as")]
    pub label: String,
    pub prompt: String,
    pub mode: String,
    #[serde(rename = "type")]
    pub event: String,
    pub call: String,
    pub count: usize,
    pub gate: String,
    pub tools: Option<Vec<String>>,
    #[serde(rename = "continue")]
    pub continues: bool,
    pub text: String,
    pub kind: String,
}

/// The outcome of one step.
#[derive(Serialize)]
pub struct Entry {
    pub at: String,
    #[serde(rename = "do")]
    pub name: String,
    #[serde(rename = "as")]
    pub label: String,
    pub value: Value,
    pub error: String,
}

/// What the runner gets back.
#[derive(Serialize)]
pub struct Observation {
    pub log: Vec<Entry>,
    pub events: HashMap<String, Value>,
    pub error: String,
}

/// The next case, or none where all are played.
pub async fn next() -> Result<Option<Order>, Box<dyn Error + Send + Sync>> {
    match ask("next", None).await? {
        Some(text) => Ok(Some(serde_json::from_str(&text)?)),
        None => Ok(None),
    }
}

/// Hands in what was seen of a case.
pub async fn report(observation: &Observation) -> Result<(), Box<dyn Error + Send + Sync>> {
    ask("result", Some(serde_json::to_string(observation)?)).await?;
    Ok(())
}

/// Talks to the runner: a GET, or a POST where there is a body. Returns nothing
/// where the runner had nothing to say.
pub async fn ask(
    path: &str,
    body: Option<String>,
) -> Result<Option<String>, Box<dyn Error + Send + Sync>> {
    let url = format!("{}/{path}", std::env::var("CONFORMANCE_URL")?);
    let answer = move || {
        let mut reply = match body {
            Some(body) => ureq::post(&url).send(body)?,
            None => ureq::get(&url).call()?,
        };
        let some = reply.status() == 200;
        let text = reply.body_mut().read_to_string()?;
        Ok(some.then_some(text))
    };
    tokio::task::spawn_blocking(answer).await?
}
