"""Scenarios of streams, topics, partitions, users, rights, tokens and errors."""

import apache_iggy as iggy
from scenario import IS_VSR, VERSION, eventually, expect, expect_equal, expect_error, poll, send


async def system(world):
    client = await world.connect()
    await client.ping()
    if not IS_VSR:
        return
    stats = await client.get_stats()
    expect(stats.process_id > 0, "the server has a process id")
    expect(stats.clients_count >= (0 if world.transport == "http" else 1), "the client is counted")
    expect(len(await client.describe_options("topic")) > 0, "options of topics are described")


async def streams_and_topics(world):
    client = await world.connect()
    await client.create_stream(world.name)
    await client.create_topic(world.name, "events", 3)
    stream = await client.get_stream(world.name)
    expect_equal((stream.name, stream.topics_count), (world.name, 1), "stream")
    by_id = await client.get_stream(stream.id)
    expect_equal(by_id.name, world.name, "stream by its id")
    topic = await client.get_topic(world.name, "events")
    expect_equal((topic.name, topic.partitions_count, topic.messages_count), ("events", 3, 0), "topic")
    expect_equal(await client.get_stream("no-such-stream"), None, "a missing stream")
    expect_equal(await client.get_topic(world.name, "no-such-topic"), None, "a missing topic")
    if not IS_VSR:
        return
    expect(world.name in [found.name for found in await client.get_streams()], "the stream is listed")
    expect_equal([found.name for found in await client.get_topics(world.name)], ["events"], "topics")
    await client.update_stream(world.name, f"{world.name}-renamed")
    await client.update_topic(f"{world.name}-renamed", "events", "readings")
    expect_equal((await client.get_topic(stream.id, topic.id)).name, "readings", "renamed topic")
    await send(client, stream.id, topic.id, ["one", "two"])
    await client.purge_topic(stream.id, topic.id)
    expect_equal(
        await poll(client, stream.id, topic.id, iggy.PollingStrategy.First(), 10), [], "messages of a purged topic"
    )
    await client.delete_topic(stream.id, topic.id)
    expect_equal(await client.get_topic(stream.id, topic.id), None, "a deleted topic")
    await client.delete_stream(stream.id)
    expect_equal(await client.get_stream(f"{world.name}-renamed"), None, "a deleted stream")


async def partitions(world):
    client = await world.connect()
    topic = await world.create_topic(client, 1)
    await client.create_partitions(world.name, topic, 3)
    details = await client.get_topic(world.name, topic)
    expect_equal([found.id for found in details.partitions], [0, 1, 2, 3], "partitions")
    await send(client, world.name, topic, ["into the new one"], partition=3)
    await client.delete_partitions(world.name, topic, 2)
    expect_equal((await client.get_topic(world.name, topic)).partitions_count, 2, "partitions left")


async def tokens(world):
    """The client has no calls for tokens but logs in with one: it is made and deleted over HTTP."""
    bearer = world.http_token()
    name = f"token-{VERSION}-{world.transport}"
    status, made = world.http("POST", "/personal-access-tokens", {"name": name, "expiry": 0}, bearer)
    expect_equal(status, 200, "status of a new token")
    client = await world.connect_with_token(made["token"])
    await client.create_stream(world.name)
    expect((await client.get_stream(world.name)) is not None, "the token lets its user create a stream")
    status, _ = world.http("DELETE", f"/personal-access-tokens/{name}", None, bearer)
    expect_equal(status, 204, "status of a deletion")

    async def use_deleted():
        late = iggy.IggyClient(
            iggy.TcpConfig(
                server_address=world.addresses["tcp"],
                auto_login=iggy.AutoLogin.personal_access_token(made["token"]),
                reconnection=iggy.TcpReconnectionConfig(enabled=False),
            )
        )
        await late.connect()
        return await late.get_stream(world.name)

    if IS_VSR:
        await expect_error(53, use_deleted(), "login with a deleted token")


async def users(world):
    client = await world.connect()
    name = f"user-{VERSION}-{world.transport}"
    made = await client.create_user(name, "secret-1")
    expect_equal(made.username, name, "new user")
    expect(name in [user.username for user in await client.get_users()], "the user is listed")
    await expect_error(46, client.create_user(name, "secret-1"), "a second user of that name")
    own = await world.connect(name, "secret-1")
    await own.ping()
    await client.change_password(name, "secret-1", "secret-2")
    await expect_error(42, login(world, name, "secret-1"), "the old password")
    await login(world, name, "secret-2")
    await client.update_user(name, username=f"{name}-renamed")
    expect_equal((await client.get_user(made.id)).username, f"{name}-renamed", "renamed user")
    await client.delete_user(made.id)
    expect_equal(await client.get_user(made.id), None, "a deleted user")
    await expect_error(42, login(world, f"{name}-renamed", "secret-2"), "login of a deleted user")


async def login(world, username, password):
    client = iggy.IggyClient.from_connection_string(world.connection_string())
    await client.connect()
    await client.login_user(username, password)


async def permissions(world):
    client = await world.connect()
    topic = await world.create_topic(client, 1)
    await client.create_stream(f"{world.name}-other")
    name = f"reader-{VERSION}-{world.transport}"
    await client.create_user(name, "secret-1")
    own = await world.connect(name, "secret-1")
    await expect_error(41, own.create_stream(f"{world.name}-new"), "creation without rights")
    await expect_error(41, send(own, world.name, topic, ["x"]), "a send without rights")
    stream = await client.get_stream(world.name)
    rights = iggy.StreamPermissions(read_stream=True, poll_messages=True)
    await client.update_permissions(name, iggy.Permissions(streams={stream.id: rights}))
    await send(client, world.name, topic, ["for the reader"])
    own = await world.connect(name, "secret-1")

    async def reads():
        return len(await poll(own, world.name, topic, iggy.PollingStrategy.First(), 10)) == 1

    await eventually(reads, "the reader reads")
    await expect_error(41, send(own, world.name, topic, ["x"]), "a send with the right to read")
    await expect_error(41, own.delete_stream(world.name), "a deletion with the right to read")


async def errors(world):
    client = await world.connect()
    topic = await world.create_topic(client, 1)
    await expect_error(1012, client.create_stream(world.name), "a second stream of that name")
    await expect_error(2013, client.create_topic(world.name, topic, 1), "a second topic of that name")
    await expect_error(1009, client.create_topic("no-such-stream", "x", 1), "a topic in a missing stream")
    await expect_error((2010, 20), send(client, world.name, "no-such-topic", ["x"]), "a send to a missing topic")
    await expect_error(
        3007,
        poll(client, world.name, topic, iggy.PollingStrategy.First(), 1, partition=7),
        "a poll of a missing partition",
    )
    await expect_error(42, login(world, "iggy", "wrong"), "a wrong password")
    if not IS_VSR:
        return
    await expect_error(1009, client.delete_stream("no-such-stream"), "deletion of a missing stream")
    await expect_error(2010, client.delete_topic(world.name, "no-such-topic"), "deletion of a missing topic")
    await client.create_consumer_group(world.name, topic, "group")
    await expect_error(5004, client.create_consumer_group(world.name, topic, "group"), "a second group of that name")
    await expect_error(
        5000, client.delete_consumer_group(world.name, topic, "no-such-group"), "deletion of a missing group"
    )


ADMINISTRATION = {
    "system": system,
    "streams-and-topics": streams_and_topics,
    "partitions": partitions,
    "tokens": tokens,
    "users": users,
    "permissions": permissions,
    "errors": errors,
}
