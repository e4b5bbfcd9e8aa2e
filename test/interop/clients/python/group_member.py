"""One member of a group, until it is killed: a JSON line per message it was handed.

    group_member.py TCP_ADDRESS STREAM TOPIC GROUP
"""

import asyncio
import json
import sys

import apache_iggy as iggy
from scenario import World, consume

# A poll and a heartbeat that fail together reconnect twice, and the client waits this long in between: 5 s by default.
OPTIONS = "reestablish_after=1s"


async def main():
    address, stream, topic, group = sys.argv[1:]
    world = World("tcp", {"tcp": address}, stream)

    async def hand(message):
        line = {"partition": message.partition_id(), "offset": message.offset(), "text": message.payload().decode()}
        print(json.dumps(line), flush=True)

    while True:
        # A commit that fails while the server is away ends the consumer of 0.9.0. A new client begins where the group is.
        try:
            client = iggy.IggyClient.from_connection_string(f"{world.connection_string()}?{OPTIONS}")
            await client.connect()
            await consume(client, world, topic, group, hand, asyncio.Event())
        except RuntimeError as error:
            print(f"begins anew after: {error}", file=sys.stderr)


asyncio.run(main())
