//! Scenarios of the server, of streams, topics and partitions, and of errors.

use iggy::prelude::*;

use super::world::{TOPIC, World, expect_error, named, numeric};
use super::{Outcome, Step, expect, expect_equal};
use crate::generation;

pub async fn system(world: &World) -> Outcome {
    let client = world.connect().await?;
    client.ping().await.step("ping")?;
    let stats = client.get_stats().await.step("stats")?;
    expect(stats.process_id > 0, "the server has a process id")?;
    let cluster = client.get_cluster_metadata().await.step("cluster metadata")?;
    expect_equal(cluster.nodes.len(), 1, "nodes of the cluster")?;
    let snapshot =
        client.snapshot(SnapshotCompression::Deflated, vec![SystemSnapshotType::Test]).await.step("snapshot")?;
    expect(snapshot.0.starts_with(b"PK"), "the snapshot is an archive")?;
    if world.is_http {
        return Ok(());
    }
    let own = client.get_me().await.step("me")?;
    let listed = client.get_clients().await.step("clients")?;
    expect(listed.iter().any(|one| one.client_id == own.client_id), "the client is listed")?;
    let found = client.get_client(own.client_id).await.step("client")?;
    expect_equal(found.map(|found| found.client_id), Some(own.client_id), "client by its id")
}

pub async fn streams_and_topics(world: &World) -> Outcome {
    let client = world.connect().await?;
    let made = client.create_stream(&world.name).await.step("create stream")?;
    let stream = numeric(made.id);
    generation::create_topic(&client, &stream, TOPIC, 3).await.step("create topic")?;
    let found = client.get_stream(&world.stream).await.step("stream")?.ok_or("there is no stream")?;
    expect_equal((found.name.as_str(), found.topics_count), (world.name.as_str(), 1), "stream")?;
    let topic = client.get_topic(&stream, &world.topic).await.step("topic")?.ok_or("there is no topic")?;
    expect_equal((topic.partitions_count, topic.messages_count), (3, 0), "topic")?;
    let listed = client.get_streams().await.step("streams")?;
    expect(listed.iter().any(|one| one.name == world.name), "the stream is listed")?;
    expect_equal(client.get_topics(&stream).await.step("topics")?.len(), 1, "listed topics")?;
    let renamed = format!("{}-renamed", world.name);
    generation::rename_stream(&client, &stream, &renamed).await.step("rename the stream")?;
    generation::rename_topic(&client, &stream, &world.topic, "readings").await.step("rename the topic")?;
    let topic_id = numeric(topic.id);
    let found = client.get_topic(&named(&renamed), &topic_id).await.step("topic")?.ok_or("there is no topic")?;
    expect_equal(found.name.as_str(), "readings", "renamed topic")?;
    let mut messages = [IggyMessage::builder().payload("x".into()).build().step("message")?];
    client.send_messages(&stream, &topic_id, &Partitioning::partition_id(0), &mut messages).await.step("send")?;
    client.purge_topic(&stream, &topic_id).await.step("purge the topic")?;
    client.purge_stream(&stream).await.step("purge the stream")?;
    let found = client.get_topic(&stream, &topic_id).await.step("topic")?.ok_or("there is no topic")?;
    expect_equal(found.messages_count, 0, "messages of a purged topic")?;
    client.delete_topic(&stream, &topic_id).await.step("delete topic")?;
    expect(client.get_topic(&stream, &topic_id).await.step("topic")?.is_none(), "the topic is gone")?;
    client.delete_stream(&stream).await.step("delete stream")?;
    expect(client.get_stream(&stream).await.step("stream")?.is_none(), "the stream is gone")
}

pub async fn partitions(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 1).await?;
    client.create_partitions(&world.stream, &world.topic, 3).await.step("create partitions")?;
    let topic = client.get_topic(&world.stream, &world.topic).await.step("topic")?.ok_or("there is no topic")?;
    let numbers: Vec<u32> = topic.partitions.iter().map(|partition| partition.id).collect();
    expect_equal(numbers, vec![0, 1, 2, 3], "partitions")?;
    world.send(&client, &Partitioning::partition_id(3), &["into the new one".into()]).await.step("send")?;
    client.delete_partitions(&world.stream, &world.topic, 2).await.step("delete partitions")?;
    let topic = client.get_topic(&world.stream, &world.topic).await.step("topic")?.ok_or("there is no topic")?;
    expect_equal(topic.partitions_count, 2, "partitions left")
}

pub async fn errors(world: &World) -> Outcome {
    expect_error(world.login("iggy", "wrong").await, &[42], "a wrong password")?;
    let client = world.connect().await?;
    world.create_topic(&client, 1).await?;
    let (no_stream, no_topic, no_group) = (named("no-such-stream"), named("no-such-topic"), named("no-such-group"));
    let (stream, topic) = (&world.stream, &world.topic);
    expect_error(client.create_stream(&world.name).await, &[1012], "a second stream of that name")?;
    let second = generation::create_topic(&client, stream, TOPIC, 1).await;
    expect_error(second, &[2013], "a second topic of that name")?;
    let lost = generation::create_topic(&client, &no_stream, TOPIC, 1).await;
    expect_error(lost, &[1009], "a topic in a missing stream")?;
    expect_error(client.delete_stream(&no_stream).await, &[1009], "deletion of a missing stream")?;
    expect_error(client.delete_topic(stream, &no_topic).await, &[2010], "deletion of a missing topic")?;
    let polled = world.poll(&client, 7, PollingStrategy::first(), 1, false).await;
    expect_error(polled, &[3007], "a poll of a missing partition")?;
    let mut messages = [IggyMessage::builder().payload("x".into()).build().step("message")?];
    let sent = client.send_messages(stream, &no_topic, &Partitioning::balanced(), &mut messages).await;
    expect_error(sent, &[2010, 20], "a send to a missing topic")?;
    client.create_consumer_group(stream, topic, "group").await.step("create group")?;
    let second = client.create_consumer_group(stream, topic, "group").await;
    expect_error(second, &[5004], "a second group of that name")?;
    let deleted = client.delete_consumer_group(stream, topic, &no_group).await;
    expect_error(deleted, &[5000, 5003], "deletion of a missing group")?;
    if !world.is_http {
        let left = client.leave_consumer_group(stream, topic, &named("group")).await;
        expect_error(left, &[5006], "leaving a group not joined")?;
    }
    expect(client.get_stream(&no_stream).await.step("stream")?.is_none(), "a missing stream is none")
}
