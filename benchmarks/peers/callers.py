"""Many callers of one server, each with one request at a time, in a separate process.

Run it as ``python callers.py URL CALLERS SECONDS``; it prints JSON: answers by status, and the
seconds of each. It writes bytes to sockets, so that it takes little of the processor.
"""

from __future__ import annotations

import asyncio
import json
import random
import sys
import time
from collections import Counter
from urllib.parse import urlsplit

_PEOPLE = ("A man", "A woman", "A girl", "Two boys", "An old couple", "Some children")
_ACTS = ("throws a ball", "rides a bike", "eats soup", "reads a book", "feeds the ducks")
_PLACES = ("in the park", "on the beach", "at home", "near the station", "by the lake")
_CONDITIONS = ("the number of people", "the activity", "the place", "the age of the people")


def request(generator: random.Random) -> bytes:
    """One pair under one condition; hardly any two are the same."""
    pair = [
        f"{generator.choice(_PEOPLE)} {generator.choice(_ACTS)} {generator.choice(_PLACES)} at "
        f"{generator.randrange(24)}:{generator.randrange(60):02}."
        for _ in range(2)
    ]
    body = json.dumps({"pairs": [pair], "conditions": [generator.choice(_CONDITIONS)]}).encode()
    head = "POST /v1/score HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


async def caller(
    url: str, seed: int, until: float, statuses: Counter[str], seconds: list[float]
) -> None:
    """Ask until the time is over; after a 429, wait as it was told."""
    generator = random.Random(seed)
    address = urlsplit(url)
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    while (began := time.perf_counter()) < until:
        writer.write(request(generator))
        head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").lower()
        fields = dict(line.split(": ", 1) for line in head.split("\r\n")[1:] if ": " in line)
        await reader.readexactly(int(fields["content-length"]))
        status = head.split()[1]
        statuses[status] += 1
        if status == "200":
            seconds.append(time.perf_counter() - began)
        await asyncio.sleep(float(fields.get("retry-after", 0)))
    writer.close()


async def main(url: str, callers: int, duration: float) -> None:
    """Run all callers; a connection that breaks counts as an error of its name."""
    statuses: Counter[str] = Counter()
    seconds: list[float] = []
    began = time.perf_counter()
    some = (caller(url, seed, began + duration, statuses, seconds) for seed in range(callers))
    for found in await asyncio.gather(*some, return_exceptions=True):
        if isinstance(found, BaseException):
            statuses[type(found).__name__] += 1
    took = time.perf_counter() - began
    sys.stdout.write(json.dumps({"statuses": statuses, "seconds": seconds, "took": took}))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3])))
