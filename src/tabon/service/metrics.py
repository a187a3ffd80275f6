"""Counts and times for Prometheus: no text, no ids.

Labels are method, route template and status, all from small fixed sets.
"""

from typing import TYPE_CHECKING, Final

from tabon._internal.extras import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What one service counts, in a registry of its own; safe to use from any thread."""

    def __init__(self) -> None:
        """Begin at zero."""
        require("prometheus_client", extra="service", feature="the HTTP service")
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = to = CollectorRegistry()
        labels = ("method", "route", "status")
        self.requests = Counter("tabon_requests", "Finished requests.", labels, registry=to)
        self.request_seconds = Histogram(
            "tabon_request_seconds", "Time of a request.", ("route",), buckets=SECONDS, registry=to
        )
        self.requests_running = Gauge("tabon_requests_running", "Requests that run now.", registry=to)
        self.batch_size = Histogram(
            "tabon_batch_size", "Queries that were answered together.", buckets=SIZES, registry=to
        )
        self.batch_seconds = Histogram(
            "tabon_batch_seconds", "Time of a batch.", buckets=SECONDS, registry=to
        )
        self.queue_seconds = Histogram(
            "tabon_queue_seconds", "Time of a query in the queue.", buckets=SECONDS, registry=to
        )
        self.queue_length = Gauge("tabon_queue_length", "Queries in the queue now.", registry=to)
        self.queue_refused = Counter("tabon_queue_refused", "Queries that found it full.", registry=to)
        self.ready = Gauge("tabon_ready", "Whether the golden query is answered as at start.", registry=to)
        self.cached_sentences = Gauge("tabon_cached_sentences", "Sentences in memory now.", registry=to)
        self.cache_hits = Gauge("tabon_cache_hits", "Sentences that were in memory.", registry=to)
        self.cache_misses = Gauge("tabon_cache_misses", "Sentences that were not.", registry=to)
        self.drafts = Counter("tabon_gateway_drafts", "Drafts that were asked for.", registry=to)
        self.drafts_failed = Counter("tabon_gateway_drafts_failed", "Drafts that failed.", registry=to)
        self.drafts_stopped = Counter("tabon_gateway_drafts_stopped", "Drafts stopped early.", registry=to)
        self.upstream_calls = Counter("tabon_gateway_upstream_calls", "Calls upstream.", registry=to)
        self.upstream_failures = Counter("tabon_gateway_upstream_failures", "Of these, failed.", registry=to)

    def collect(self) -> "Iterator[Metric]":
        """Yield what was counted, less `_created`: the library switches these off for all registries only."""
        for metric in self.registry.collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric

    def text(self) -> bytes:
        """Return everything in the text format."""
        from prometheus_client import generate_latest

        return generate_latest(self)
