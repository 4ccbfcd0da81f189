"""Whether the routes of settings lead to what there will be; no engine is made for that."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux._util.text import shown

if TYPE_CHECKING:
    from collections.abc import Collection

    from polymux.runtime.settings import ServiceSettings


#: What is no engine and no upstream; whether it is there is found at the start.
_OWN = {
    "download": ("download_video", "download_music"),
    "summaries": ("summarize_video",),
    "songs": ("identify_song", "search_music"),
    "song_recognition": ("identify_song",),
    "song_search": ("search_music",),
}


def route_problems(settings: ServiceSettings) -> list[str]:
    """What is wrong with the routes; empty for nothing."""
    if not settings.routes:
        return []
    known = _operations_of(settings)
    return [
        f"routes.{operation}: no engine or upstream of the name {shown(route.backend)} does that"
        for operation, wanted in settings.routes.items()
        for route in wanted
        if operation not in known.get(route.backend, ())
    ]


def _operations_of(settings: ServiceSettings) -> dict[str, Collection[str]]:
    """Name of a backend to what it can do."""
    from polymux.runtime.build import OPERATIONS, installed_engines

    engines = installed_engines() if settings.engines is None else settings.engines
    known: dict[str, Collection[str]] = {**_OWN}
    for name, engine in engines.items():
        known[name] = engine.operations or OPERATIONS.get(engine.family, ())
    return known | {name: one.does for name, one in settings.upstreams.items()}
