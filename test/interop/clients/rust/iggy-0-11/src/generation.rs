//! Calls whose signature is this version's.

use iggy::prelude::*;

type Outcome = Result<(), IggyError>;

pub async fn create_topic(client: &IggyClient, stream: &Identifier, name: &str, partitions: u32) -> Outcome {
    let options = TopicCreateOptions { partitions_count: Some(partitions), ..Default::default() };
    client.create_topic(stream, name, &options).await.map(|_| ())
}

pub async fn rename_topic(client: &IggyClient, stream: &Identifier, topic: &Identifier, name: &str) -> Outcome {
    client.update_topic(stream, topic, name, &TopicUpdateOptions::default()).await
}

pub async fn rename_stream(client: &IggyClient, stream: &Identifier, name: &str) -> Outcome {
    client.update_stream(stream, name, &StreamUpdateOptions::default()).await
}

pub async fn rename_user(client: &IggyClient, user: &Identifier, name: &str) -> Outcome {
    client.update_user(user, Some(name), None, &UserUpdateOptions::default()).await
}
