//! The server under test as one transport reaches it.

use std::time::Duration;

use iggy::prelude::*;

use super::{Outcome, Step, expect};

pub const TOPIC: &str = "events";
/// How long a change may take to be seen.
const PATIENCE: Duration = Duration::from_secs(20);

pub struct World {
    /// Connection string with root's credentials.
    address: String,
    pub is_http: bool,
    /// Name of the scenario's own stream.
    pub name: String,
    pub stream: Identifier,
    pub topic: Identifier,
}

impl World {
    pub fn new(address: String, is_http: bool, name: String) -> Self {
        let stream = Identifier::named(&name).expect("a short name");
        let topic = Identifier::named(TOPIC).expect("a short name");
        World { address, is_http, name, stream, topic }
    }

    /// A client that logs in by itself, again after each reconnection; over HTTP it is told to.
    pub async fn connect(&self) -> Result<IggyClient, String> {
        self.connect_as("iggy", "iggy").await
    }

    pub async fn connect_as(&self, username: &str, password: &str) -> Result<IggyClient, String> {
        let address = self.address.replace("iggy:iggy@", &format!("{username}:{password}@"));
        let client = IggyClient::from_connection_string(&address).step("address")?;
        client.connect().await.step("connect")?;
        if self.is_http {
            client.login_user(username, password).await.step("login")?;
        }
        Ok(client)
    }

    /// A client that logs in with credentials of its own, or not at all.
    pub async fn login(&self, username: &str, password: &str) -> Result<IdentityInfo, IggyError> {
        let client = self.dial().await?;
        client.login_user(username, password).await
    }

    /// Root's client; a login on it replaces root's.
    pub async fn dial(&self) -> Result<IggyClient, IggyError> {
        let client = IggyClient::from_connection_string(&self.address)?;
        client.connect().await?;
        Ok(client)
    }

    /// The scenario's stream with one topic.
    pub async fn create_topic(&self, client: &IggyClient, partitions: u32) -> Outcome {
        client.create_stream(&self.name).await.step("create stream")?;
        crate::generation::create_topic(client, &self.stream, TOPIC, partitions).await.step("create topic")
    }

    pub async fn send(
        &self,
        client: &IggyClient,
        partitioning: &Partitioning,
        texts: &[String],
    ) -> Result<(), IggyError> {
        let mut messages = Vec::with_capacity(texts.len());
        for text in texts {
            messages.push(IggyMessage::builder().payload(text.clone().into()).build()?);
        }
        client.send_messages(&self.stream, &self.topic, partitioning, &mut messages).await?;
        Ok(())
    }

    pub async fn poll(
        &self,
        client: &IggyClient,
        partition: u32,
        strategy: PollingStrategy,
        count: u32,
        auto_commit: bool,
    ) -> Result<Vec<IggyMessage>, IggyError> {
        let consumer = Consumer::new(Identifier::numeric(1)?);
        let partition = Some(partition);
        let polled = client
            .poll_messages(&self.stream, &self.topic, partition, &consumer, &strategy, count, auto_commit)
            .await?;
        Ok(polled.messages)
    }
}

pub fn named(name: &str) -> Identifier {
    Identifier::named(name).expect("a short name")
}

pub fn numeric(number: u32) -> Identifier {
    Identifier::numeric(number).expect("a number")
}

pub fn text(message: &IggyMessage) -> String {
    String::from_utf8_lossy(&message.payload).into_owned()
}

/// The call failed with the error of one of these numbers. Over HTTP the client hands on the answer's JSON.
pub fn expect_error<T: std::fmt::Debug>(result: Result<T, IggyError>, codes: &[u32], what: &str) -> Outcome {
    let found = match &result {
        Err(IggyError::HttpResponseError(_, body) | IggyError::ResourceNotFound(body)) if body.starts_with('{') => {
            let body: serde_json::Value = serde_json::from_str(body).step(what)?;
            body["id"].as_u64().unwrap_or(0) as u32
        }
        Err(error) => error.as_code(),
        Ok(_) => 0,
    };
    expect(codes.contains(&found), &format!("{what}: expected error {codes:?}, found {result:?}"))
}

/// Looks every 20 ms until the condition holds: the client has no event for it.
pub async fn eventually<F: Future<Output = Result<bool, String>>>(what: &str, condition: impl Fn() -> F) -> Outcome {
    let deadline = tokio::time::Instant::now() + PATIENCE;
    while !condition().await? {
        expect(tokio::time::Instant::now() < deadline, &format!("{what}: not within {PATIENCE:?}"))?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Asks the test for what only it can do, and waits until it is done.
pub async fn ask(question: &str) -> Outcome {
    println!("{}", serde_json::json!({ "ask": question }));
    let read = tokio::task::spawn_blocking(|| std::io::stdin().read_line(&mut String::new()));
    read.await.step("answer")?.step("answer").map(|_| ())
}
