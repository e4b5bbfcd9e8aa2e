//! The scenarios with the Rust client 0.10.0.

mod generation;
#[path = "../../scenarios/mod.rs"]
mod scenarios;

#[tokio::main]
async fn main() {
    scenarios::run("0.10.0").await;
}
