"""Streams in the formats of six servers, after the examples in their documentation."""

from __future__ import annotations

import json
import random
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable

WORDS = [
    "Hel",
    "lo",
    ",",
    " world",
    "!",
    " é",
    "你好",
    " 😀",
    ' "so"',
    "\n",
    "\\",
    "\t",
    " it's",
    "",
]


def event(value: Any, **dumps: Any) -> bytes:
    return b"data: " + json.dumps(value, **dumps).encode() + b"\n\n"


COMPACT = {"separators": (",", ":"), "ensure_ascii": False}
DONE = b"data: [DONE]\n\n"


def words(count: int) -> list[str]:
    choose = random.Random(count)
    return [choose.choice(WORDS) for _ in range(count)]


def _delta(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    return {"index": 0, "delta": delta, **more, "finish_reason": finish}


def _stream(head: dict[str, Any], chunks: Iterable[dict[str, Any]]) -> bytes:
    return b"".join(event(head | chunk, **COMPACT) for chunk in chunks) + DONE


def _head(name: str, created: int, model: str, **more: Any) -> dict[str, Any]:
    return {
        "id": name,
        "object": "chat.completion.chunk",
        "created": created,
        "model": model,
    } | more


def openai(texts: list[str], *, obfuscation: bool = False) -> bytes:
    """OpenAI: a role first, one padding string per chunk, usage in a chunk without choices."""
    pad = random.Random(7)
    first = {"role": "assistant", "content": "", "refusal": None}
    deltas = [first, *({"content": text} for text in texts)]
    chunks: list[dict[str, Any]] = [{"choices": [_delta(one, logprobs=None)]} for one in deltas]
    usage = {"prompt_tokens": 19, "completion_tokens": len(texts), "total_tokens": 19 + len(texts)}
    chunks += [{"choices": [_delta({}, "stop", logprobs=None)]}, {"choices": [], "usage": usage}]
    for chunk in chunks:
        chunk.setdefault("usage", None)
        if obfuscation:
            chunk["obfuscation"] = "".join(pad.choices("abcXYZ0123456789", k=pad.randint(1, 14)))
    name, model = "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG", "gpt-4o-2024-08-06"
    head = _head(
        name, 1741570283, model, service_tier="default", system_fingerprint="fp_fc9f1d7035"
    )
    return _stream(head, chunks)


def groq(texts: list[str]) -> bytes:
    """Groq: x_groq in the first and the last chunk, usage inside it."""
    deltas = [{"role": "assistant", "content": ""}, *({"content": text} for text in texts)]
    chunks: list[dict[str, Any]] = [{"choices": [_delta(one, logprobs=None)]} for one in deltas]
    chunks[0]["x_groq"] = {"id": "req_01jbd6g2qdfw2adyrt2az8hz4w"}
    usage = {"queue_time": 0.037, "prompt_tokens": 18, "total_tokens": 18 + len(texts)}
    last = {"choices": [_delta({}, "stop", logprobs=None)], "x_groq": {"usage": usage}}
    name = "chatcmpl-f51b2cd2-bef7-417e-964e-a08f0b513c22"
    head = _head(name, 1730241104, "openai/gpt-oss-20b", system_fingerprint="fp_179b0f92c9")
    return _stream(head, [*chunks, last])


def llama_cpp(texts: list[str]) -> bytes:
    """llama.cpp: content is null at first, choices precede other members, timings at the end."""

    def choices(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"choices": [{"finish_reason": finish, "index": 0, "delta": delta}]}

    timings = {"predicted_n": len(texts), "predicted_ms": 51.4, "predicted_per_second": 97.2}
    usage = {"completion_tokens": len(texts), "prompt_tokens": 8, "total_tokens": 8 + len(texts)}
    head = _head("chatcmpl-ecQULm0WqPrftUqjPZO1CFYeDjGZNbDu", 1757141666, "gemma-3")
    chunks = [choices({"role": "assistant", "content": None})]
    chunks += [choices({"content": text}) for text in texts]
    chunks += [choices({}, "stop"), {"choices": [], "usage": usage, "timings": timings}]
    return _stream({"choices": []} | head | {"system_fingerprint": "b6396-a"}, chunks)


def vllm(texts: list[str]) -> bytes:
    """vLLM with continuous usage: the counts change in every chunk."""
    chunks = []
    for number, text in enumerate(["", *texts, None]):
        delta: dict[str, Any] = {"role": "assistant"} if number == 0 else {}
        if text is not None:
            delta["content"] = text
        choice = _delta(delta, None if text is not None else "stop", logprobs=None)
        usage = {"prompt_tokens": 5, "total_tokens": 5 + number, "completion_tokens": number}
        chunks.append({"choices": [choice], "usage": usage})
    return _stream(_head("chatcmpl-5d6a3f4b0d1c4a2f", 1694268190, "Qwen/Qwen2.5"), chunks)


def ollama(texts: list[str]) -> bytes:
    """Ollama: role and creation time in every chunk."""
    chunks = []
    for number, text in enumerate([*texts, ""]):
        finish = "stop" if number == len(texts) else None
        choices = [_delta({"role": "assistant", "content": text}, finish)]
        chunks.append({"created": 1722000000 + number // 3, "choices": choices})
    return _stream(_head("chatcmpl-748", 0, "llama3.2", system_fingerprint="fp_ollama"), chunks)


def mistral(texts: list[str]) -> bytes:
    """Mistral: usage in the last chunk, a parameter `p` of changing length in every one."""
    chunks: list[dict[str, Any]] = []
    for number, text in enumerate(["", *texts, ""]):
        last = number == len(texts) + 1
        delta = {"role": "assistant", "content": text} if number == 0 else {"content": text}
        chunk: dict[str, Any] = {"choices": [_delta(delta, "stop" if last else None)]}
        if last:
            chunk["usage"] = {"prompt_tokens": 9, "total_tokens": 9 + len(texts)}
        chunks.append(chunk | {"p": "abcdefghijklmnopqrstuvwxyz"[: number % 26 + 1]})
    return _stream(_head("cmpl-7c2d", 1756000000, "mistral-small-latest"), chunks)


SERVERS = {
    "openai": openai,
    "openai_obfuscated": lambda texts: openai(texts, obfuscation=True),
    "groq": groq,
    "llama_cpp": llama_cpp,
    "vllm": vllm,
    "ollama": ollama,
    "mistral": mistral,
}
