"""Scenarios of sending and polling."""

import time

import apache_iggy as iggy
from scenario import IS_VSR, World, expect, expect_equal, poll, send

MIB = 1024 * 1024
# Where each key lands on a topic of four partitions: xxHash32 of the key, modulo four.
PARTITION_OF_KEY = {"key-0": 3, "key-1": 1, "key-2": 0, "key-4": 2, "cust-456": 0}


async def partitioning(world: World):
    client = await world.connect()
    topic = await world.create_topic(client, 4)

    async def counts():
        found = [await poll(client, world.name, topic, iggy.PollingStrategy.First(), 100, number) for number in range(4)]
        return [[message.payload().decode() for message in part] for part in found]

    for number in range(8):
        message = [iggy.SendMessage(f"balanced-{number}")]
        await client.send_messages(world.name, topic, iggy.Partitioning.balanced(), message)
    expect_equal([len(part) for part in await counts()], [2, 2, 2, 2], "balanced messages per partition")
    await client.send_messages(world.name, topic, iggy.Partitioning.partition_id(2), [iggy.SendMessage("chosen")])
    expect_equal((await counts())[2][-1], "chosen", "message of a chosen partition")
    for key in PARTITION_OF_KEY:
        await client.send_messages(world.name, topic, iggy.Partitioning.messages_key(key), [iggy.SendMessage(key)])
    found = await counts()
    for key, number in PARTITION_OF_KEY.items():
        expect(key in found[number], f"key {key} lands in partition {number}, found {found}")


async def polling(world: World):
    client = await world.connect()
    topic = await world.create_topic(client, 1)
    await send(client, world.name, topic, [f"first-{number}" for number in range(5)])
    middle = time.time_ns() // 1000
    await send(client, world.name, topic, [f"second-{number}" for number in range(5)])

    async def offsets(strategy, count, **options):
        return [message.offset() for message in await poll(client, world.name, topic, strategy, count, **options)]

    strategies = iggy.PollingStrategy
    expect_equal(await offsets(strategies.Offset(0), 10), list(range(10)), "from offset 0")
    expect_equal(await offsets(strategies.Offset(7), 2), [7, 8], "from offset 7")
    expect_equal(await offsets(strategies.Offset(10), 5), [], "past the end")
    expect_equal(await offsets(strategies.Timestamp(middle), 10), [5, 6, 7, 8, 9], "from a time")
    expect_equal(await offsets(strategies.First(), 3), [0, 1, 2], "first")
    expect_equal(await offsets(strategies.Last(), 3), [7, 8, 9], "last")
    expect_equal(await offsets(strategies.Next(), 4), [0, 1, 2, 3], "next, not committed")
    expect_equal(await offsets(strategies.Next(), 4, auto_commit=True), [0, 1, 2, 3], "next, committed")
    expect_equal(await offsets(strategies.Next(), 10, auto_commit=True), [4, 5, 6, 7, 8, 9], "next after a commit")
    expect_equal(await offsets(strategies.Next(), 10, auto_commit=True), [], "next at the end")
    message = (await poll(client, world.name, topic, strategies.Offset(3), 1))[0]
    expect_equal(message.payload(), b"first-3", "payload")
    expect(message.id() != 0 or IS_VSR, "the server gave the message an id")
    expect(abs(message.timestamp() - middle) < 60_000_000, "the time of the message is of now, in microseconds")


def patterned(size):
    """Bytes that a shift or a cut would change: the period is no power of two."""
    return (bytes(range(251)) * (size // 251 + 1))[:size]


async def payloads(world: World):
    client = await world.connect()
    topic = await world.create_topic(client, 1)
    # Over HTTP a request is at most 2 MB of base64.
    sizes = [1, MIB] if world.transport == "http" else [1, MIB, 8 * MIB]
    for size in sizes:
        await send(client, world.name, topic, [patterned(size)])
    for offset, size in enumerate(sizes):
        found = await poll(client, world.name, topic, iggy.PollingStrategy.Offset(offset), 1)
        expect_equal(len(found), 1, f"messages of {size} bytes")
        expect(found[0].payload() == patterned(size), f"{size} bytes are as sent")
    many = [f"message {number}" for number in range(1000)]
    await send(client, world.name, topic, many)
    found = await poll(client, world.name, topic, iggy.PollingStrategy.Offset(len(sizes)), 1000)
    expect_equal([message.payload().decode() for message in found], many, "a batch of 1000")


async def headers(world: World):
    client = await world.connect()
    topic = await world.create_topic(client, 1)
    keys, values = iggy.HeaderKey, iggy.HeaderValue
    sent = {
        keys.String("text"): values.String("grün"),
        keys.String("yes"): values.Bool(True),
        keys.String("int8"): values.Int8(-8),
        keys.String("int16"): values.Int16(-1600),
        keys.String("int32"): values.Int32(-320000),
        keys.String("int64"): values.Int64(-(2**62)),
        keys.String("int128"): values.Int128(-(2**126)),
        keys.String("uint8"): values.UnsignedInt8(255),
        keys.String("uint16"): values.UnsignedInt16(65535),
        keys.String("uint32"): values.UnsignedInt32(2**32 - 1),
        keys.String("uint64"): values.UnsignedInt64(2**64 - 1),
        keys.String("uint128"): values.UnsignedInt128(2**128 - 1),
        keys.String("float32"): values.Float32(1.5),
        keys.String("float64"): values.Float64(-2.25),
        keys.String("raw"): values.Raw(b"\x00\x01\xff"),
        keys.UnsignedInt32(7): values.String("a key that is a number"),
    }
    message = iggy.SendMessage("with headers", user_headers=iggy.UserHeaders(sent))
    await client.send_messages(world.name, topic, 0, [message, iggy.SendMessage("without")])
    found = await poll(client, world.name, topic, iggy.PollingStrategy.First(), 2)
    expect_equal(dict(found[0].user_headers()), sent, "headers")
    expect(not found[1].user_headers(), "the second message has none")


MESSAGES = {"partitioning": partitioning, "polling": polling, "payloads": payloads, "headers": headers}
