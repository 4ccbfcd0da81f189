"""Chunks of streamed chats: created here, or received from an upstream."""

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

    #: A chunk as a dict, or an upstream's unparsed chunk.
    Chunk: TypeAlias = "dict[str, Any] | ChatChunk"

#: Maximum plausible token count of one answer; ignores larger counts from upstreams.
_MAX_TOKENS = 1 << 40


def plain_of(chunk: Chunk) -> dict[str, Any]:
    r"""Return a chunk as a dict; empty if the chunk is not a JSON object.

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
    """Return the text that a chunk adds to the answer, or an empty string.

    Args:
        plain: Result of `plain_of`, of chat or free_chat.

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
    """Return the token counts in a chunk as metrics of a job.

    Ignores invalid counts.

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
    r"""Return an upstream's chunk as JSON on one line, with all members unchanged.

    Example:
        >>> import polymux
        >>> line_of(polymux.ChatChunk(b'{"choices": [],\n"x": 1}'))
        b'{"choices": [], "x": 1}'
    """
    raw = chunk.raw
    # JSON has literal line breaks only between values: within strings they are escaped.
    return raw.replace(b"\n", b" ") if b"\n" in raw else raw


#: Maximum length of a collected answer; forwarded streams have no such limit.
_MAX_COLLECTED_CHARACTERS = 1 << 20


async def collect_stream(chunks: AsyncIterator[Chunk], sink: ProgressSink) -> OperationResult:
    """Collect the texts of a chat's chunks in a list, and report each to the sink.

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
                    f"the answer is too long (allowed: {_MAX_COLLECTED_CHARACTERS} characters). "
                    "Request fewer tokens"
                )
            if text:
                sink.emit_text(text)
    return OperationResult(sink.text_pieces or [], metrics=counts)
