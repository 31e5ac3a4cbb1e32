//! A host whose agent can clear its own context: the example of the
//! documentation in Rust, run against Transom. COPILOT_CLI_PATH says which
//! runtime to start; COPILOT_PROVIDER_BASE_URL and COPILOT_MODEL say which model
//! it talks to.

use std::sync::{Arc, OnceLock};

use github_copilot_sdk::handler::ApproveAllHandler;
use github_copilot_sdk::rpc::HistoryClearContextRequest;
use github_copilot_sdk::session::Session;
use github_copilot_sdk::tool::define_tool;
use github_copilot_sdk::{Client, ClientOptions, DeferMode, SessionConfig, ToolResult};
use schemars::JsonSchema;
use serde::Deserialize;

/// The arguments of the tool; the schema is derived from them.
#[derive(Deserialize, JsonSchema)]
struct ClearArgs {
    prompt: String,
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let client = Client::start(ClientOptions::default()).await?;
    let session: Arc<OnceLock<Session>> = Arc::default();

    let own = session.clone();
    let clear_context = define_tool(
        "clear_context",
        "Clear the conversation and start a fresh context window",
        move |_call, ClearArgs { prompt }| {
            let own = own.clone();
            async move {
                // Back into the runtime while it waits for this very handler.
                let session = own.get().expect("the session made this call");
                let request = HistoryClearContextRequest { prompt };
                let cleared = session.rpc().history().clear_context(request).await?;
                let text = format!("Cleared {} messages.", cleared.messages_cleared);
                println!("{text}");
                Ok(ToolResult::Text(text))
            }
        },
    )
    .with_is_terminal(true) // success ends the turn: the result is not fed back
    .with_defer(DeferMode::Never); // the model is always told of this tool

    let config = SessionConfig::default()
        .with_permission_handler(Arc::new(ApproveAllHandler))
        .with_tools([clear_context]);
    let created = client.create_session(config).await?;
    let session = session.get_or_init(|| created);

    // The wait ends after the seeded turn, so this is the answer from the fresh
    // window.
    let prompt = r#"Call clear_context with the prompt "Reply with exactly FRESH_CONTEXT." now."#;
    if let Some(answer) = session.send_and_wait(prompt).await? {
        println!("{}", answer.data["content"].as_str().unwrap_or_default());
    }

    session.disconnect().await?;
    client.stop().await?;
    Ok(())
}
