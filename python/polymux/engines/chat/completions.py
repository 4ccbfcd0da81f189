"""Assembly of complete chat responses from chunks, in OpenAI's format."""

from __future__ import annotations

import secrets
import time
from typing import Any


class Assembled:
    """A chat completion that is assembled from chunks.

    Example:
        >>> from polymux.engines.chat.completions import Assembled
        >>> answer = Assembled("m")
        >>> answer.add({"choices": [{"index": 0, "delta": {"content": "Hi"}}]})
        >>> answer.completion()["choices"][0]["message"]["content"]
        'Hi'
    """

    def __init__(self, model: str) -> None:
        self._model = model
        self._choices: dict[int, dict[str, Any]] = {}
        self._facts: dict[str, Any] = {}
        #: Token counts, after they were received.
        self.usage: dict[str, Any] = {}
        #: Tokens of the prompt that were in the cache; None if not reported.
        self._cached_tokens: int | None = None
        #: Time for the prompt, which is processed once for all responses.
        self._prompt_ms: float | None = None
        #: Longest time of each group of parallel responses, by the index of the first.
        self._answers_ms: dict[int, float] = {}

    def add(self, chunk: dict[str, Any], first: int = 0) -> None:
        """Add a chunk.

        Args:
            chunk: The chunk.
            first: Index of the first response in the same parallel group.
        """
        for name in ("id", "created", "system_fingerprint"):
            if name in chunk:
                self._facts.setdefault(name, chunk[name])
        self._add_usage(chunk.get("usage") or {})
        self._add_times(chunk.get("timings") or {}, first)
        for choice in chunk.get("choices") or ():
            self._add_choice(choice)

    def _add_usage(self, usage: dict[str, Any]) -> None:
        """Add token counts, which arrive once per response. The prompt is counted only once."""
        if not usage:
            return
        # Further responses find the prompt of the first in the cache.
        cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
        if cached is not None:
            known = self._cached_tokens
            self._cached_tokens = cached if known is None else min(known, cached)
        generated = self.usage.get("completion_tokens", 0) + usage.get("completion_tokens", 0)
        prompt = usage.get("prompt_tokens", 0)
        totals = {
            "prompt_tokens": prompt,
            "completion_tokens": generated,
            "total_tokens": prompt + generated,
        }
        self.usage = usage | totals

    def _add_times(self, timings: dict[str, Any], first: int) -> None:
        """Add times: parallel responses take as long as the slowest; groups run in sequence."""
        if not timings:
            return
        if self._prompt_ms is None:
            self._prompt_ms = timings.get("prompt_ms", 0.0)
        before_ms = self._answers_ms.get(first, 0.0)
        self._answers_ms[first] = max(before_ms, timings.get("predicted_ms", 0.0))

    def _add_choice(self, choice: dict[str, Any]) -> None:
        number = choice.get("index", 0)
        kept = self._choices.setdefault(
            number,
            {"index": number, "message": {"role": "assistant", "content": None}},
        )
        message = kept["message"]
        delta = choice.get("delta") or {}
        for name, key in (("content", "content"), ("reasoning_content", "reasoning")):
            if delta.get(name):
                message[key] = (message.get(key) or "") + delta[name]
        for call in delta.get("tool_calls") or ():
            _add_call(message.setdefault("tool_calls", []), call)
        probabilities = (choice.get("logprobs") or {}).get("content")
        if probabilities:
            kept.setdefault("logprobs", {"content": []})["content"] += probabilities
        if choice.get("finish_reason"):
            kept["finish_reason"] = choice["finish_reason"]

    def completion(self) -> dict[str, Any]:
        choices = [self._choices[number] for number in sorted(self._choices)]
        for choice in choices:
            choice.setdefault("logprobs", None)
            choice.setdefault("finish_reason", "stop")
            if choice["message"]["content"] is None and "tool_calls" not in choice["message"]:
                choice["message"]["content"] = ""
        return {
            "id": self._facts.get("id") or f"chatcmpl-{secrets.token_hex(12)}",
            "object": "chat.completion",
            "created": self._facts.get("created") or int(time.time()),
            "model": self._model,
            "system_fingerprint": self._facts.get("system_fingerprint"),
            "choices": choices,
            "usage": self.usage_with_times(),
        }

    def usage_with_times(self) -> dict[str, Any]:
        """Return token counts, and the times in seconds that the API reports with them."""
        usage: dict[str, Any] = {
            name: self.usage.get(name, 0)
            for name in ("prompt_tokens", "completion_tokens", "total_tokens")
        }
        if self._cached_tokens is not None:
            usage["prompt_tokens_details"] = {"cached_tokens": self._cached_tokens}
        prompt_s = (self._prompt_ms or 0.0) / 1e3
        answer_s = sum(self._answers_ms.values()) / 1e3
        return usage | {
            "prompt_time": round(prompt_s, 6),
            "completion_time": round(answer_s, 6),
            "total_time": round(prompt_s + answer_s, 6),
        }


def _add_call(calls: list[dict[str, Any]], call: dict[str, Any]) -> None:
    number = call.get("index", 0)
    while len(calls) <= number:
        calls.append({"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
    kept = calls[number]
    kept["id"] = call.get("id") or kept["id"]
    function = call.get("function") or {}
    kept["function"]["name"] += function.get("name") or ""
    kept["function"]["arguments"] += function.get("arguments") or ""
