"""What every scenario has at hand: where the server is, both generations of the client under one set of calls, and
what it asks of the test that drives it."""

import asyncio
import json
import re
import sys
import urllib.error
import urllib.request
from dataclasses import dataclass
from datetime import timedelta
from importlib.metadata import version

import apache_iggy as iggy

VERSION = version("apache-iggy")
IS_VSR = not VERSION.startswith("0.8.")
USERNAME, PASSWORD = "iggy", "iggy"
# The client reports errors as text, 0.8.0 as the name of the variant: its texts of the numbers the scenarios speak of.
# Over HTTP the text holds the answer's JSON, and in it the number.
TEXT_OF_CODE = {
    20: r"^Resource with key|ResourceNotFound",
    40: r"^Unauthenticated",
    41: r"^Unauthorized",
    42: r"^Invalid credentials|InvalidCredentials",
    46: r"^User already exists|UserAlreadyExists",
    53: r"^Invalid personal access token|InvalidPersonalAccessToken",
    1009: r"^Stream with ID.* not found|StreamIdNotFound",
    1010: r"^Stream with name.* not found|StreamNameNotFound",
    1012: r"^Stream with name.* already exists|StreamNameAlreadyExists",
    2010: r"^Topic with ID.* not found|TopicIdNotFound",
    2011: r"^Topic with name.* not found|TopicNameNotFound",
    2013: r"^Topic with name.* already exists|TopicNameAlreadyExists",
    3007: r"^Partition with ID.* not found|PartitionNotFound",
    5000: r"^Consumer group with ID.* not found|ConsumerGroupIdNotFound",
    5003: r"^Consumer group with name.* not found|ConsumerGroupNameNotFound",
    5004: r"^Consumer group with name.* already exists|ConsumerGroupNameAlreadyExists",
}


# How often, and how soon again, a consumer tries while the server is away.
PATIENCE = {
    "polling_retry_interval": timedelta(milliseconds=200),
    "init_retries": 50,
    "init_retry_interval": timedelta(milliseconds=200),
}


class NotAsExpected(Exception):
    """The server did something else than the scenario says."""


def expect(condition, what):
    if not condition:
        raise NotAsExpected(what)


def expect_equal(found, expected, what):
    expect(found == expected, f"{what}: expected {expected!r}, found {found!r}")


async def expect_error(code, awaitable, what):
    """The call fails with the error of that number."""
    codes = (code,) if isinstance(code, int) else code
    try:
        result = await awaitable
    except Exception as error:  # the client raises plain RuntimeError
        text = str(error)
        expect(
            any(re.search(rf'{TEXT_OF_CODE[wanted]}|"id\\*":{wanted},', text) for wanted in codes),
            f"{what}: expected error {codes}, found {text!r}",
        )
    else:
        raise NotAsExpected(f"{what}: expected error {codes}, it answered {result!r}")


async def eventually(condition, what, seconds=20.0):
    """Waits until `condition` (a coroutine function) holds. Looks every 50 ms: the client has no event for it."""
    deadline = asyncio.get_running_loop().time() + seconds
    while not await condition():
        expect(asyncio.get_running_loop().time() < deadline, f"{what}: not within {seconds} s")
        await asyncio.sleep(0.05)


async def within(seconds, awaitable, what):
    """@returns the result; `what` is a function or a text that says what did not come in time."""
    try:
        return await asyncio.wait_for(awaitable, seconds)
    except asyncio.TimeoutError:
        raise NotAsExpected(f"{what() if callable(what) else what}: not within {seconds} s") from None


@dataclass
class World:
    """The server under test as one transport reaches it."""

    transport: str
    addresses: dict
    name: str = ""
    """Name of the scenario's own stream."""

    def connection_string(self, credentials=f"{USERNAME}:{PASSWORD}"):
        scheme = {"tcp": "iggy+tcp", "websocket": "iggy+ws", "quic": "iggy+quic", "http": "iggy+http"}[self.transport]
        return f"{scheme}://{credentials}@{self.addresses[self.transport]}"

    async def connect(self, username=USERNAME, password=PASSWORD, options=""):
        """A client of its own, logged in. With credentials in the address it logs in again after a reconnection.
        @param options `?KEY=VALUE` of the connection string."""
        client = iggy.IggyClient.from_connection_string(self.connection_string(f"{username}:{password}") + options)
        await client.connect()
        if self.transport == "http":
            await client.login_user(username, password)
        return client

    async def connect_with_token(self, token):
        client = iggy.IggyClient.from_connection_string(self.connection_string(token))
        await client.connect()
        return client

    async def create_topic(self, client, partitions, topic="events"):
        """The scenario's stream with one topic."""
        await client.create_stream(self.name)
        await client.create_topic(self.name, topic, partitions)
        return topic

    def http(self, method, path, body=None, token=None):
        """A call of the HTTP API, for what the Python client has no call for. @returns status and JSON."""
        headers = {"content-type": "application/json"}
        if token:
            headers["authorization"] = f"Bearer {token}"
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(
            f"http://{self.addresses['http']}{path}", data=data, method=method, headers=headers
        )
        try:
            with urllib.request.urlopen(request, timeout=10) as response:
                text = response.read()
                return response.status, json.loads(text) if text else None
        except urllib.error.HTTPError as error:
            return error.code, None

    def http_token(self):
        _, answer = self.http("POST", "/users/login", {"username": USERNAME, "password": PASSWORD})
        return answer["access_token"]["token"]


async def poll(client, stream, topic, strategy, count, partition=0, auto_commit=False, consumer=1):
    """One poll. The client of 0.8.0 knows no other consumer than 1."""
    if not IS_VSR:
        return await client.poll_messages(stream, topic, partition, strategy, count, auto_commit)
    return await client.poll_messages(
        stream=stream,
        topic=topic,
        consumer=iggy.Consumer.Single(consumer),
        polling_strategy=strategy,
        count=count,
        auto_commit=auto_commit,
        partition_id=partition,
    )


async def send(client, stream, topic, payloads, partition=0):
    await client.send_messages(stream, topic, partition, [iggy.SendMessage(payload) for payload in payloads])


async def consume(client, world, topic, group, on_message, stop, batch_length=100):
    """A member of `group` that hands over each message, stores its offset, and goes on until `stop` is set."""
    consumer = await client.consumer_group(
        group,
        world.name,
        topic,
        polling_strategy=iggy.PollingStrategy.Next(),
        batch_length=batch_length,
        auto_commit=iggy.AutoCommit.After(iggy.AutoCommitAfter.ConsumingEachMessage()),
        poll_interval=timedelta(milliseconds=20),
        **PATIENCE,
    )
    await consumer.consume_messages(on_message, stop)


async def ask(question):
    """Asks the test for what only it can do. @returns its answer, once done."""
    print(json.dumps({"ask": question}), flush=True)
    return (await asyncio.to_thread(sys.stdin.readline)).strip()
