"""Chats at upstreams in OpenAI's form: what they are asked, and what is made of their answers."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from polymux import errors, responses
from polymux.engines.conversations import MOST_PICTURES, param_of, picture_data, pictures_of
from polymux.service.failures import invalid
from polymux.upstreams.failing import failed
from polymux.upstreams.results import picture_type

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from polymux.chat_stream import AsyncChatStream, ChatChunk
    from polymux.fetching import FetchPolicy
    from polymux.service.chunks import Chunk
    from polymux.service.work import Work
    from polymux.upstreams.server import UpstreamServer

#: Of freellm's fields, those that are for this server.
_FREE_ONLY = ("timeout", "shuffle", "image_url")


async def chat_body(
    work: Work, model: str, policy: FetchPolicy, *, max_tokens: bool
) -> dict[str, Any]:
    """The request as OpenAI has it: what the caller gave, and nothing of ours.

    Args:
        work: A chat, or one of freellm's.
        model: What the upstream calls its model.
        policy: What pictures may be fetched from beyond the public Internet.
        max_tokens: Whether the longest answer goes by its older name.

    Raises:
        BadRequestError: A picture is none, or cannot be fetched.
        URLRefusedError: A picture's address leads where it may not.
    """
    free = work.operation == "free_chat"
    body = {
        name: value
        for name, value in work.values.items()
        if name in work.given and value is not None and not (free and name in _FREE_ONLY)
    }
    body["model"] = model
    if max_tokens and "max_completion_tokens" in body:
        body["max_tokens"] = body.pop("max_completion_tokens")
    body["messages"] = await _with_pictures(work, body["messages"], policy)
    return body


async def _with_pictures(work: Work, messages: list[Any], policy: FetchPolicy) -> list[Any]:
    """The messages with every picture in them.

    Addresses are fetched here, behind the guard: who knows where an upstream's own network leads.
    """
    urls = pictures_of(work)
    if not urls:
        return messages
    if len(urls) > MOST_PICTURES:
        message = f"{len(urls)} pictures are more than the {MOST_PICTURES} that are taken"
        raise invalid(message, param_of(work))
    inline = [await _inline(url, param_of(work), policy) for url in urls]
    if work.operation == "free_chat":
        return _attached(messages, inline[0])
    pictures = iter(inline)
    return [_replaced(one, pictures) for one in messages]


async def _inline(url: object, param: str, policy: FetchPolicy) -> str:
    data = await picture_data(url, param, policy)
    content_type = picture_type(data)
    if content_type is None:
        raise invalid("that is no picture: PNG, JPEG, WebP and GIF are taken", param)
    return f"data:{content_type};base64,{base64.b64encode(data).decode()}"


def _attached(messages: list[Any], url: str) -> list[Any]:
    """The messages with a picture in the last of the user's.

    Raises:
        BadRequestError: The user says nothing.
    """
    for number in range(len(messages) - 1, -1, -1):
        if messages[number].get("role") == "user":
            text = {"type": "text", "text": messages[number]["content"]}
            picture = {"type": "image_url", "image_url": {"url": url, "detail": "auto"}}
            changed = {**messages[number], "content": [text, picture]}
            return [*messages[:number], changed, *messages[number + 1 :]]
    raise invalid("there is no message of the user that the picture could belong to", "image_url")


def _replaced(message: Any, pictures: Iterator[str]) -> Any:
    content = message.get("content") if isinstance(message, dict) else None
    if not isinstance(content, list):
        return message
    parts: list[Any] = []
    for part in content:
        if not isinstance(part, dict) or "image_url" not in part:
            parts.append(part)
            continue
        given = part["image_url"]
        picture = given if isinstance(given, dict) else {}
        parts.append({**part, "image_url": {**picture, "url": next(pictures)}})
    return {**message, "content": parts}


def completion(name: str, value: Any, seconds: float) -> dict[str, Any]:
    """A whole answer, all its members kept, with how long it took where that is not told.

    Args:
        name: The upstream's.
        value: What it answered.
        seconds: How long that took.

    Raises:
        InternalServerError: It is no chat completion.
    """
    try:
        responses.ChatCompletion(value)
    except errors.DecodeError:
        raise failed(name, "its answer is no chat completion") from None
    whole: dict[str, Any] = value
    usage, timings = whole.get("usage"), whole.get("timings")
    if isinstance(usage, dict) and usage.get("total_time") is None:
        whole["usage"] = usage | _times(timings, seconds)
    return whole


def _times(timings: object, seconds: float) -> dict[str, float]:
    """The seconds that the interface tells: as llama.cpp measured them, else all together."""
    if isinstance(timings, dict):
        prompt_ms, answer_ms = timings.get("prompt_ms"), timings.get("predicted_ms")
        if isinstance(prompt_ms, (int, float)) and isinstance(answer_ms, (int, float)):
            prompt_s, answer_s = round(prompt_ms / 1e3, 6), round(answer_ms / 1e3, 6)
            return {
                "prompt_time": prompt_s,
                "completion_time": answer_s,
                "total_time": round(prompt_s + answer_s, 6),
            }
    return {"total_time": round(seconds, 6)}


def text_of(whole: dict[str, Any]) -> str:
    """The text of a whole answer, as freellm has it."""
    choices = whole["choices"]
    return (choices[0]["message"].get("content") or "") if choices else ""


async def passed_on(
    server: UpstreamServer, work: Work, chunks: AsyncChatStream, *, as_texts: bool
) -> AsyncIterator[Chunk]:
    """The chunks of an upstream's answer, all of their members as they came.

    Args:
        server: The upstream.
        work: What was asked for.
        chunks: Its answer, which is closed at the end.
        as_texts: Whether freellm's pieces are made of them.

    Raises:
        APIStatusError: The answer broke off, or tells of a failure.
    """
    first = True
    try:
        async with chunks:
            async for chunk in chunks:
                if as_texts:
                    if chunk.content:
                        yield {"response": chunk.content}
                    continue
                yield _as_chunk(chunk) if first else chunk
                first = False
    except errors.PolymuxError as error:
        raise server.told(error, work.operation) from None


def _as_chunk(chunk: ChatChunk) -> Chunk:
    """The first chunk; a whole answer that came in its place becomes one."""
    if b'"message"' not in chunk.raw:
        return chunk
    value = chunk.json()
    choices = value.get("choices")
    if not isinstance(choices, list) or not any("message" in one for one in choices):
        return chunk
    for choice in choices:
        delta = choice.pop("message", None) or {}
        for number, call in enumerate(delta.get("tool_calls") or ()):
            call.setdefault("index", number)
        choice.setdefault("delta", delta)
    return value | {"object": "chat.completion.chunk"}
