//! Calls whose signature is this version's.

use iggy::prelude::*;

type Outcome = Result<(), IggyError>;

pub async fn create_topic(client: &IggyClient, stream: &Identifier, name: &str, partitions: u32) -> Outcome {
    let (none, default) = (CompressionAlgorithm::None, IggyExpiry::ServerDefault);
    let size = MaxTopicSize::ServerDefault;
    client.create_topic(stream, name, partitions, none, None, default, size).await.map(|_| ())
}

pub async fn rename_topic(client: &IggyClient, stream: &Identifier, topic: &Identifier, name: &str) -> Outcome {
    let (none, default) = (CompressionAlgorithm::None, IggyExpiry::ServerDefault);
    client.update_topic(stream, topic, name, none, None, default, MaxTopicSize::ServerDefault).await
}

pub async fn rename_stream(client: &IggyClient, stream: &Identifier, name: &str) -> Outcome {
    client.update_stream(stream, name).await
}

pub async fn rename_user(client: &IggyClient, user: &Identifier, name: &str) -> Outcome {
    client.update_user(user, Some(name), None).await
}
