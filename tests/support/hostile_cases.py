"""All hostile cases, by their id in docs/testing.md."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from support import (
    hostile_id3,
    hostile_mkv,
    hostile_mp4,
    hostile_streams,
    hostile_text,
    hostile_wav,
)

if TYPE_CHECKING:
    from support.hostile import Case

MODULES = (hostile_id3, hostile_mkv, hostile_mp4, hostile_streams, hostile_text, hostile_wav)


@cache
def _all() -> list[Case]:
    return [case for module in MODULES for case in module.cases()]


def of(identifier: str) -> list[Case]:
    """The cases of one id; there is at least one."""
    found = [case for case in _all() if case.id == identifier]
    if not found:
        raise LookupError(f"no hostile case has the id {identifier}")
    return found
