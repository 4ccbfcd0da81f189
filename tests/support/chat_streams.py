"""Streams in the shapes of six servers, made from what their documentation shows."""

from __future__ import annotations

import json
import random
from typing import Any

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


def openai(texts: list[str], *, obfuscation: bool = False) -> bytes:
    """OpenAI: a role first, one padding string per chunk, usage in a chunk without choices."""
    pad = random.Random(7)

    def chunk(choices: list[Any], **more: Any) -> bytes:
        value = {
            "id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
            "object": "chat.completion.chunk",
            "created": 1741570283,
            "model": "gpt-4o-2024-08-06",
            "service_tier": "default",
            "system_fingerprint": "fp_fc9f1d7035",
            "choices": choices,
            "usage": None,
            **more,
        }
        if obfuscation:
            value["obfuscation"] = "".join(pad.choices("abcdefXYZ0123456789", k=pad.randint(1, 14)))
        return event(value, separators=(",", ":"))

    body = chunk([_delta({"role": "assistant", "content": "", "refusal": None}, logprobs=None)])
    body += b"".join(chunk([_delta({"content": text}, logprobs=None)]) for text in texts)
    body += chunk([_delta({}, "stop", logprobs=None)])
    usage = {"prompt_tokens": 19, "completion_tokens": len(texts), "total_tokens": 19 + len(texts)}
    return body + chunk([], usage=usage) + DONE


def groq(texts: list[str]) -> bytes:
    """Groq: x_groq in the first and the last chunk, usage inside it."""

    def chunk(choices: list[Any], **more: Any) -> bytes:
        return event(
            {
                "id": "chatcmpl-f51b2cd2-bef7-417e-964e-a08f0b513c22",
                "object": "chat.completion.chunk",
                "created": 1730241104,
                "model": "openai/gpt-oss-20b",
                "system_fingerprint": "fp_179b0f92c9",
                "choices": choices,
                **more,
            },
            **COMPACT,
        )

    first = _delta({"role": "assistant", "content": ""}, logprobs=None)
    body = chunk([first], x_groq={"id": "req_01jbd6g2qdfw2adyrt2az8hz4w"})
    body += b"".join(chunk([_delta({"content": text}, logprobs=None)]) for text in texts)
    counts = {"queue_time": 0.037, "prompt_tokens": 18, "total_tokens": 18 + len(texts)}
    return body + chunk([_delta({}, "stop", logprobs=None)], x_groq={"usage": counts}) + DONE


def llama_cpp(texts: list[str]) -> bytes:
    """llama.cpp: content null at first, the choices before everything else, timings at the end."""

    def chunk(choices: list[Any], **more: Any) -> bytes:
        return event(
            {
                "choices": choices,
                "created": 1757141666,
                "id": "chatcmpl-ecQULm0WqPrftUqjPZO1CFYeDjGZNbDu",
                "model": "gemma-3",
                "system_fingerprint": "b6396-a",
                "object": "chat.completion.chunk",
                **more,
            },
            **COMPACT,
        )

    def choice(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
        return {"finish_reason": finish, "index": 0, "delta": delta}

    body = chunk([choice({"role": "assistant", "content": None})])
    body += b"".join(chunk([choice({"content": text})]) for text in texts)
    timings = {"predicted_n": len(texts), "predicted_ms": 51.4, "predicted_per_second": 97.2}
    usage = {"completion_tokens": len(texts), "prompt_tokens": 8, "total_tokens": 8 + len(texts)}
    return body + chunk([choice({}, "stop")]) + chunk([], usage=usage, timings=timings) + DONE


def vllm(texts: list[str]) -> bytes:
    """vLLM with continuous usage: the counts change in every chunk."""
    body = b""
    for number, text in enumerate(["", *texts, None]):
        delta: dict[str, Any] = {"role": "assistant"} if number == 0 else {}
        if text is not None:
            delta["content"] = text
        value = {
            "id": "chatcmpl-5d6a3f4b0d1c4a2f",
            "object": "chat.completion.chunk",
            "created": 1694268190,
            "model": "Qwen/Qwen2.5",
            "choices": [_delta(delta, None if text is not None else "stop", logprobs=None)],
            "usage": {"prompt_tokens": 5, "total_tokens": 5 + number, "completion_tokens": number},
        }
        body += event(value, **COMPACT)
    return body + DONE


def ollama(texts: list[str]) -> bytes:
    """Ollama: the role in every chunk, the time of its making too."""
    body = b""
    for number, text in enumerate([*texts, ""]):
        finish = "stop" if number == len(texts) else None
        value = {
            "id": "chatcmpl-748",
            "object": "chat.completion.chunk",
            "created": 1722000000 + number // 3,
            "model": "llama3.2",
            "system_fingerprint": "fp_ollama",
            "choices": [_delta({"role": "assistant", "content": text}, finish)],
        }
        body += event(value, **COMPACT)
    return body + DONE


def mistral(texts: list[str]) -> bytes:
    """Mistral: usage in the last chunk, a parameter `p` of changing length in every one."""
    body = b""
    for number, text in enumerate(["", *texts, ""]):
        last = number == len(texts) + 1
        delta = {"role": "assistant", "content": text} if number == 0 else {"content": text}
        value: dict[str, Any] = {
            "id": "cmpl-7c2d",
            "object": "chat.completion.chunk",
            "created": 1756000000,
            "model": "mistral-small-latest",
            "choices": [_delta(delta, "stop" if last else None)],
        }
        if last:
            value["usage"] = {"prompt_tokens": 9, "total_tokens": 9 + len(texts)}
        value["p"] = "abcdefghijklmnopqrstuvwxyz"[: number % 26 + 1]
        body += event(value, **COMPACT)
    return body + DONE


SERVERS = {
    "openai": openai,
    "openai_obfuscated": lambda texts: openai(texts, obfuscation=True),
    "groq": groq,
    "llama_cpp": llama_cpp,
    "vllm": vllm,
    "ollama": ollama,
    "mistral": mistral,
}
