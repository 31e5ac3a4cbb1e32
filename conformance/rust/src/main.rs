//! The Rust host: plays the cases it gets from the runner and reports what it
//! saw. It judges nothing. See ../../README.md for the steps.

mod desk;
mod handlers;
mod player;
mod sdk;
mod seat;

use player::Player;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    while let Some(order) = desk::next().await? {
        let observation = Player::new(order).play().await;
        desk::report(&observation).await?;
    }
    std::process::exit(0) // parked handlers wait for ever
}
