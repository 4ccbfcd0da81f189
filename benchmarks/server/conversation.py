"""The request, the answer, and the bytes that clients send; the same for every server."""

from __future__ import annotations

import json
from typing import Any

CHAT = "/api/v1/fastllm/chatcompletion"
CONVERT = "/api/v1/convert2mp3"
TRANSCRIBE = "/api/v1/modelhost/stt"
MODEL = "default"
ID = "chatcmpl-0d6fa6a1-1c2b-4d3e-9f50-6a7b8c9d0e1f"
CREATED = 1763740800
#: First word of a message that asks the no-op engine for something else than an immediate answer.
STREAM, HOLD, DEAF = "stream", "hold", "deaf"
_WORDS = "The sky scatters blue light more than red. "

#: A complete answer of typical size.
COMPLETION: dict[str, Any] = {
    "id": ID,
    "object": "chat.completion",
    "created": CREATED,
    "model": MODEL,
    "system_fingerprint": "fp_4e32347616",
    "choices": [
        {
            "index": 0,
            "message": {"role": "assistant", "content": (_WORDS * 6).strip()},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ],
    "usage": {
        "prompt_tokens": 12,
        "completion_tokens": 40,
        "total_tokens": 52,
        "prompt_time": 0.002,
        "completion_time": 0.04,
        "total_time": 0.042,
    },
}


def chunk(text: str) -> dict[str, Any]:
    """Return a chunk of a streamed answer."""
    return {
        "id": ID,
        "object": "chat.completion.chunk",
        "created": CREATED,
        "model": MODEL,
        "system_fingerprint": "fp_4e32347616",
        "choices": [
            {"index": 0, "delta": {"content": text}, "logprobs": None, "finish_reason": None}
        ],
    }


def body(content: str = "", **more: Any) -> dict[str, Any]:
    """Return a chat request of about 310 bytes, or one with a command for the no-op engine."""
    question = content or "Why is the sky blue? Answer in two sentences, for a child of six."
    return {
        "model": MODEL,
        "messages": [
            {"role": "system", "content": "You are a teacher who answers briefly and kindly."},
            {"role": "user", "content": question},
        ],
        "temperature": 0.7,
        "top_p": 0.95,
        "max_completion_tokens": 256,
        "seed": 7,
        **more,
    }


def streamed(tokens: int, rate: int) -> dict[str, Any]:
    """Return a chat request whose answer has `tokens` chunks, `rate` per second."""
    return body(f"{STREAM} {tokens} {rate}", stream=True)


def head(
    key: str,
    length: int,
    *,
    path: str = CHAT,
    method: str = "POST",
    kind: str = "application/json",
    fields: tuple[str, ...] = (),
) -> bytes:
    """Return the header of a request as clients send it."""
    lines = (
        f"{method} {path} HTTP/1.1",
        "Host: 127.0.0.1",
        f"Authorization: Bearer {key}",
        "Accept: */*",
        "User-Agent: benchmark",
        f"Content-Type: {kind}",
        f"Content-Length: {length}",
        *fields,
        "",
        "",
    )
    return "\r\n".join(lines).encode()


def request(key: str, value: dict[str, Any], *, path: str = CHAT) -> bytes:
    """Return the bytes of a chat request."""
    data = json.dumps(value).encode()
    return head(key, len(data), path=path) + data


def form_parts(file_name: str, field: str = "file") -> tuple[bytes, bytes, str]:
    """Return the parts before and after the only file of a form, and the form's content type."""
    before = (
        f'--boundary-of-the-benchmark\r\nContent-Disposition: form-data; name="{field}"; '
        f'filename="{file_name}"\r\nContent-Type: application/octet-stream\r\n\r\n'
    )
    behind = "\r\n--boundary-of-the-benchmark--\r\n"
    kind = "multipart/form-data; boundary=boundary-of-the-benchmark"
    return before.encode(), behind.encode(), kind


def upload(key: str, data: bytes, *, path: str = CONVERT, field: str = "file") -> bytes:
    """Return the bytes of a form with one file."""
    before, behind, kind = form_parts("a.wav", field)
    length = len(before) + len(data) + len(behind)
    return head(key, length, path=path, kind=kind) + before + data + behind
