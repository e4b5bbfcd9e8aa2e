//! The scenarios, the same for both generations of the client. What differs between them stands in each package's
//! `generation.rs`.

mod administration;
mod groups;
mod messages;
mod users;
mod world;

use std::fmt::Display;
use std::time::Duration;

use serde_json::json;
use world::World;

/// Why a scenario did not hold.
pub type Outcome = Result<(), String>;

const SCENARIO_TIMEOUT: Duration = Duration::from_secs(90);

/// Runs the scenarios of the command line: one JSON line each.
pub async fn run(version: &str) {
    let mut arguments = std::env::args().skip(1).collect::<Vec<_>>();
    let mut option = |name: &str| {
        let at = arguments.iter().position(|word| word == name).expect(name);
        arguments.drain(at..at + 2).nth(1).expect(name)
    };
    let transport = option("--transport");
    let (tcp, websocket) = (option("--tcp"), option("--websocket"));
    let (quic, http) = (option("--quic"), option("--http"));
    for name in arguments {
        let address = match transport.as_str() {
            "tcp" => format!("iggy+tcp://iggy:iggy@{tcp}"),
            "websocket" => format!("iggy+ws://iggy:iggy@{websocket}"),
            // Each of a consumer's tasks reconnects in its turn, and each waits this long after the one before.
            "quic" => format!("iggy+quic://iggy:iggy@{quic}?reconnection_reestablish_after=1s"),
            _ => format!("iggy+http://iggy:iggy@{http}"),
        };
        let world = World::new(address, transport == "http", format!("{name}-rust"));
        let outcome = match tokio::time::timeout(SCENARIO_TIMEOUT, scenario(&name, &world)).await {
            Ok(outcome) => outcome,
            Err(_) => Err(format!("not done within {SCENARIO_TIMEOUT:?}")),
        };
        let line = json!({
            "client": "rust",
            "version": version,
            "transport": transport,
            "scenario": name,
            "ok": outcome.is_ok(),
            "detail": outcome.err().unwrap_or_default(),
        });
        println!("{line}");
    }
}

async fn scenario(name: &str, world: &World) -> Outcome {
    match name {
        "system" => administration::system(world).await,
        "streams-and-topics" => administration::streams_and_topics(world).await,
        "partitions" => administration::partitions(world).await,
        "errors" => administration::errors(world).await,
        "partitioning" => messages::partitioning(world).await,
        "polling" => messages::polling(world).await,
        "payloads" => messages::payloads(world).await,
        "headers" => messages::headers(world).await,
        "consumer-offsets" => groups::consumer_offsets(world).await,
        "consumer-groups" => groups::consumer_groups(world).await,
        "restart" => groups::restart(world).await,
        "tokens" => users::tokens(world).await,
        "users" => users::users(world).await,
        "permissions" => users::permissions(world).await,
        _ => Err(format!("there is no scenario {name}")),
    }
}

/// Names the step that failed.
trait Step<T> {
    fn step(self, what: &str) -> Result<T, String>;
}

impl<T, E: Display> Step<T> for Result<T, E> {
    fn step(self, what: &str) -> Result<T, String> {
        self.map_err(|error| format!("{what}: {error}"))
    }
}

fn expect(condition: bool, what: &str) -> Outcome {
    if condition { Ok(()) } else { Err(what.to_owned()) }
}

fn expect_equal<T: PartialEq + std::fmt::Debug>(found: T, expected: T, what: &str) -> Outcome {
    expect(found == expected, &format!("{what}: expected {expected:?}, found {found:?}"))
}
