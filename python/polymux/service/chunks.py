"""Chunks of chats on their way to callers: made here, or as another server has sent them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from polymux._core import ChatChunk

    #: A chunk's JSON as a dict, or an upstream's chunk, which nobody has parsed.
    Chunk: TypeAlias = "dict[str, Any] | ChatChunk"


def line_of(chunk: ChatChunk) -> bytes:
    r"""An upstream's chunk as JSON on one line, all its members as they came.

    Example:
        >>> import polymux
        >>> line_of(polymux.ChatChunk(b'{"choices": [],\n"x": 1}'))
        b'{"choices": [], "x": 1}'
    """
    raw = chunk.raw
    # JSON has line ends between its values alone: within texts they are escaped.
    return raw.replace(b"\n", b" ") if b"\n" in raw else raw
