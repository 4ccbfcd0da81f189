"""Chat streams of every shape, right ones and broken ones, by seed."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from support import chat_streams

if TYPE_CHECKING:
    import random

_TEXTS = [
    "a", "Hel", "lo ", "\n", "é", "你", "\U0001f600", '"', "\\", "", "data: x", "[DONE]", "\u2028",
    "\x00", "</s>",
]  # fmt: skip
_OTHER_LINES = [b": hi", b":", b"id: 7", b"retry: 10", b"event: message", b"foo", b"event"]
_ENDS = [b"[DONE]", b"[DONE]", b"[DONE]", b" [DONE]", b"[DONE] ", b"[DONE", b'"[DONE]"']
_PIECES = [
    rb"\u0041", rb"\ud83d\ude00", b"1e999", b"-0", b"00", b"1.", b"NaN", b"\r\n", b"data: ",
    b'"content":"x",', b'"finish_reason":"stop",', b'"error":"x",', b'"choices":[],',
    b'"object":"error",', b"event: error\n",
]  # fmt: skip
_BYTES = b'"\\\n\r:{}, 0-.e\x00\xff\xc3\xed\xf4'


class Style:
    """What all chunks of one stream have in common."""

    def __init__(self, choose: random.Random) -> None:
        def now_and_then(share: float) -> bool:
            return choose.random() < share

        self.varies = now_and_then(0.4)
        self.tells_role = now_and_then(0.5)
        self.choices = choose.choice([1, 1, 1, 2])
        self.padded = now_and_then(0.3)
        self.numbered = now_and_then(0.3)
        self.has_logprobs = now_and_then(0.15)
        self.is_free_chat = now_and_then(0.1)
        self.no_reason = choose.choice([None, None, None, ""])
        self.separators = choose.choice([(",", ":"), (", ", ": ")])
        self.line_end = choose.choice([b"\n", b"\n", b"\r\n", b"\r"])
        self.lead = choose.choice([b"data: ", b"data: ", b"data:"])


def stream(choose: random.Random) -> bytes:
    """The bytes of a stream; most are right."""
    if choose.random() < 0.15:
        make = choose.choice(list(chat_streams.SERVERS.values()))
        return make(chat_streams.words(choose.randrange(1, 12)))
    style = Style(choose)
    if choose.random() < 0.03:
        return b" " * choose.randrange(3) + _chunk(choose, 0, style)
    body = b"\xef\xbb\xbf" if choose.random() < 0.1 else b""
    if choose.random() < 0.05:
        body += choose.choice([b" ", b"\t ", b"\n \n"])
    for number in range(choose.randrange(25)):
        body += _other_lines(choose, style.line_end)
        document = _chunk(choose, number, style)
        if choose.random() < 0.05:
            document = document.replace(b", ", b"," + style.line_end + style.lead, 2)
        body += style.lead + document + style.line_end
        if choose.random() < 0.99:
            body += style.line_end
        if choose.random() < 0.01:
            style.line_end = choose.choice([b"\n", b"\r\n", b"\r"])
    if choose.random() < 0.5:
        body += style.lead + choose.choice(_ENDS)
        body += choose.choice([2 * style.line_end, style.line_end, b""])
    return body


def mutated(choose: random.Random, body: bytes) -> bytes:
    """The bytes with up to five of them changed, taken away, doubled or put in."""
    changed = bytearray(body)
    for _ in range(choose.choice([0, 0, 1, 1, 2, 5])):
        if not changed:
            break
        at = choose.randrange(len(changed))
        kind = choose.randrange(6)
        if kind == 0:
            changed[at] = choose.choice([choose.randrange(256), choose.choice(_BYTES)])
        elif kind == 1:
            del changed[at : at + choose.choice([1, 1, 2, 10, 100])]
        elif kind == 2:
            changed[at:at] = bytes([choose.choice(_BYTES)])
        elif kind == 3:
            del changed[at:]
        elif kind == 4:
            changed[at:at] = changed[at : at + choose.randrange(1, 200)]
        else:
            changed[at:at] = choose.choice(_PIECES)
    return bytes(changed)


def pieces(choose: random.Random, body: bytes) -> list[bytes]:
    """The bytes cut at random places, or between any two."""
    size = len(body)
    if choose.random() < 0.05:
        return [body[at : at + 1] for at in range(size)]
    cuts = sorted(choose.randrange(size + 1) for _ in range(choose.choice([0, 1, 3, 10, 100])))
    return [body[begin:end] for begin, end in zip([0, *cuts], [*cuts, size], strict=True)]


def _other_lines(choose: random.Random, line_end: bytes) -> bytes:
    lines = b""
    if choose.random() < 0.05:
        lines += choose.choice(_OTHER_LINES) + line_end
    if choose.random() < 0.01:
        lines += b"event: error" + line_end
    if choose.random() < 0.01:
        lines += b'error: {"message": "x"}' + 2 * line_end
    return lines


def _chunk(choose: random.Random, number: int, style: Style) -> bytes:
    text = choose.choice(_TEXTS) * choose.choice([1, 1, 1, 3, 40])
    value: dict[str, Any] = {"response": text}
    if not style.is_free_chat:
        value = {
            "id": f"c-{number if style.varies else 0}",
            "object": "chat.completion.chunk",
            "created": 1_700_000_000 + (number if style.varies else 0),
            "choices": _choices(choose, number, style, text),
        }
    if style.padded:
        value["obfuscation"] = "x" * choose.randrange(20)
    if style.numbered:
        value["t"] = choose.choice([0, -1, 1.5, 1e-7, 12345678901234567, 2**63, True, None])
    if choose.random() < 0.02:
        value["error"] = choose.choice([None, "", {}, {"message": "no"}, "bad", 7, False])
    if choose.random() < 0.02:
        value["usage"] = {"total_tokens": number}
    plain = choose.random() < 0.3
    written = json.dumps(value, ensure_ascii=plain, separators=style.separators).encode()
    return written.replace(b"/", rb"\/") if choose.random() < 0.05 else written


def _choices(choose: random.Random, number: int, style: Style, text: str) -> Any:
    delta: dict[str, Any] = {"role": "assistant"} if number == 0 and style.tells_role else {}
    says: list[dict[str, Any]] = [
        {"content": text},
        {"reasoning": text},
        {"tool_calls": [{"index": 0, "function": {"arguments": text}}]},
        {"content": None},
        {"content": [{"type": "text", "text": text}]},
    ]
    delta |= choose.choices(says, [14, 2, 2, 1, 1])[0]
    choice = {
        "index": choose.randrange(style.choices),
        "delta": delta,
        "finish_reason": style.no_reason,
    }
    if choose.random() < 0.05:
        choice["finish_reason"] = choose.choice(["stop", "length", "weird", ""])
    if style.has_logprobs:
        token = {"token": text, "logprob": -0.25 * number, "bytes": [1, number]}
        choice["logprobs"] = {"content": [token]}
    if choose.random() < 0.02:
        return choose.choice([[], [choice, {**choice, "index": 1}], None, [None]])
    return [choice]
