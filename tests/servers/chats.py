"""The two chat operations of the reference server, complete and streamed."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from servers.replies import RefusedError, Reply, event, json_reply

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from servers.forms import Body
    from servers.tcp_connection import TcpConnection

COMPLETION = "fastllm/chatcompletion"
FREE = "freellm"
_STREAM = [("Content-Type", "text/event-stream"), ("Cache-Control", "no-store")]


class Chats:
    """Answers chats with the text of the last message. The settings apply to later answers."""

    def __init__(self) -> None:
        #: Replaces the answer's text if set.
        self.text: str | None = None
        #: Pause before every event of a stream, in seconds.
        self.pause_s = 0.0
        #: If set, a stream sends an error event after this number of events and ends.
        self.fails_after: int | None = None
        #: If set, a stream breaks off after this number of events, without an error event.
        self.ends_after: int | None = None

    def answer(self, path: str, body: Body, wire: TcpConnection) -> Reply:
        given = body.values
        messages = given.get("messages")
        if not isinstance(messages, list) or not messages:
            raise RefusedError(400, "messages is missing", param="messages")
        if not isinstance(given.get("stream", False), (bool, type(None))):
            raise RefusedError(400, "stream is true or false", param="stream")
        if path == COMPLETION and not isinstance(given.get("model"), str):
            raise RefusedError(400, "model is missing", param="model")
        text = self.text if self.text is not None else f"You said: {_text_of(messages[-1])}"
        if given.get("stream"):
            values = _chunks(given, text) if path == COMPLETION else _pieces(given, text)
            return Reply(200, headers=_STREAM, events=self._stream(values, wire))
        if path == FREE:
            return json_reply({"response": text, "received": given})
        return json_reply(_completion(given, text))

    async def _stream(
        self, values: Iterator[dict[str, Any]], wire: TcpConnection
    ) -> AsyncIterator[bytes]:
        for number, value in enumerate(values):
            if number == self.fails_after:
                error = {"message": "the model went away", "type": "server_error", "code": "502"}
                yield event({"error": error})
                return
            if number == self.ends_after:
                return
            if self.pause_s:
                await wire.sleep(self.pause_s)
            yield event(value)
        yield event("[DONE]")


def _text_of(message: Any) -> str:
    content = message.get("content") if isinstance(message, dict) else None
    if isinstance(content, list):
        return "".join(part.get("text", "") for part in content)
    return content or ""


def split_text(text: str) -> list[str]:
    """Words with the following blanks, like a model's tokens."""
    return re.findall(r"\S+\s*|\s+", text)


def _usage(given: dict[str, Any], text: str) -> dict[str, Any]:
    asked = sum(len(split_text(_text_of(message))) for message in given["messages"])
    made = len(split_text(text))
    return {
        "queue_time": 0.012, "prompt_tokens": asked, "prompt_time": 0.002,
        "completion_tokens": made, "completion_time": 0.04, "total_tokens": asked + made,
        "total_time": 0.042,
    }  # fmt: skip


def _head(given: dict[str, Any], kind: str) -> dict[str, Any]:
    return {
        "id": "chatcmpl-0d6fa6a1-1c2b-4d3e-9f50-6a7b8c9d0e1f", "object": kind,
        "created": 1_763_740_800, "model": given["model"], "system_fingerprint": "fp_4e32347616",
    }  # fmt: skip


def _tool_call(given: dict[str, Any]) -> dict[str, Any] | None:
    """A call of the first tool with the received arguments."""
    if not given.get("tools") or given.get("tool_choice") != "required":
        return None
    name = given["tools"][0]["function"]["name"]
    arguments = json.dumps({"city": "Kiel"})
    return {"id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}}


def _completion(given: dict[str, Any], text: str) -> dict[str, Any]:
    call = _tool_call(given)
    message: dict[str, Any] = {"role": "assistant", "content": None if call else text}
    if call:
        message["tool_calls"] = [call]
    finish = "tool_calls" if call else "stop"
    choices = [
        {"index": index, "message": message, "logprobs": None, "finish_reason": finish}
        for index in range(given.get("n") or 1)
    ]
    return _head(given, "chat.completion") | {
        "choices": choices, "usage": _usage(given, text), "usage_breakdown": None,
        "x_groq": {"id": "req_01j"}, "service_tier": "on_demand", "received": given,
    }  # fmt: skip


def _chunks(given: dict[str, Any], text: str) -> Iterator[dict[str, Any]]:
    """The chunks of OpenAI and Groq: a role, pieces, an end, and usage if requested."""
    head = _head(given, "chat.completion.chunk")
    with_usage = bool((given.get("stream_options") or {}).get("include_usage"))
    rest: dict[str, Any] = {"usage": None} if with_usage else {}
    call = _tool_call(given)

    def chunk(index: int, delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        choice = {"index": index, "delta": delta, "logprobs": None, "finish_reason": finish}
        return head | {"choices": [choice]} | rest

    indexes = range(given.get("n") or 1)
    for index in indexes:
        first = chunk(index, {"role": "assistant", "content": ""})
        yield first | {"x_groq": {"id": "req_01j"}, "received": given} if index == 0 else first
    for delta in _call_deltas(call) if call else ({"content": one} for one in split_text(text)):
        for index in indexes:
            yield chunk(index, delta)
    for index in indexes:
        yield chunk(index, {}, "tool_calls" if call else "stop")
    if with_usage:
        yield head | {"choices": [], "usage": _usage(given, text)}


def _call_deltas(call: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A tool call in pieces: the name first, then the arguments, three characters at a time."""
    arguments = call["function"]["arguments"]
    named = {**call, "index": 0, "function": {**call["function"], "arguments": ""}}
    yield {"tool_calls": [named]}
    for start in range(0, len(arguments), 3):
        piece = {"arguments": arguments[start : start + 3]}
        yield {"tool_calls": [{"index": 0, "function": piece}]}


def _pieces(given: dict[str, Any], text: str) -> Iterator[dict[str, Any]]:
    for number, piece in enumerate(split_text(text)):
        yield {"response": piece, "received": given} if number == 0 else {"response": piece}
