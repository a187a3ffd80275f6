"""Counts and times for Prometheus: no text, no ids.

Labels are method, route template, status, selector, reason and kind, all from small fixed sets.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tabon._internal.extras import require
from tabon.method.selection import ABSTENTIONS, Selection
from tabon.text.records import Query

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prometheus_client import Metric

SECONDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
MARGINS: Final = (0.0, 0.001, 0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
UPSTREAM_SECONDS: Final = (0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
TOKENS: Final = ("prompt", "completion")
CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"


class Metrics:
    """What one service counts, in a registry of its own; safe to use from any thread."""

    def __init__(self, selectors: Iterable[str] = ()) -> None:
        """Begin at zero, for each of these selectors too."""
        require("prometheus_client", extra="service", feature="the HTTP service")
        from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

        self.registry = CollectorRegistry()
        counter = partial(Counter, registry=self.registry)
        gauge = partial(Gauge, registry=self.registry)
        histogram = partial(Histogram, registry=self.registry)
        self.requests = counter("tabon_requests", "Finished requests.", ("method", "route", "status"))
        self.request_seconds = histogram(
            "tabon_request_seconds", "Time of a request.", ("route",), buckets=SECONDS
        )
        self.requests_running = gauge("tabon_requests_running", "Requests that run now.")
        self.batch_size = histogram("tabon_batch_size", "Queries that were answered together.", buckets=SIZES)
        self.batch_seconds = histogram("tabon_batch_seconds", "Time of a batch.", buckets=SECONDS)
        self.queue_seconds = histogram(
            "tabon_queue_seconds", "Time of a query in the queue.", buckets=SECONDS
        )
        self.queue_length = gauge("tabon_queue_length", "Queries in the queue now.")
        self.queue_refused = counter("tabon_queue_refused", "Queries that found it full.")
        self.ready = gauge("tabon_ready", "Whether the golden query is answered as at start.")
        self.cached_sentences = gauge("tabon_cached_sentences", "Sentences in memory now.")
        self.cache_hits = gauge("tabon_cache_hits", "Sentences that were in memory.")
        self.cache_misses = gauge("tabon_cache_misses", "Sentences that were not.")
        self.selections = counter("tabon_selections", "Queries that were answered.", ("selector",))
        self.abstentions = counter("tabon_abstentions", "Queries without a pick.", ("reason",))
        self.missing_priors = counter("tabon_missing_priors", "Queries without a prior report.")
        self.margin = histogram(
            "tabon_margin", "Distance from the pick to the second best.", ("selector",), buckets=MARGINS
        )
        self.drafts = counter("tabon_gateway_drafts", "Drafts that were asked for.")
        self.drafts_failed = counter("tabon_gateway_drafts_failed", "Drafts that failed.")
        self.drafts_stopped = counter("tabon_gateway_drafts_stopped", "Drafts stopped early.")
        self.tokens = counter("tabon_gateway_tokens", "Tokens that the upstream says it used.", ("kind",))
        self.upstream_calls = counter("tabon_gateway_upstream_calls", "Calls upstream.")
        self.upstream_failures = counter("tabon_gateway_upstream_failures", "Of these, failed.")
        self.upstream_seconds = histogram(
            "tabon_gateway_upstream_seconds",
            "Time of a call upstream, to the end of its answer.",
            buckets=UPSTREAM_SECONDS,
        )
        for selector in selectors:  # what has a label begins at 0, not at its first count
            self.selections.labels(selector)
            self.margin.labels(selector)
        for reason in ABSTENTIONS:
            self.abstentions.labels(reason)
        for kind in TOKENS:
            self.tokens.labels(kind)

    def count(self, selector: str, query: Query, selection: Selection) -> None:
        """Count the answer to one query."""
        self.selections.labels(selector).inc()
        self.missing_priors.inc(query.prior.is_empty)
        if selection.abstained is not None:
            self.abstentions.labels(selection.abstained).inc()
        elif selection.margin is not None:
            self.margin.labels(selector).observe(selection.margin)

    def count_tokens(self, usage: Mapping[str, Any]) -> None:
        """Count what an upstream says it used; it may say anything."""
        for kind in TOKENS:
            number = usage.get(f"{kind}_tokens")
            if isinstance(number, int | float):
                self.tokens.labels(kind).inc(number)

    def collect(self) -> "Iterator[Metric]":
        """Yield what was counted, less `_created`: the library switches these off for all registries only."""
        for metric in self.registry.collect():
            metric.samples = [one for one in metric.samples if not one.name.endswith("_created")]
            yield metric

    def text(self) -> bytes:
        """Return everything in the text format."""
        from prometheus_client import generate_latest

        return generate_latest(self)
