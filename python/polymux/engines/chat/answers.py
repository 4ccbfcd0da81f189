"""Conversion of llama.cpp's response chunks and errors to those of the polymux API."""

from __future__ import annotations

import math
import secrets
import time
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.chat.calls import CallReader
from polymux.engines.chat.completions import Assembled
from polymux.service.errors import engine_failed, status_error

if TYPE_CHECKING:
    from polymux.engines.base import EngineSink, Request, Token
    from polymux.engines.chat.calls import RequiredCalls
    from polymux.engines.chat.json_schema import ChatSchemas

_CHUNK = "chat.completion.chunk"
_OF_ALL_CHUNKS = ("id", "created", "model", "system_fingerprint", "usage")
#: Interval of progress reports while no chunk is sent. A silent engine counts as stalled.
_REPORT_INTERVAL_S = 1.0
_NO_GRAMMAR = "failed to parse grammar"
_TOO_SLOW = {
    "code": 400,
    "message": "JSON schema too complex for the chat engine: a token took too long. Use fewer "
    "alternatives and repetitions",
}
#: Texts in the library's errors, and the request fields that cause them; None for the field with
#: the schema.
_FIELDS_OF_WORDS = (("logprobs", "logprobs"), ("JSON schema", None), (_NO_GRAMMAR, None))


#: A response with a schema ends if a token takes more CPU seconds than this, and than this many
#: usual tokens: all conversations of the engine wait meanwhile.
_MAX_TOKEN_S, _MAX_USUAL_TOKENS = 2.0, 20
#: Chunks with less time between them belong to the same step.
_MIN_STEP_S = 0.01


class Pace:
    """The CPU time of the fastest step of an engine: of a token, or of a part of a prompt."""

    def __init__(self) -> None:
        self._fastest_s = math.inf

    def is_late(self, step_s: float) -> bool:
        """Add the time of a step, and return whether it was much longer than usual."""
        if step_s > _MIN_STEP_S:
            self._fastest_s = min(self._fastest_s, step_s)
        return step_s > max(_MAX_TOKEN_S, _MAX_USUAL_TOKENS * self._fastest_s)


class Conversation:
    """Receives the library's chunks and forwards them as the request needs.

    Args:
        token: Cancellation stops the response.
        model: Name of the model in the response.
        token_limit: Maximum tokens of all responses together. Default: unknown.
        pace: The pace of the engine. Default: a new one.
        calls: The tool calls that the request requires. Default: none.

    Attributes:
        schema_param: Request field whose schema the response follows.
    """

    def __init__(
        self,
        request: Request,
        sink: EngineSink,
        token: Token,
        model: str,
        schemas: ChatSchemas,
        token_limit: int | None = None,
        pace: Pace | None = None,
        calls: RequiredCalls | None = None,
    ) -> None:
        self._sink = sink
        self._token = token
        self._free = request.operation == "free_chat"
        self._streamed = request.values.get("stream") is True
        options = request.values.get("stream_options") or {}
        self._with_usage = options.get("include_usage") is True
        self._most_likely = int(request.values.get("top_logprobs") or 0)
        self._model = model
        self._schemas = schemas
        self._calls = calls
        self._readers: dict[int, CallReader] = {}
        self._is_constrained = schemas.constrain or calls is not None
        self.schema_param = "response_format" if schemas.constrain and calls is None else "tools"
        self._answer = Assembled(self._model)
        self._token_limit = token_limit
        self._generated_tokens = 0
        self._sent_at = time.monotonic()
        self._pace = pace or Pace()
        # CPU time, because other programs may keep the machine busy.
        self._step_at = time.process_time()
        #: Values that are the same in all chunks of a response.
        self._kept: dict[str, Any] = {}
        #: Request ID as in Groq's API, in addition to the response's ID.
        self._request = f"req_{secrets.token_hex(13)}"
        self._began = False
        #: Name of the engine's model, for the first chunk.
        self.engine_model = ""
        self._last: dict[str, Any] | None = None
        #: Index of the first response that is being generated.
        self.first = 0
        self._error: dict[str, Any] | None = None

    def take(self, given: Any) -> bool:
        """Receive a chunk on a library thread. Returning True stops the generation."""
        for chunk in given if isinstance(given, list) else (given,):
            if "error" in chunk:
                self._error = chunk["error"]
                return True
            # The client gets one ID and time for all rounds; the library changes them between
            # chunks.
            for name in ("id", "created"):
                if name in chunk:
                    chunk[name] = self._kept.setdefault(name, chunk[name])
            for choice in chunk.get("choices") or ():
                choice["index"] = choice.get("index", 0) + self.first
                self._shorten(choice.get("logprobs") or {})
            has_output = any(map(_has_output, chunk.get("choices") or ()))
            self._generated_tokens += has_output
            if self._calls is not None:
                for choice in chunk.get("choices") or ():
                    self._read_calls(choice, self._calls.finish_reason)
            self._answer.add(chunk, self.first)
            # Before the first output, other requests may be served.
            if self._is_late() and has_output and self._is_constrained:
                self._error = dict(_TOO_SLOW)
                return True
            if self._streamed and not self._token.cancelled:
                self._hand_on(chunk)
        self._report()
        return self._token.cancelled

    def _is_late(self) -> bool:
        before, self._step_at = self._step_at, time.process_time()
        return self._pace.is_late(self._step_at - before)

    def _report(self) -> None:
        """Report progress if nothing was sent for a while, as for a response without streaming.

        One chunk is about one token.
        """
        now = time.monotonic()
        if now - self._sent_at >= _REPORT_INTERVAL_S and not self._token.cancelled:
            self._sent_at = now
            self._sink.report(min(1.0, self._generated_tokens / (self._token_limit or math.inf)))

    def _chunk(self, data: dict[str, Any]) -> None:
        self._sent_at = time.monotonic()
        self._sink.chunk(data)

    def _read_calls(self, choice: dict[str, Any], finish_reason: str) -> None:
        """Convert the text of a choice to tool calls."""
        reader = self._readers.setdefault(choice["index"], CallReader())
        delta = choice.get("delta") or {}
        if delta.get("content"):
            calls = reader.read(delta.pop("content"))
            if calls:
                delta["tool_calls"] = calls
        if choice.get("finish_reason") == "stop" and reader.count:
            choice["finish_reason"] = finish_reason

    def _shorten(self, probabilities: dict[str, Any]) -> None:
        """Limit the alternative tokens to the requested number."""
        for one in probabilities.get("content") or ():
            one["top_logprobs"] = (one.get("top_logprobs") or [])[: self._most_likely]

    def _hand_on(self, chunk: dict[str, Any]) -> None:
        choices = chunk.get("choices") or []
        if self._free:
            text = "".join((one.get("delta") or {}).get("content") or "" for one in choices)
            if text:
                self._chunk({"response": text} | self._opening())
            return
        # Usage is sent at the end if requested. Progress of the prompt is not sent to clients.
        if not choices or (chunk.get("prompt_progress") and not any(map(_has_output, choices))):
            return
        kept = ("delta", "finish_reason", "logprobs")
        if not any(one.get(name) for one in choices for name in kept):
            return  # The beginning of a tool call.
        plain = {name: chunk[name] for name in ("id", "created", "system_fingerprint")
                 if name in chunk}  # fmt: skip
        converted = [self._converted_choice(one) for one in choices]
        made = plain | {"object": _CHUNK, "model": self._model, "choices": converted}
        if self._with_usage:
            made["usage"] = None
        if not self._began:
            made |= self._opening() | {"x_groq": {"id": self._request}}
        self._let_go()
        if any(one["finish_reason"] for one in converted):
            self._last = made  # Wait for the usage, which is added to it.
        else:
            self._chunk(made)

    def _opening(self) -> dict[str, str]:
        """Return the model's name for the first chunk; empty for the others."""
        if self._began:
            return {}
        self._began = True
        return {"engine_model": self.engine_model} if self.engine_model else {}

    def _let_go(self, more: dict[str, Any] | None = None) -> None:
        """Send the delayed last chunk."""
        if self._last is not None:
            last, self._last = self._last, None
            self._chunk(last if more is None else last | {"x_groq": more})

    @staticmethod
    def _converted_choice(choice: dict[str, Any]) -> dict[str, Any]:
        delta = dict(choice.get("delta") or {})
        if delta.get("role") and delta.get("content", "") is None:
            delta["content"] = ""
        if "reasoning_content" in delta:
            delta["reasoning"] = delta.pop("reasoning_content")
        return {
            "index": choice.get("index", 0),
            "delta": delta,
            "logprobs": choice.get("logprobs"),
            "finish_reason": choice.get("finish_reason"),
        }

    def check(self) -> None:
        """Raise the library's error, if any.

        Raises:
            APIStatusError: The library has reported an error.
        """
        if self._error is not None:
            raise of_library(self._error, self.schema_param)

    def finished(self) -> Any:
        """Return the complete response after checking it against its schemas; None for a stream.

        Raises:
            InternalServerError: The response violates a strict schema.
        """
        whole = self._answer.completion()
        self._schemas.check(whole["choices"], self._sink.warn)
        if not self._streamed:
            if self._free:
                return {"response": whole["choices"][0]["message"]["content"] or ""}
            return whole
        self._let_go({"id": self._request, "usage": whole["usage"]})
        if self._with_usage and not self._free:
            kept = {name: whole[name] for name in _OF_ALL_CHUNKS if whole.get(name) is not None}
            self._chunk(kept | {"object": _CHUNK, "choices": []})
        return None

    def metrics(self) -> dict[str, float]:
        usage = self._answer.usage_with_times()
        return {name: float(value) for name, value in usage.items() if not isinstance(value, dict)}


def _has_output(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta") or {}
    return any(delta.get(name) for name in ("content", "reasoning_content", "tool_calls"))


def refused(words: str, schema_param: str) -> errors.BadRequestError:
    """Return an error for invalid requests, such as an unsupported template, schema or image.

    Args:
        words: The library's message.
        schema_param: Request field with the schema of the response.
    """
    words = words[:1000]
    if "available context size" in words:
        return status_error(
            errors.BadRequestError, words, code="context_length_exceeded", param="messages"
        )
    if _NO_GRAMMAR in words:
        words = (
            f"schema too complex for the chat engine ({words}). Use fewer and shorter repetitions, "
            "or a simpler schema"
        )
    found = (field or schema_param for phrase, field in _FIELDS_OF_WORDS if phrase in words)
    param = next(found, None)
    return status_error(errors.BadRequestError, words, code="invalid_request", param=param)


def of_library(error: Any, schema_param: str) -> errors.APIStatusError:
    """Convert an error of the library, which has OpenAI's format. Arguments as in `refused`."""
    message = str(error.get("message", error))[:1000] if isinstance(error, dict) else str(error)
    status = error.get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and status >= 500:
        return engine_failed(message)
    return refused(message, schema_param)
