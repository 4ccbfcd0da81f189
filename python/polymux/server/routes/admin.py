"""The administration API: status of engines, models, memory, API keys and upstreams.

Also unloads engines. `api_keys` manages API keys.
"""

from __future__ import annotations

import asyncio
import math
import os
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from polymux import errors
from polymux._native.version import __version__
from polymux._util.memory import machine_free_bytes, resident_bytes
from polymux._util.text import shown
from polymux.models import registry
from polymux.models.folder import ModelsFolder
from polymux.server.auth.api_keys import known_scopes
from polymux.server.routes.endpoint import Endpoint
from polymux.service.errors import status_error
from polymux.service.job_table import moment

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from polymux.server.auth.api_keys import Key
    from polymux.server.observability.metrics import Metrics
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.backend import Backend

PATH = "/api/v1/administration"
_FIRST_FAILURE = 400


class AdministrationEndpoint(Endpoint):
    """Base of endpoints that require all scopes or the scope ``administration``."""

    name = "administration"
    kind = "monitoring"


class Administration(AdministrationEndpoint):
    """``GET /api/v1/administration``."""

    async def handle(self, asked: RequestContext) -> Any:
        """Return the current status; contains no API keys, hashes of keys or paths."""
        service = self.state.service
        return {
            "version": __version__,
            "engines": _backends(self.state, upstream=False),
            "upstreams": _backends(self.state, upstream=True),
            "keys": described_keys(self.state, self.state.keys.keys(), asked.access.caller.id),
            "scopes": list(known_scopes()),
            "requests": requests_of(self.state.metrics),
            "store": {
                "used_bytes": service.store.usage.total_bytes,
                "limit_bytes": self.state.settings.store.bytes,
                "retention_s": self.state.settings.store.retention_s,
                "keep_s": self.state.settings.store.retention_s,  # Its old name, until 0.3.
                "jobs_running": service.jobs.count,
            },
            **await asyncio.to_thread(_models),
            "memory": {
                **await asyncio.to_thread(_memory),
                "engines_limit_bytes": self.state.settings.limits.engines_memory_bytes,
            },
        }


class EngineUnload(AdministrationEndpoint):
    """``POST /api/v1/administration/engines/{name}/unload``."""

    methods = ("POST",)

    async def handle(self, asked: RequestContext) -> Any:
        """End an engine's process to free its memory; the next request loads its models again."""
        name = asked.scope["path_params"]["name"]
        settings = self.state.settings
        backend = self.state.service.backends.get(name)
        if backend is None or name in settings.upstreams:
            known = [one for one in self.state.service.backends if one not in settings.upstreams]
            raise status_error(
                errors.NotFoundError,
                f"unknown engine {shown(name)} (known: {', '.join(known) or 'none'})",
            )
        if self.state.service.places[name].running or not await backend.unload():
            raise status_error(
                errors.ConflictError,
                f"engine {name} is busy. Try again later, or cancel its jobs",
                code="engine_at_work",
            )
        return _backend(self.state, backend)


def _backends(state: ServerState, *, upstream: bool) -> list[dict[str, Any]]:
    """Describe the engines, or the upstreams, in the order of use."""
    return [
        _backend(state, backend)
        for name, backend in state.service.backends.items()
        if (name in state.settings.upstreams) is upstream
    ]


def _backend(state: ServerState, backend: Backend) -> dict[str, Any]:
    health, place = backend.health(), state.service.places[backend.name]
    description = {
        "name": backend.name,
        "state": health.state,
        "detail": health.detail,
        "loaded": backend.is_loaded,
        "memory_bytes": backend.resident_bytes,
        "operations": sorted(backend.operations),
        "models": None if backend.models is None else list(backend.models),
        "max_concurrency": backend.max_concurrency,
        "slots": backend.max_concurrency,  # Its old name, until 0.3.
        "running": place.running,
        "waiting": place.waiting,
    }
    settings = state.settings.upstreams.get(backend.name)
    if settings is not None:
        description |= {"kind": settings.kind, "host": urlsplit(settings.base_url).hostname or ""}
    return description


def described_keys(state: ServerState, keys: Sequence[Key], own: str) -> list[dict[str, Any]]:
    """Describe API keys, without the keys or their hashes.

    Args:
        state: The server's state, which counts requests.
        keys: The API keys.
        own: Id of the client's API key.
    """
    used: dict[str, dict[str, float]] = defaultdict(lambda: defaultdict(float))
    for name, labels, value in _samples(state.metrics):
        if name in _KEY_USE:
            used[labels["key"]][_KEY_USE[name]] += value
    return [_key(one, used[one.id], own) for one in keys]


#: Metrics of API keys, and their names in the answer.
_KEY_USE = {
    "polymux_key_requests_total": "requests",
    "polymux_key_work_seconds_total": "work_s",
    "polymux_key_tokens_total": "tokens",
}


def _key(key: Key, used: Mapping[str, float], own: str) -> dict[str, Any]:
    return {
        "id": key.id,
        "name": key.name,
        "own": key.id == own,
        "created_at": moment(key.created_at),
        "expires_at": moment(key.expires_at),
        "scopes": None if key.scopes is None else list(key.scopes),
        "requests_per_minute": key.requests_per_minute,
        "concurrent": key.concurrent,
        "max_estimate_s": key.max_estimate_s,
        "longest_estimate_s": key.max_estimate_s,  # Its old name, until 0.3.
        "requests": int(used["requests"]),
        "work_s": round(used["work_s"], 3),
        "tokens": int(used["tokens"]),
    }


def requests_of(metrics: Metrics) -> list[dict[str, Any]]:
    """Return requests, failures and durations per operation since the start.

    ``p50_s`` and ``p95_s`` are estimates from a histogram. ``kind`` is ``api``, ``monitoring``, or
    ``web_ui`` for the files of the web UI.

    Example:
        >>> from polymux.server.routes.admin import requests_of
        >>> from polymux.server.observability.metrics import Metrics
        >>> metrics = Metrics()
        >>> metrics.note("chat", "api", 200, 0.5, None)
        >>> metrics.note("chat", "api", 503, 0.1, None)
        >>> [chat] = requests_of(metrics)
        >>> chat["operation"], chat["kind"], chat["requests"], chat["failures"], chat["mean_s"]
        ('chat', 'api', 2, 1, 0.3)
    """
    counts: dict[str, int] = defaultdict(int)
    failures: dict[str, int] = defaultdict(int)
    seconds: dict[str, float] = defaultdict(float)
    buckets: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for name, labels, value in _samples(metrics):
        if name == "polymux_requests_total":
            counts[labels["operation"]] += int(value)
            if int(labels["status"]) >= _FIRST_FAILURE:
                failures[labels["operation"]] += int(value)
        elif name == "polymux_request_seconds_sum":
            seconds[labels["operation"]] += value
        elif name == "polymux_request_seconds_bucket":
            buckets[labels["operation"]].append((float(labels["le"]), value))
    return [
        {
            "operation": operation,
            "kind": metrics.kinds[operation],
            "requests": count,
            "failures": failures[operation],
            "mean_s": round(seconds[operation] / count, 4),
            "p50_s": quantile(buckets[operation], 0.5),
            "p95_s": quantile(buckets[operation], 0.95),
        }
        for operation, count in sorted(counts.items())
    ]


def quantile(buckets: Sequence[tuple[float, float]], share: float) -> float:
    """Estimate a quantile from the cumulative counts of a histogram, as Prometheus does.

    Args:
        buckets: Upper bounds, the last of which is infinite, and cumulative counts; ascending.
        share: The quantile, from 0 to 1.

    Returns:
        The estimate: linear between two bounds, and the highest finite bound above it.

    Example:
        >>> from polymux.server.routes.admin import quantile
        >>> quantile([(0.1, 0.0), (0.2, 10.0), (float("inf"), 10.0)], 0.5)
        0.15
    """
    rank = share * buckets[-1][1]
    low, before = 0.0, 0.0
    for high, count in buckets:
        if high == math.inf:
            break
        if count >= rank and count > before:
            return round(low + (high - low) * (rank - before) / (count - before), 4)
        low, before = high, count
    return low


def _samples(metrics: Metrics) -> Iterator[tuple[str, dict[str, str], float]]:
    for family in metrics.registry.collect():
        for one in family.samples:
            yield one.name, one.labels, one.value


def _models() -> dict[str, list[dict[str, Any]]]:
    """List the installed models, and the others of the registry; reads the folder of models."""
    installed = ModelsFolder().installed()
    names = {one.name for one in installed}
    return {
        "models": [
            {
                "name": one.name,
                "family": one.family,
                "bytes": one.bytes,
                "license": one.manifest.license,
                "problem": one.problem,
            }
            for one in installed
        ],
        "available_models": [
            {"name": one.name, "family": one.family, "title": one.title, "bytes": one.bytes}
            for one in registry.all_models()
            if one.name not in names
        ],
    }


def _memory() -> dict[str, int | None]:
    """Return the free memory of the machine, and that of the server and of engine processes."""
    own = os.getpid()
    found = [own]
    for pid in found:
        with suppress(OSError):  # A process or a thread may end meanwhile.
            for path in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(one) for one in path.read_text("ascii").split()]
    return {
        "free_bytes": machine_free_bytes(),
        "server_bytes": resident_bytes(own),
        "engines_bytes": sum(resident_bytes(one) for one in found if one != own),
    }
