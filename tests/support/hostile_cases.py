"""All hostile cases, by their id in docs/development/testing.md."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support import (
    hostile_id3,
    hostile_mkv,
    hostile_mp4,
    hostile_streams,
    hostile_tags,
    hostile_text,
    hostile_wav,
)

if TYPE_CHECKING:
    from support.hostile import Case


def cases() -> list[Case]:
    modules = (
        hostile_id3, hostile_mkv, hostile_mp4, hostile_streams, hostile_tags, hostile_text,
        hostile_wav,
    )  # fmt: skip
    return [case for module in modules for case in module.cases()]
