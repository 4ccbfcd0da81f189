"""Chat requests to OpenAI-compatible upstreams, and their responses."""

from __future__ import annotations

import asyncio
import base64
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._native import core
from polymux._native.json_numbers import finite
from polymux._util.redaction import redact_json
from polymux.client.answer import reported_error
from polymux.engines.chat.backend import (
    check_count,
    is_elsewhere,
    param_of,
    picture_data,
    pictures_of,
)
from polymux.engines.chat.requests import with_parts, with_picture
from polymux.service.errors import bad_request, status_error
from polymux.upstreams.error_mapping import failed, map_error_body
from polymux.upstreams.files import picture_type
from polymux.upstreams.image_validation import BrokenPictureError, check
from polymux.upstreams.openai.completions import mended

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from polymux.client.chat_stream import AsyncChatStream, ChatChunk
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.chunks import Chunk
    from polymux.service.model import OperationRequest
    from polymux.upstreams.client import UpstreamServer

#: Maximum size of all images of one chat. Base64 makes them a third longer, and they stay in memory
#: until the upstream responds. The body limit of requests is lower.
_PICTURES_BYTES = 32 << 20
#: Fields of free_chat that only this server uses.
_FREE_ONLY = ("timeout", "shuffle", "image_url")
_EMPTY = "its response is empty"


async def chat_body(
    work: OperationRequest,
    model: str,
    policy: FetchPolicy,
    *,
    max_tokens: bool,
    fetching: asyncio.Semaphore,
) -> dict[str, Any]:
    """Build the upstream request: the client's fields with the upstream's model name.

    Args:
        work: A chat or free_chat request.
        policy: Allowed hosts for images beyond the public Internet.
        max_tokens: Send ``max_tokens`` instead of ``max_completion_tokens``.
        fetching: Limits how many chats download images at the same time.

    Raises:
        BadRequestError: An image is invalid or cannot be downloaded.
        RequestTooLargeError: An image is larger than 20 MiB, or all together than 32 MiB.
        URLRefusedError: An image URL is not allowed.
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
    body["messages"] = await _with_pictures(work, body["messages"], policy, fetching)
    return body


async def _with_pictures(
    work: OperationRequest, messages: list[Any], policy: FetchPolicy, fetching: asyncio.Semaphore
) -> list[Any]:
    """Return the messages with all images embedded.

    Downloads images here: the upstream could fetch URLs from its own private network.
    """
    urls = pictures_of(work)
    if not urls:
        return messages
    check_count(urls, work)
    async with fetching if any(map(is_elsewhere, urls)) else nullcontext():
        inline = await _all_inline(urls, param_of(work), policy)
    if work.operation == "free_chat":
        found = with_picture(messages, {"url": inline[0], "detail": "auto"})
        if found is None:
            raise bad_request(
                "image_url: the chat has no message with the role 'user' for the image", "image_url"
            )
        return found
    pictures = iter(inline)

    def replaced(part: dict[str, Any]) -> dict[str, Any]:
        given = part["image_url"]
        picture = given if isinstance(given, dict) else {}
        return {**part, "image_url": {**picture, "url": next(pictures)}}

    return with_parts(messages, replaced)


async def _all_inline(urls: list[object], param: str, policy: FetchPolicy) -> list[str]:
    """Download and embed all images of a chat, one after another."""
    inline = []
    left_bytes = _PICTURES_BYTES
    for url in urls:
        data = await picture_data(url, param, policy)
        left_bytes -= len(data)
        if left_bytes < 0:
            message = (
                f"the images of the chat are too large (allowed: {_PICTURES_BYTES >> 20} MiB in "
                "total). Send smaller or fewer images"
            )
            raise status_error(errors.RequestTooLargeError, message, param=param)
        inline.append(await asyncio.to_thread(_inline, data, param))
    return inline


def _inline(data: bytes, param: str) -> str:
    content_type = picture_type(data)
    if content_type is None:
        raise bad_request("unsupported image format (allowed: PNG, JPEG, WebP, GIF)", param)
    try:
        check(data, content_type)
    except BrokenPictureError as error:
        raise bad_request(f"invalid image: {error}", param) from None
    return f"data:{content_type};base64,{base64.b64encode(data).decode()}"


def completion(name: str, value: Any, seconds: float, operation: str = "chat") -> dict[str, Any]:
    """Validate a whole chat response; adds its duration if the upstream did not report it.

    Raises:
        InternalServerError: The response is not a chat completion.
        APIStatusError: The response contains an error whose code is a status.
    """
    if isinstance(value, dict) and isinstance(value.get("error"), dict) and "choices" not in value:
        error = reported_error(core.write_json(value))
        raise map_error_body(name, error, operation=operation)
    try:
        whole = mended(value)
    except errors.DecodeError:
        raise failed(name, "its response is not a chat completion") from None
    usage, timings = whole.get("usage"), whole.get("timings")
    if isinstance(usage, dict) and usage.get("total_time") is None:
        whole["usage"] = usage | _times(timings, seconds)
    return whole


def _times(timings: object, seconds: float) -> dict[str, float]:
    """Return the durations in seconds: as measured by llama.cpp, else only the total."""
    if isinstance(timings, dict):
        prompt_ms, answer_ms = finite(timings.get("prompt_ms")), finite(timings.get("predicted_ms"))
        if prompt_ms is not None and answer_ms is not None:
            prompt_s, answer_s = round(prompt_ms / 1e3, 6), round(answer_ms / 1e3, 6)
            return {
                "prompt_time": prompt_s,
                "completion_time": answer_s,
                "total_time": round(prompt_s + answer_s, 6),
            }
    return {"total_time": round(seconds, 6)}


def text_of(name: str, whole: dict[str, Any]) -> str:
    """Return the text of a whole response, for free_chat.

    Raises:
        InternalServerError: It contains neither text nor a finish reason.
    """
    choices = whole["choices"]
    first = choices[0] if choices else {}
    text: str = (first.get("message") or {}).get("content") or ""
    if not text and not first.get("finish_reason"):
        raise failed(name, _EMPTY)
    return text


async def passed_on(
    server: UpstreamServer,
    work: OperationRequest,
    opened: Callable[[], Awaitable[AsyncChatStream]],
    *,
    as_texts: bool,
) -> AsyncIterator[Chunk]:
    """Yield the chunks of an upstream's response with all members unchanged.

    Args:
        opened: Opens the stream; it is closed at the end.
        as_texts: Convert the chunks to those of free_chat.

    Raises:
        APIStatusError: The response was interrupted, is invalid or contains an error.
    """
    free = work.operation == "free_chat"
    first = True
    chunks = await opened()
    try:
        async with chunks:
            async for chunk in chunks:
                one = _redacted(chunk) if server.repeats_key(chunk.raw) else chunk
                # An empty first chunk of free_chat does not count: the next backend may answer.
                if free and not one.content and (as_texts or first):
                    continue
                if as_texts:
                    yield {"response": one.content}
                else:
                    yield _as_chunk(one) if first else one
                first = False
    except errors.PolymuxError as error:
        if first:
            raise map_error_body(server.name, error, operation=work.operation) from None
        raise server.convert_error(error, work.operation) from None
    if first and (chunks.finish_reason is None or not chunks.chunks):
        raise failed(server.name, _EMPTY)


def _redacted(chunk: ChatChunk) -> ChatChunk:
    return core.ChatChunk(core.write_json(redact_json(chunk.json())))


def _as_chunk(chunk: ChatChunk) -> Chunk:
    """Return the first chunk; converts a whole response to a chunk.

    Raises:
        DecodeError: It is neither.
    """
    if b'"message"' not in chunk.raw:
        return chunk
    value = chunk.json()
    choices = value.get("choices")
    if not isinstance(choices, list) or not any(_is_whole(one) for one in choices):
        return chunk
    for choice in mended(value)["choices"]:
        delta = choice.pop("message")
        for number, call in enumerate(delta.get("tool_calls") or ()):
            call.setdefault("index", number)
        choice.setdefault("delta", delta)
    return value | {"object": "chat.completion.chunk"}


def _is_whole(choice: object) -> bool:
    return isinstance(choice, dict) and choice.get("message") is not None
