"""Counts and times in the text format of Prometheus: no text, no ids.

Labels are method, route template and status, all from small fixed sets.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from threading import Lock
from typing import Final

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


@dataclass(slots=True)
class Histogram:
    """How often a value fell under each bound.

    >>> one = Histogram((1.0, 2.0))
    >>> one.add(1.5)
    >>> list(one.lines("x", ""))
    ['x_bucket{le="1"} 0', 'x_bucket{le="2"} 1', 'x_bucket{le="+Inf"} 1', 'x_sum 1.5', 'x_count 1']
    """

    bounds: tuple[float, ...]
    counts: Counter[int] = field(default_factory=Counter)
    total: float = 0.0

    def add(self, value: float) -> None:
        """Count one value."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str, labels: str) -> Iterator[str]:
        """Yield the samples of this histogram; labels stand before `le`."""
        so_far, before = 0, f"{labels}," if labels else ""
        for place, bound in enumerate((*(f"{bound:g}" for bound in self.bounds), "+Inf")):
            so_far += self.counts[place]
            yield f'{name}_bucket{{{before}le="{bound}"}} {so_far}'
        braces = f"{{{labels}}}" if labels else ""
        yield f"{name}_sum{braces} {self.total:g}"
        yield f"{name}_count{braces} {so_far}"


class Metrics:
    """What the service counts; safe to use from any thread."""

    def __init__(self) -> None:
        """Begin at zero."""
        self._lock = Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._seconds: dict[str, Histogram] = {}
        self._batches = Histogram(SIZES)
        self._work = Histogram(SECONDS)
        self._waits = Histogram(SECONDS)
        self._gauges: dict[str, float] = {}
        self._counts: Counter[str] = Counter()

    def request(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count one finished request."""
        with self._lock:
            self._requests[method, route, status] += 1
            self._seconds.setdefault(route, Histogram(SECONDS)).add(seconds)

    def batch(self, size: int, seconds: float) -> None:
        """Count one batch of queries that was answered together."""
        with self._lock:
            self._batches.add(size)
            self._work.add(seconds)

    def waited(self, seconds: float) -> None:
        """Count the time that one query stood in the queue."""
        with self._lock:
            self._waits.add(seconds)

    def count(self, name: str, by: int = 1) -> None:
        """Add to a plain count."""
        with self._lock:
            self._counts[name] += by

    def gauge(self, name: str, value: float) -> None:
        """Set what stands at some value now."""
        with self._lock:
            self._gauges[name] = value

    def text(self) -> str:
        """Return everything in the text format."""
        with self._lock:
            return "\n".join(self._lines()) + "\n"

    def _lines(self) -> Iterator[str]:
        """Yield every line."""
        yield "# TYPE tabon_requests_total counter"
        for (method, route, status), count in sorted(self._requests.items()):
            yield f'tabon_requests_total{{method="{method}",route="{route}",status="{status}"}} {count}'
        yield "# TYPE tabon_request_seconds histogram"
        for route, times in sorted(self._seconds.items()):
            yield from times.lines("tabon_request_seconds", f'route="{route}"')
        for name, one in (
            ("tabon_batch_size", self._batches),
            ("tabon_batch_seconds", self._work),
            ("tabon_queue_seconds", self._waits),
        ):
            yield f"# TYPE {name} histogram"
            yield from one.lines(name, "")
        for kind, values in (("counter", self._counts), ("gauge", self._gauges)):
            for name, value in sorted(values.items()):
                yield f"# TYPE tabon_{name} {kind}"
                yield f"tabon_{name} {value:g}"
