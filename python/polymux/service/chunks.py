"""Chunks of chats on their way to callers: made here, or as another server has sent them."""

from __future__ import annotations

from contextlib import aclosing
from typing import TYPE_CHECKING, Any, TypeAlias

from polymux._native import core
from polymux.service.errors import engine_failed
from polymux.service.model import OperationResult

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from polymux.service.model import ProgressSink

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux._native._core import ChatChunk

    #: A chunk's JSON as a dict, or an upstream's chunk, which nobody has parsed.
    Chunk: TypeAlias = "dict[str, Any] | ChatChunk"

#: Of one answer; what an upstream tells beyond it is a mistake, and no sum can be made with it.
_MAX_TOKENS = 1 << 40


def plain_of(chunk: Chunk) -> dict[str, Any]:
    r"""A chunk's members; none of a chunk that is no JSON object.

    Example:
        >>> import polymux
        >>> plain_of(polymux.ChatChunk(b'{"choices": []}'))
        {'choices': []}
    """
    if isinstance(chunk, dict):
        return chunk
    plain = core.parse_json(chunk.raw)
    return plain if isinstance(plain, dict) else {}


def text_of(plain: Mapping[str, Any]) -> str:
    """What a chunk adds to the answer's text; empty where it adds nothing.

    Args:
        plain: As `plain_of` gives it, of either chat.

    Example:
        >>> text_of({"choices": [{"delta": {"content": "Hi"}}]}), text_of({"response": "Hi"})
        ('Hi', 'Hi')
    """
    if "response" in plain:
        text = plain["response"]
    else:
        choices = plain.get("choices")
        first = choices[0] if isinstance(choices, list) and choices else None
        delta = first.get("delta") if isinstance(first, dict) else None
        text = delta.get("content") if isinstance(delta, dict) else None
    return text if isinstance(text, str) else ""


def counts_of(plain: Mapping[str, Any]) -> dict[str, float]:
    """How many tokens there were, of a chunk that tells it: as numbers of a job.

    What can be no count of tokens is left out.

    Example:
        >>> counts_of({"usage": {"prompt_tokens": 3, "completion_tokens": 10**400}})
        {'input_token_count': 3}
    """
    usage = plain.get("usage")
    if not isinstance(usage, dict):
        return {}
    names = {"prompt_tokens": "input_token_count", "completion_tokens": "output_token_count"}
    return {
        own: usage[name]
        for name, own in names.items()
        if type(usage.get(name)) is int and 0 <= usage[name] <= _MAX_TOKENS
    }


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


#: In characters; what is only handed on has no such limit.
_MAX_COLLECTED_CHARACTERS = 1 << 20


async def collect_stream(chunks: AsyncIterator[Chunk], sink: ProgressSink) -> OperationResult:
    """The texts of a chat's chunks, as a list; the sink is told of each.

    Raises:
        InternalServerError: The answer has over 1,048,576 characters (code ``engine_failed``).

    Example:
        >>> import asyncio
        >>> from polymux.service.chunks import collect_stream
        >>> from polymux.service.model import ProgressSink
        >>> async def chunks():
        ...     yield {"choices": [{"delta": {"content": "Hel"}}]}
        ...     yield {"choices": [{"delta": {"content": "lo"}}]}
        >>> asyncio.run(collect_stream(chunks(), ProgressSink(lambda: None, None))).output
        ['Hel', 'lo']
    """
    counts: dict[str, float] = {}
    length = 0
    async with aclosing(chunks) as pieces:  # type: ignore[type-var]
        async for chunk in pieces:
            plain = plain_of(chunk)
            counts |= counts_of(plain)
            text = text_of(plain)
            length += len(text)
            if length > _MAX_COLLECTED_CHARACTERS:
                raise engine_failed(
                    f"the answer is over {_MAX_COLLECTED_CHARACTERS} characters: "
                    "ask for fewer tokens"
                )
            if text:
                sink.emit_text(text)
    return OperationResult(sink.text_pieces or [], metrics=counts)
