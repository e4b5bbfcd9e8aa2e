"""Runs scenarios with the official Python client against one server: one JSON line per scenario and transport.

    main.py --transport tcp --tcp HOST:PORT --websocket HOST:PORT --quic HOST:PORT --http HOST:PORT SCENARIO...
"""

import argparse
import asyncio
import json
import time
import traceback

from administration import ADMINISTRATION
from messages import MESSAGES
from groups import GROUPS
from scenario import VERSION, NotAsExpected, World, within

SCENARIOS = {**ADMINISTRATION, **MESSAGES, **GROUPS}
SCENARIO_SECONDS = 150


async def run(name, world):
    """@returns whether the scenario held, and why not."""
    try:
        await within(SCENARIO_SECONDS, SCENARIOS[name](world), "the scenario ends")
    except NotAsExpected as error:
        return False, str(error)
    except Exception as error:
        place = traceback.extract_tb(error.__traceback__)[-1]
        return False, f"{type(error).__name__}: {error} (line {place.lineno} of {place.name})"
    return True, ""


async def main():
    parser = argparse.ArgumentParser()
    transports = ["tcp", "websocket", "quic", "http"]
    parser.add_argument("--transport", choices=transports, required=True)
    for transport in transports:
        parser.add_argument(f"--{transport}", required=True)
    parser.add_argument("scenarios", nargs="+", choices=list(SCENARIOS))
    options = parser.parse_args()
    addresses = {transport: getattr(options, transport) for transport in transports}
    for name in options.scenarios:
        world = World(options.transport, addresses, f"{name}-python-{VERSION}-{options.transport}")
        started = time.monotonic()
        ok, detail = await run(name, world)
        line = {
            "client": "python",
            "version": VERSION,
            "transport": options.transport,
            "scenario": name,
            "ok": ok,
            "detail": detail,
            "seconds": round(time.monotonic() - started, 2),
        }
        print(json.dumps(line), flush=True)


asyncio.run(main())
