//! Scenarios of sending and polling.

use std::collections::BTreeMap;

use bytes::Bytes;
use iggy::prelude::*;

use super::world::{World, text};
use super::{Outcome, Step, expect, expect_equal};

const MIB: usize = 1024 * 1024;
/// Where each key lands on a topic of four partitions: xxHash32 of the key, modulo four.
const PARTITION_OF_KEY: [(&str, u32); 5] = [("key-0", 3), ("key-1", 1), ("key-2", 0), ("key-4", 2), ("cust-456", 0)];

pub async fn partitioning(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 4).await?;
    let texts = async |partition: u32| {
        let found = world.poll(&client, partition, PollingStrategy::first(), 100, false).await;
        found.map(|messages| messages.iter().map(text).collect::<Vec<_>>()).step("poll")
    };
    for number in 0..8 {
        let balanced = Partitioning::balanced();
        world.send(&client, &balanced, &[format!("balanced-{number}")]).await.step("balanced send")?;
    }
    for partition in 0..4 {
        expect_equal(texts(partition).await?.len(), 2, &format!("balanced messages of partition {partition}"))?;
    }
    let chosen = Partitioning::partition_id(2);
    world.send(&client, &chosen, &["chosen".into()]).await.step("send to a chosen partition")?;
    expect_equal(texts(2).await?[2].as_str(), "chosen", "message of a chosen partition")?;
    for (key, partition) in PARTITION_OF_KEY {
        let by_key = Partitioning::messages_key_str(key).step("key")?;
        world.send(&client, &by_key, &[key.into()]).await.step("send by key")?;
        expect(texts(partition).await?.contains(&key.into()), &format!("key {key} lands in partition {partition}"))?;
    }
    Ok(())
}

pub async fn polling(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 1).await?;
    let partition = Partitioning::partition_id(0);
    let five = |half: &str| (0..5).map(|number| format!("{half}-{number}")).collect::<Vec<_>>();
    world.send(&client, &partition, &five("first")).await.step("send")?;
    let middle = IggyTimestamp::now();
    world.send(&client, &partition, &five("second")).await.step("send")?;
    let offsets = async |strategy: PollingStrategy, count: u32, auto_commit: bool| {
        let found = world.poll(&client, 0, strategy, count, auto_commit).await;
        found.map(|messages| messages.iter().map(|message| message.header.offset).collect::<Vec<_>>()).step("poll")
    };
    let numbers = |first: u64, end: u64| (first..end).collect::<Vec<_>>();
    expect_equal(offsets(PollingStrategy::offset(0), 10, false).await?, numbers(0, 10), "from offset 0")?;
    expect_equal(offsets(PollingStrategy::offset(7), 2, false).await?, numbers(7, 9), "from offset 7")?;
    expect_equal(offsets(PollingStrategy::offset(10), 5, false).await?, vec![], "past the end")?;
    expect_equal(offsets(PollingStrategy::timestamp(middle), 10, false).await?, numbers(5, 10), "from a time")?;
    expect_equal(offsets(PollingStrategy::first(), 3, false).await?, numbers(0, 3), "first")?;
    expect_equal(offsets(PollingStrategy::last(), 3, false).await?, numbers(7, 10), "last")?;
    expect_equal(offsets(PollingStrategy::next(), 4, false).await?, numbers(0, 4), "next, not committed")?;
    expect_equal(offsets(PollingStrategy::next(), 4, true).await?, numbers(0, 4), "next, committed")?;
    expect_equal(offsets(PollingStrategy::next(), 10, true).await?, numbers(4, 10), "next after a commit")?;
    expect_equal(offsets(PollingStrategy::next(), 10, true).await?, vec![], "next at the end")?;
    let found = world.poll(&client, 0, PollingStrategy::offset(3), 1, false).await.step("poll")?;
    expect_equal(text(&found[0]).as_str(), "first-3", "payload")?;
    expect(found[0].header.timestamp.abs_diff(middle.as_micros()) < 60_000_000, "the time of the message is of now")
}

pub async fn payloads(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 1).await?;
    let partition = Partitioning::partition_id(0);
    // Over HTTP a request is at most 2 MB of base64.
    let sizes: &[usize] = if world.is_http { &[1, MIB] } else { &[1, MIB, 8 * MIB] };
    for (offset, size) in sizes.iter().enumerate() {
        // The period is no power of two: a shift or a cut would change what comes back.
        let payload = Bytes::from_iter((0..*size).map(|index| (index % 251) as u8));
        let mut messages = [IggyMessage::builder().payload(payload.clone()).build().step("message")?];
        client
            .send_messages(&world.stream, &world.topic, &partition, &mut messages)
            .await
            .step(&format!("send of {size} bytes"))?;
        let strategy = PollingStrategy::offset(offset as u64);
        let found = world.poll(&client, 0, strategy, 1, false).await.step("poll")?;
        expect_equal(found.len(), 1, &format!("messages of {size} bytes"))?;
        expect(found[0].payload == payload, &format!("{size} bytes are as sent"))?;
    }
    let many: Vec<String> = (0..1000).map(|number| format!("message {number}")).collect();
    world.send(&client, &partition, &many).await.step("a batch of 1000")?;
    let strategy = PollingStrategy::offset(sizes.len() as u64);
    let found = world.poll(&client, 0, strategy, 1000, false).await.step("poll")?;
    expect(found.iter().map(text).eq(many), "a batch of 1000 is as sent")
}

pub async fn headers(world: &World) -> Outcome {
    let client = world.connect().await?;
    world.create_topic(&client, 1).await?;
    let key = |name: &str| HeaderKey::try_from(name).step("header key");
    let sent = BTreeMap::from([
        (key("text")?, HeaderValue::try_from("grün").step("header")?),
        (key("yes")?, HeaderValue::from(true)),
        (key("int8")?, HeaderValue::from(-8_i8)),
        (key("int16")?, HeaderValue::from(-1600_i16)),
        (key("int32")?, HeaderValue::from(-320_000_i32)),
        (key("int64")?, HeaderValue::from(i64::MIN)),
        (key("int128")?, HeaderValue::from(i128::MIN)),
        (key("uint8")?, HeaderValue::from(u8::MAX)),
        (key("uint16")?, HeaderValue::from(u16::MAX)),
        (key("uint32")?, HeaderValue::from(u32::MAX)),
        (key("uint64")?, HeaderValue::from(u64::MAX)),
        (key("uint128")?, HeaderValue::from(u128::MAX)),
        (key("float32")?, HeaderValue::from(1.5_f32)),
        (key("float64")?, HeaderValue::from(-2.25_f64)),
        (key("raw")?, HeaderValue::try_from(&[0_u8, 1, 255][..]).step("header")?),
        (HeaderKey::from(7_u32), HeaderValue::try_from("a number as key").step("header")?),
    ]);
    let with = IggyMessage::builder().payload("with headers".into()).user_headers(sent.clone());
    let mut messages =
        [with.build().step("message")?, IggyMessage::builder().payload("without".into()).build().step("message")?];
    client
        .send_messages(&world.stream, &world.topic, &Partitioning::partition_id(0), &mut messages)
        .await
        .step("send")?;
    let found = world.poll(&client, 0, PollingStrategy::first(), 2, false).await.step("poll")?;
    expect_equal(found[0].user_headers_map().step("headers")?, Some(sent), "headers")?;
    expect(found[1].user_headers.as_ref().is_none_or(|bytes| bytes.is_empty()), "the second message has none")
}
