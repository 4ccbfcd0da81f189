"""Prometheus metrics: requests, durations, sizes, queues, engines and usage per API key."""

from __future__ import annotations

import math
from bisect import bisect_left
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from prometheus_client import Counter
    from prometheus_client.core import HistogramMetricFamily

    from polymux.service.model import OperationRequest
    from polymux.service.service import Service

_TOKENS = {"input_token_count": "input", "output_token_count": "output"}
_BOUNDS = (
    0.001,
    0.0025,
    0.005,
    0.01,
    0.025,
    0.05,
    0.1,
    0.25,
    0.5,
    1,
    2.5,
    5,
    10,
    30,
    60,
    300,
    1800,
)


class _Durations:
    """Histogram of seconds by operation, which can count several requests at once."""

    def __init__(self) -> None:
        #: By operation: one count for each bound and for longer durations, and the sum.
        self._found: dict[str, tuple[list[int], list[float]]] = {}

    def observe(self, operation: str, seconds: float, count: int) -> None:
        found = self._found.get(operation)
        if found is None:
            found = self._found[operation] = [0] * (len(_BOUNDS) + 1), [0.0]
        counts, total = found
        counts[bisect_left(_BOUNDS, seconds)] += count
        total[0] += seconds * count

    def collect(self) -> Iterator[HistogramMetricFamily]:
        from prometheus_client.core import HistogramMetricFamily

        words = "Seconds from the request header to the last byte of the response"
        family = HistogramMetricFamily("polymux_request_seconds", words, labels=["operation"])
        for operation, (counts, total) in list(self._found.items()):
            below, buckets = 0, []
            for bound, count in zip((*_BOUNDS, math.inf), counts, strict=True):
                below += count
                buckets.append(("+Inf" if bound == math.inf else repr(float(bound)), below))
            family.add_metric([operation], buckets, total[0])
        yield family


class Metrics:
    """The metrics of one server; servers in the same process do not share them."""

    def __init__(self) -> None:
        from prometheus_client import CollectorRegistry, Counter, Gauge

        self.registry = CollectorRegistry()
        #: The kind of each endpoint with answered requests, by its name.
        self.kinds: dict[str, str] = {}

        def counter(name: str, words: str, *labels: str) -> Counter:
            return Counter(f"polymux_{name}", words, labels, registry=self.registry)

        def gauge(name: str, words: str, *labels: str) -> Gauge:
            return Gauge(f"polymux_{name}", words, labels, registry=self.registry)

        self.requests = counter("requests", "Answered requests", "operation", "status")
        self._durations = _Durations()
        self.registry.register(self._durations)
        self.usage = counter("key_requests", "Requests of an API key", "key", "operation")
        words = "Seconds that backends worked for an API key, including failures"
        self.work_seconds = counter("key_work_seconds", words, "key", "operation")
        words = "Chat tokens of an API key, as reported by backends"
        self.tokens = counter("key_tokens", words, "key", "operation", "kind")
        self._answered: dict[tuple[str, int], Counter] = {}
        self._used: dict[tuple[str, str], Counter] = {}
        self.running = gauge("running", "Running requests", "backend")
        self.waiting = gauge("waiting", "Requests in the queue", "backend")
        self.engine = gauge("engine_ready", "1 if the engine is loaded and healthy", "backend")
        self.stored = gauge("stored_bytes", "Size of all files in the store")
        self.jobs = gauge("jobs_running", "Running and waiting jobs")

    def note(
        self,
        operation: str,
        kind: str,
        status: int,
        seconds: float,
        key: str | None,
        *,
        count: int = 1,
    ) -> None:
        """Count answered requests of an endpoint with this name and kind."""
        # Cached, because looking up a child costs more than counting.
        answered = self._answered.get((operation, status))
        if answered is None:
            answered = self.requests.labels(operation, str(status))
            self._answered[operation, status] = answered
            self.kinds[operation] = kind
        answered.inc(count)
        self._durations.observe(operation, seconds, count)
        if key is not None:
            used = self._used.get((key, operation))
            if used is None:
                used = self._used[key, operation] = self.usage.labels(key, operation)
            used.inc(count)

    def spent(self, work: OperationRequest, seconds: float, counts: Mapping[str, float]) -> None:
        """Count the time and tokens of finished work; called by `Service`."""
        key = work.caller.id
        self.work_seconds.labels(key, work.operation).inc(seconds)
        for name, kind in _TOKENS.items():
            if counts.get(name, 0) > 0:
                self.tokens.labels(key, work.operation, kind).inc(counts[name])

    def text(self, service: Service | None) -> bytes:
        """Return all metrics in the Prometheus text format."""
        from prometheus_client import generate_latest

        if service is not None:
            for name, place in service.places.items():
                self.running.labels(name).set(place.running)
                self.waiting.labels(name).set(place.waiting)
                state = service.backends[name].health().state
                self.engine.labels(name).set(1 if state == "ready" else 0)
            self.stored.set(service.store.usage.total_bytes)
            self.jobs.set(service.jobs.count)
        return bytes(generate_latest(self.registry))
