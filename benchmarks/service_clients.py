"""Fifty HTTP clients in one process, in plain asyncio so that they cost little beside the service.

Run with an address, a file of bodies, where to begin, how long and how often.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from itertools import cycle, islice
from pathlib import Path
from time import perf_counter
from urllib.parse import urlsplit

CLIENTS = 50
HEAD = (
    "POST /v1/select HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n"
    "Content-Length: {size}\r\n\r\n"
)


@dataclass(frozen=True)
class Load:
    """What fifty clients saw."""

    answered: int
    errors: int
    seconds: float
    p50: float
    p99: float

    @property
    def rate(self) -> float:
        """Return the answers a second."""
        return self.answered / self.seconds


async def ask_on(address: str, bodies: Iterator[bytes], until: float) -> tuple[list[float], int]:
    """Ask on one connection until the time or the bodies are over; return times and the count of errors."""
    host, port = urlsplit(address).hostname, urlsplit(address).port
    reader, writer = await asyncio.open_connection(host, port)
    times, errors = [], 0
    for body in bodies:
        start = perf_counter()
        writer.write(HEAD.format(host=host, size=len(body)).encode() + body)
        head = await reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().partition(b"content-length:")[2].split(b"\r\n")[0])
        await reader.readexactly(length)
        times.append(perf_counter() - start)
        errors += not head.startswith(b"HTTP/1.1 200")
        if perf_counter() > until:
            break
    writer.close()
    return times, errors


async def ask_all(address: str, bodies: Iterator[bytes], seconds: float) -> Load:
    """Ask with fifty clients at once, who share the bodies."""
    begin = perf_counter()
    until = begin + (seconds or 3600.0)
    found = await asyncio.gather(*(ask_on(address, bodies, until) for _ in range(CLIENTS)))
    times = sorted(one for times, _ in found for one in times) or [0.0]
    p50, p99 = times[len(times) // 2], times[int(len(times) * 0.99)]
    errors = sum(errors for _, errors in found)
    return Load(len(times), errors, perf_counter() - begin, p50, p99)


def main() -> None:
    """Ask, and print what was seen; each body is sent once, unless all of them were."""
    address, path, start, seconds, count = sys.argv[1:]
    known = cycle(Path(path).read_bytes().split(b"\n"))
    bodies = islice(known, int(start), int(start) + int(count) if int(count) else None)
    print(json.dumps(asdict(asyncio.run(ask_all(address, bodies, float(seconds))))))


if __name__ == "__main__":
    main()
