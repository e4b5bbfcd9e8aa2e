//! Scenarios of offsets and groups, and the restart of the server under a running consumer.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use futures_util::StreamExt;
use iggy::prelude::*;

use super::world::{TOPIC, World, ask, eventually, expect_error, named, numeric, text};
use super::{Outcome, Step, expect, expect_equal};

const GROUP: &str = "pair";

pub async fn consumer_offsets(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 1).await?;
    let ten: Vec<String> = (0..10).map(|number| number.to_string()).collect();
    world.send(&client, &Partitioning::partition_id(0), &ten).await.step("send")?;
    let (stream, topic, partition) = (&world.stream, &world.topic, Some(0));
    for consumer in [Consumer::new(numeric(7)), Consumer::new(named("archiver"))] {
        client.store_consumer_offset(&consumer, stream, topic, partition, 4).await.step("store")?;
        let stored = client.get_consumer_offset(&consumer, stream, topic, partition).await.step("get")?;
        let stored = stored.ok_or("there is no offset")?;
        expect_equal((stored.stored_offset, stored.current_offset), (4, 9), "stored and current offset")?;
        let next = PollingStrategy::next();
        let polled = client.poll_messages(stream, topic, partition, &consumer, &next, 2, false).await.step("poll")?;
        expect_equal(polled.messages[0].header.offset, 5, "next after the stored offset")?;
        client.delete_consumer_offset(&consumer, stream, topic, partition).await.step("delete")?;
        let gone = client.get_consumer_offset(&consumer, stream, topic, partition).await.step("get")?;
        expect(gone.is_none(), "the offset is gone")?;
        let again = client.delete_consumer_offset(&consumer, stream, topic, partition).await;
        expect_error(again, &[3021], "a second deletion")?;
    }
    let past = client.store_consumer_offset(&Consumer::new(numeric(7)), stream, topic, partition, 1000).await;
    expect_error(past, &[4100], "an offset past the end")
}

/// Two members share four partitions; each message comes to exactly one of them.
pub async fn consumer_groups(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 4).await?;
    let (stream, topic, group) = (&world.stream, &world.topic, named(GROUP));
    client.create_consumer_group(stream, topic, GROUP).await.step("create group")?;
    let members = [world.connect().await?, world.connect().await?];
    let shares = async |expected: &[u32]| {
        eventually(&format!("members have {expected:?} partitions"), async || {
            let found = client.get_consumer_group(stream, topic, &group).await.step("group")?;
            let found = found.ok_or("there is no group")?;
            Ok(found.members.iter().map(|member| member.partitions_count).eq(expected.iter().copied()))
        })
        .await
    };
    members[0].join_consumer_group(stream, topic, &group).await.step("join")?;
    shares(&[4]).await?;
    members[1].join_consumer_group(stream, topic, &group).await.step("join")?;
    members[1].join_consumer_group(stream, topic, &group).await.step("join again")?;
    shares(&[2, 2]).await?;
    for partition in 0..4 {
        for number in 0..10 {
            let to = Partitioning::partition_id(partition);
            world.send(&client, &to, &[format!("{partition}/{number}")]).await.step("send")?;
        }
    }
    let owners = Mutex::new(BTreeMap::new());
    let partitions = [Mutex::new(BTreeSet::new()), Mutex::new(BTreeSet::new())];
    eventually("every message came to a member", async || {
        for (number, member) in members.iter().enumerate() {
            let consumer = Consumer::group(group.clone());
            let next = PollingStrategy::next();
            let polled = member.poll_messages(stream, topic, None, &consumer, &next, 3, true).await.step("poll")?;
            for message in &polled.messages {
                let earlier = owners.lock().expect("no panic").insert(text(message), number);
                expect(earlier.is_none(), &format!("{} came twice", text(message)))?;
                partitions[number].lock().expect("no panic").insert(polled.partition_id);
            }
        }
        Ok(owners.lock().expect("no panic").len() == 40)
    })
    .await?;
    let [first, second] = partitions.map(|partitions| partitions.into_inner().expect("no panic"));
    expect_equal((first.len(), second.len()), (2, 2), "partitions of each member")?;
    expect(first.is_disjoint(&second), "no partition has two owners")?;
    members[0].leave_consumer_group(stream, topic, &group).await.step("leave")?;
    shares(&[4]).await?;
    members[1].disconnect().await.step("disconnect")?;
    shares(&[]).await?;
    expect_equal(client.get_consumer_groups(stream, topic).await.step("groups")?.len(), 1, "listed groups")?;
    client.delete_consumer_group(stream, topic, &group).await.step("delete group")?;
    let joined = client.join_consumer_group(stream, topic, &group).await;
    expect_error(joined, &[5000, 5003], "joining a deleted group")
}

type Places = Mutex<BTreeMap<(u32, u64), String>>;

/// The server is killed and started again while a producer sends and a consumer runs. Over TCP and WebSocket the consumer
/// is the client's own member of a group, which reconnects and joins by itself.
pub async fn restart(world: &World) -> Outcome {
    let producer = world.connect().await?;
    world.create_topic(&producer, 2).await?;
    let acked = Mutex::new(BTreeSet::new());
    let places = Places::default();
    let run = async {
        produce(world, &producer, 0..50, &acked).await?;
        // A consumer that only starts meets the kill as an error of its start.
        let runs = || !places.lock().expect("no panic").is_empty();
        eventually("the consumer runs", async || Ok(runs())).await?;
        let (sent, answered) = tokio::join!(produce(world, &producer, 50..100, &acked), ask("restart"));
        sent.and(answered)?;
        produce(world, &producer, 100..150, &acked).await?;
        let acked = acked.lock().expect("no panic").clone();
        expect_equal(acked.len(), 150, "acknowledged messages")?;
        let missing = || {
            let received: BTreeSet<String> = places.lock().expect("no panic").values().cloned().collect();
            acked.difference(&received).cloned().collect::<Vec<_>>()
        };
        let outcome = eventually("every acknowledged message came", async || Ok(missing().is_empty())).await;
        outcome.map_err(|what| format!("{what}, missing {:?}", missing()))
    };
    if world.is_http {
        tokio::select! { outcome = run => outcome?, fault = follow(world, &places) => fault?, }
    } else {
        tokio::select! { outcome = run => outcome?, fault = consume(world, &places) => fault?, }
    }
    for partition in 0..2 {
        let places = places.lock().expect("no panic");
        let offsets = places.keys().filter(|place| place.0 == partition).map(|place| place.1);
        expect(offsets.enumerate().all(|(index, offset)| index as u64 == offset), "offsets have no gap")?;
    }
    Ok(())
}

/// Sends each message until it is acknowledged.
async fn produce(
    world: &World,
    client: &IggyClient,
    numbers: std::ops::Range<u32>,
    acked: &Mutex<BTreeSet<String>>,
) -> Outcome {
    for number in numbers {
        let message = format!("message {number}");
        let to = Partitioning::partition_id(number % 2);
        while let Err(error) = world.send(client, &to, std::slice::from_ref(&message)).await {
            if world.is_http && error.as_code() != IggyError::HttpError(String::new()).as_code() {
                // A new server may not know the old one's access tokens.
                let _ = client.login_user("iggy", "iggy").await;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        acked.lock().expect("no panic").insert(message);
    }
    Ok(())
}

/// @returns whether it had not been handed over before. What comes again is the same message.
fn keep(places: &Places, partition: u32, message: &IggyMessage) -> Result<bool, String> {
    let earlier = places.lock().expect("no panic").insert((partition, message.header.offset), text(message));
    if let Some(earlier) = &earlier {
        expect_equal(text(message), earlier.clone(), "a message that came again")?;
    }
    Ok(earlier.is_none())
}

/// What was handed over and is not committed comes again: the client polls while commits are under way, and repeats none
/// that got lost with its connection. Without `allow_replay` it leaves out what it handed over before, and where that is all
/// that a poll brings, it neither commits nor goes on.
async fn consume(world: &World, places: &Places) -> Outcome {
    let client = world.connect().await?;
    let mut consumer = client
        .consumer_group("steady", &world.name, TOPIC)
        .step("consumer")?
        .auto_commit(AutoCommit::When(AutoCommitWhen::ConsumingEachMessage))
        .create_consumer_group_if_not_exists()
        .auto_join_consumer_group()
        .polling_strategy(PollingStrategy::next())
        .allow_replay()
        .poll_interval(IggyDuration::from(20_000))
        .batch_length(20)
        .build();
    consumer.init().await.step("start of the consumer")?;
    while let Some(received) = consumer.next().await {
        // While the server is away the client reports errors and goes on.
        if let Ok(received) = received {
            keep(places, received.partition_id, &received.message)?;
        }
    }
    Err("the consumer ended".into())
}

/// A consumer over HTTP, where there are no members: it remembers its own offsets.
async fn follow(world: &World, places: &Places) -> Outcome {
    let client = world.connect().await?;
    let mut next = [0_u64; 2];
    loop {
        for partition in 0..2_u32 {
            let from = PollingStrategy::offset(next[partition as usize]);
            let Ok(messages) = world.poll(&client, partition, from, 100, false).await else {
                let _ = client.login_user("iggy", "iggy").await;
                continue;
            };
            for message in &messages {
                expect(keep(places, partition, message)?, "by its own count each message comes once")?;
                next[partition as usize] = message.header.offset + 1;
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
