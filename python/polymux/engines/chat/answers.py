"""What llama.cpp answers, piece by piece: handed on as the interface has it, and its errors."""

from __future__ import annotations

import math
import secrets
import time
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.chat.completions import Assembled
from polymux.service.errors import engine_failed, status_error

if TYPE_CHECKING:
    from polymux.engines.base import EngineSink, Request, Token
    from polymux.engines.chat.json_schema import ChatSchemas

_CHUNK = "chat.completion.chunk"
_OF_ALL_CHUNKS = ("id", "created", "model", "system_fingerprint", "usage")
#: After so long without a word an answer tells how far it is: what is mute is taken for dead.
_TELL_S = 1.0
_NO_GRAMMAR = "failed to parse grammar"
#: What the library says of a field that it refuses.
_FIELDS_OF_WORDS = (
    ("logprobs", "logprobs"),
    ("JSON schema", "response_format"),
    (_NO_GRAMMAR, "response_format"),
)


class Conversation:
    """Takes the library's pieces, and hands on what is wanted of them.

    Args:
        token: Whose end stops it.
        model: What the answer calls the model.
        token_limit: How many all answers may have together. Default: nobody knows.
    """

    def __init__(
        self,
        request: Request,
        sink: EngineSink,
        token: Token,
        model: str,
        schemas: ChatSchemas,
        token_limit: int | None = None,
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
        self._answer = Assembled(self._model)
        self._token_limit = token_limit
        self._said_tokens = 0
        self._told_at = time.monotonic()
        #: What is the same in all of an answer.
        self._kept: dict[str, Any] = {}
        #: As Groq calls a request, beside the answer's own id.
        self._request = f"req_{secrets.token_hex(13)}"
        self._began = False
        self._last: dict[str, Any] | None = None
        #: Number of the first of the answers that are being written.
        self.first = 0
        self._error: dict[str, Any] | None = None

    def take(self, given: Any) -> bool:
        """Called by the library for each piece, on a thread of its own; True stops it."""
        for chunk in given if isinstance(given, list) else (given,):
            if "error" in chunk:
                self._error = chunk["error"]
                return True
            # One answer has one of each, in however many turns it is said: the library has the
            # time of each piece.
            for name in ("id", "created"):
                if name in chunk:
                    chunk[name] = self._kept.setdefault(name, chunk[name])
            for choice in chunk.get("choices") or ():
                choice["index"] = choice.get("index", 0) + self.first
                self._shorten(choice.get("logprobs") or {})
            self._answer.add(chunk, self.first)
            self._said_tokens += any(map(_says, chunk.get("choices") or ()))
            if self._streamed and not self._token.cancelled:
                self._hand_on(chunk)
        self._tell()
        return self._token.cancelled

    def _tell(self) -> None:
        """Tells how far it is, where nothing else was told for a while: a whole answer comes late.

        A piece is a token, about.
        """
        now = time.monotonic()
        if now - self._told_at >= _TELL_S and not self._token.cancelled:
            self._told_at = now
            self._sink.report(min(1.0, self._said_tokens / (self._token_limit or math.inf)))

    def _chunk(self, data: dict[str, Any]) -> None:
        self._told_at = time.monotonic()
        self._sink.chunk(data)

    def _shorten(self, probabilities: dict[str, Any]) -> None:
        """Keeps as many other tokens as were asked for."""
        for one in probabilities.get("content") or ():
            one["top_logprobs"] = (one.get("top_logprobs") or [])[: self._most_likely]

    def _hand_on(self, chunk: dict[str, Any]) -> None:
        choices = chunk.get("choices") or []
        if self._free:
            text = "".join((one.get("delta") or {}).get("content") or "" for one in choices)
            if text:
                self._chunk({"response": text})
            return
        # The usage comes at the end, where it is wanted; progress of the prompt is nobody's chunk.
        if not choices or (chunk.get("prompt_progress") and not any(map(_says, choices))):
            return
        plain = {name: chunk[name] for name in ("id", "created", "system_fingerprint")
                 if name in chunk}  # fmt: skip
        told = [self._told(one) for one in choices]
        made = plain | {"object": _CHUNK, "model": self._model, "choices": told}
        if self._with_usage:
            made["usage"] = None
        if not self._began:
            self._began = True
            made["x_groq"] = {"id": self._request}
        self._let_go()
        if any(one["finish_reason"] for one in told):
            self._last = made  # The counts come right behind it, and the last one has them too.
        else:
            self._chunk(made)

    def _let_go(self, more: dict[str, Any] | None = None) -> None:
        """Hands on the chunk that may have been the last."""
        if self._last is not None:
            last, self._last = self._last, None
            self._chunk(last if more is None else last | {"x_groq": more})

    @staticmethod
    def _told(choice: dict[str, Any]) -> dict[str, Any]:
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
        """Looks whether the library told of an error.

        Raises:
            APIStatusError: It did.
        """
        if self._error is not None:
            raise of_library(self._error)

    def finished(self) -> Any:
        """The whole answer, checked against its schemas; of a stream, nothing.

        Raises:
            InternalServerError: It breaks a strict schema.
        """
        whole = self._answer.completion()
        self._schemas.check(whole["choices"], self._sink.log)
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
        return {name: float(value) for name, value in usage.items()}


def _says(choice: dict[str, Any]) -> bool:
    delta = choice.get("delta") or {}
    return any(delta.get(name) for name in ("content", "reasoning_content", "tool_calls"))


def refused(words: str) -> errors.BadRequestError:
    """What the library cannot do is the request's fault: a template, a schema, a picture."""
    words = words[:1000]
    if "available context size" in words:
        return status_error(
            errors.BadRequestError, words, code="context_length_exceeded", param="messages"
        )
    if _NO_GRAMMAR in words:
        words = (
            "the schema is more than this engine can keep an answer to: describe less, with fewer "
            f"and shorter repetitions ({words})"
        )
    param = next((field for said, field in _FIELDS_OF_WORDS if said in words), None)
    return status_error(errors.BadRequestError, words, code="invalid_request", param=param)


def of_library(error: Any) -> errors.APIStatusError:
    """An error that the library tells in OpenAI's form."""
    message = str(error.get("message", error))[:1000] if isinstance(error, dict) else str(error)
    status = error.get("code") if isinstance(error, dict) else None
    if isinstance(status, int) and status >= 500:
        return engine_failed(message)
    return refused(message)
