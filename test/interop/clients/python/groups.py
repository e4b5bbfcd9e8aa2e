"""Scenarios of offsets and groups, and the restart of the server under a running consumer."""

import asyncio

import apache_iggy as iggy
from scenario import (
    IS_VSR,
    PATIENCE,
    ask,
    consume,
    eventually,
    expect,
    expect_equal,
    expect_error,
    poll,
    send,
    within,
)

PARTITIONS = 4


async def consumer_offsets(world):
    """Offsets of a group, stored by hand. What the server holds is seen by a second consumer of the group."""
    client = await world.connect()
    topic = await world.create_topic(client, 1)
    await send(client, world.name, topic, [f"message {number}" for number in range(10)])

    async def offsets_of_next_member():
        other = await world.connect()
        consumer = await other.consumer_group(
            "stored", world.name, topic, auto_commit=iggy.AutoCommit.Disabled(), batch_length=3
        )
        iterator = consumer.iter_messages()
        offset = (await within(10, anext(iterator), "a message for the member")).offset()
        return other, consumer, offset

    _, consumer, offset = await offsets_of_next_member()
    expect_equal(offset, 0, "first message of a group without offset")
    await consumer.store_offset(4, 0)
    expect_equal(consumer.get_last_stored_offset(0), 4, "stored offset")
    await consumer.delete_offset(0)
    if not IS_VSR:
        return
    # 0.9.0 can leave, so a second member has the partition to itself.
    group = iggy.Consumer.Group("by-hand")
    await client.create_consumer_group(world.name, topic, "by-hand")
    await client.join_consumer_group(world.name, topic, "by-hand")

    async def next_offset():
        found = await client.poll_messages(
            stream=world.name,
            topic=topic,
            consumer=group,
            polling_strategy=iggy.PollingStrategy.Next(),
            count=3,
            auto_commit=True,
        )
        return [message.offset() for message in found]

    expect_equal(await next_offset(), [0, 1, 2], "first three of the group")
    expect_equal(await next_offset(), [3, 4, 5], "next three of the group")


async def consumer_groups(world):
    """Two members share four partitions: each message comes to exactly one of them."""
    client = await world.connect()
    topic = await world.create_topic(client, PARTITIONS)
    received = {"a": [], "b": []}
    stops = {member: asyncio.Event() for member in received}

    def keeper(member):
        async def keep(message):
            received[member].append((message.partition_id(), message.offset(), message.payload().decode()))

        return keep

    clients = {member: await world.connect() for member in received}
    tasks = {
        member: asyncio.create_task(
            consume(clients[member], world, topic, "pair", keeper(member), stops[member], batch_length=10)
        )
        for member in received
    }
    if IS_VSR:

        async def shared():
            group = await client.get_consumer_group(world.name, topic, "pair")
            return group is not None and sorted(len(member.partitions) for member in group.members) == [2, 2]

        await eventually(shared, "two members with two partitions each")
    sent = [f"{partition}/{number}" for partition in range(PARTITIONS) for number in range(25)]
    for partition in range(PARTITIONS):
        await send(client, world.name, topic, [f"{partition}/{number}" for number in range(25)], partition)

    async def all_came():
        return len(received["a"]) + len(received["b"]) >= len(sent)

    await eventually(all_came, "all messages reached a member", 30)
    everything = received["a"] + received["b"]
    if IS_VSR:
        expect_equal(sorted(entry[2] for entry in everything), sorted(sent), "each message once")
        owners = [{entry[0] for entry in received[member]} for member in received]
        expect_equal(owners[0] & owners[1], set(), "partitions with two owners")
        expect(all(owners), "both members received messages")
    else:
        expect_equal({entry[2] for entry in everything}, set(sent), "every message came")
    stops["a"].set()
    await within(15, tasks["a"], "member a ends")
    if IS_VSR:
        await clients["a"].leave_consumer_group(world.name, topic, "pair")

        async def alone():
            group = await client.get_consumer_group(world.name, topic, "pair")
            return [len(member.partitions) for member in group.members] == [PARTITIONS]

        await eventually(alone, "the member that stays has all partitions")
        expect_equal(
            [group.name for group in await client.get_consumer_groups(world.name, topic)], ["pair"], "listed groups"
        )
    stops["b"].set()
    await within(15, tasks["b"], "member b ends")
    if IS_VSR:
        await client.delete_consumer_group(world.name, topic, "pair")
        expect_equal(await client.get_consumer_group(world.name, topic, "pair"), None, "a deleted group")
        await expect_error(5000, client.join_consumer_group(world.name, topic, "pair"), "joining a deleted group")


async def restart(world):
    """The server is killed and started again while a producer sends and a member of a group consumes."""
    producer = await world.connect()
    topic = await world.create_topic(producer, 2)
    acked, received = set(), {}
    repeated, endings, refusals = [], [], []

    async def keep(message):
        place = (message.partition_id(), message.offset())
        payload = message.payload().decode()
        if place in received:
            expect_equal(payload, received[place], "a message that came again")
            repeated.append(place)
        received[place] = payload

    async def steady():
        """Polls and commits by hand, one after the other: a client of 0.8.0 on which two requests fail together may take
        itself for no member after it joined again, and poll no more."""
        client = await world.connect(options="?heartbeat_interval=1h")
        consumer = await client.consumer_group(
            "steady", world.name, topic, auto_commit=iggy.AutoCommit.Disabled(), batch_length=100, **PATIENCE
        )
        messages = consumer.iter_messages()
        while True:
            try:
                message = await anext(messages)
                await keep(message)
                await consumer.store_offset(message.offset(), message.partition_id())
            except RuntimeError as error:  # The server is away. What was handed over and is not committed may come again.
                endings.append(error)
                await asyncio.sleep(0.2)

    async def produce(first, count):
        for number in range(first, first + count):
            for _ in range(200):
                try:
                    await send(producer, world.name, topic, [f"message {number}"], number % 2)
                    acked.add(f"message {number}")
                    break
                except Exception as error:  # the server is away: the same message again, later
                    refusals.append(error)
                    await asyncio.sleep(0.1)

    task = asyncio.create_task(follow(world, topic, keep) if world.transport == "http" else steady())
    await produce(0, 50)
    sending = asyncio.create_task(produce(50, 50))
    await ask("restart")

    def of_sending():
        return f"100 messages acknowledged across the restart, found {len(acked)}; last refusal {refusals[-1:]}"

    await within(90, sending, of_sending)
    await produce(100, 50)
    expect_equal(len(acked), 150, "acknowledged messages")

    async def all_came():
        return acked <= set(received.values())

    await eventually(all_came, "every acknowledged message came to the consumer", 40)
    for partition in (0, 1):
        offsets = sorted(offset for number, offset in received if number == partition)
        expect_equal(offsets, list(range(len(offsets))), f"offsets of partition {partition}")
    if not endings:  # What was handed over before a commit that failed may come again.
        expect_equal(repeated, [], "offsets handed over twice")
    expect(not task.done(), "the consumer goes on")
    task.cancel()


async def follow(world, topic, keep):
    """A consumer over HTTP, where there are no members: it remembers its own offsets and logs in again."""
    client, following = await world.connect(), {0: 0, 1: 0}
    while True:
        for partition in following:
            try:
                strategy = iggy.PollingStrategy.Offset(following[partition])
                for message in await poll(client, world.name, topic, strategy, 100, partition):
                    await keep(message)
                    following[partition] = message.offset() + 1
            except Exception:
                await asyncio.sleep(0.2)
                client = await reconnected(world, client)
        await asyncio.sleep(0.02)


async def reconnected(world, client):
    try:
        return await world.connect()
    except Exception:
        return client


GROUPS = {"consumer-offsets": consumer_offsets, "consumer-groups": consumer_groups, "restart": restart}
