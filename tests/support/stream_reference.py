"""Chat streams read the slow way: a second opinion on `polymux.decode_chat_stream`.

Lines by a regular expression, events by a loop over them, documents by Python's json.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

_LINE_END = re.compile(rb"\r\n|\r|\n")
_TEXT = re.compile(r'"(?:[^"\\]|\\.)*"')
_LARGEST_INDEX = 2**31 - 1
_MARK = b"\xef\xbb\xbf"


class HalfACharacter(Exception):  # noqa: N818 - no failure, but a stream that is read otherwise
    """A text holds half of a surrogate pair, which may belong to a half in another chunk."""


class Chunk(NamedTuple):
    """What one chunk says."""

    content: str
    finish_reason: str | None
    role: str | None
    choice: int | None
    raw: bytes


class Reading(NamedTuple):
    """What there is to read, and how it ends."""

    chunks: list[Chunk]
    end: str  # "finished", "interrupted", "failed" or "undecodable"


class Said(NamedTuple):
    """A document, as far as a decoder looks into it."""

    chunk: Chunk
    is_error: bool
    has_choices: bool
    ended: dict[int, bool]  # By the choice's number.


def read(body: bytes) -> Reading:
    """The chunks of a stream's bytes, and its end.

    Raises:
        HalfACharacter: A text holds half of a surrogate pair.
    """
    plain = body.removeprefix(_MARK).lstrip(b" \t\r\n")
    if plain.startswith(b"<"):
        return Reading([], "undecodable")
    if plain.startswith((b"{", b"[")):
        return _read_one_document(plain)
    chunks: list[Chunk] = []
    ended: dict[int, bool] = {}
    events, rest = _events(body.removeprefix(_MARK))
    for kind, data in events:
        shown = data.lstrip(b" \t\n")
        if shown.startswith(b"[DONE]"):
            return Reading(chunks, "finished")
        if not shown:
            continue
        document = _document(data)
        if kind == b"error":
            return Reading(chunks, "failed")
        if document is None:
            return Reading(chunks, "undecodable")
        said = _said(document, data)
        if said.is_error:
            return Reading(chunks, "failed")
        chunks.append(said.chunk)
        for number, has_ended in said.ended.items():
            ended[number] = ended.get(number, False) or has_ended
    return Reading(chunks, _end(ended, rest))


def _read_one_document(body: bytes) -> Reading:
    document = _document(body)
    said = None if document is None else _said(document, body)
    if said is None:
        return Reading([], "undecodable")
    if said.is_error:
        return Reading([], "failed")
    return Reading([said.chunk], "finished") if said.has_choices else Reading([], "undecodable")


def _end(ended: dict[int, bool], rest: bytes) -> str:
    if (ended and all(ended.values())) or rest.lstrip(b" \t\n").startswith(b"[DONE]"):
        return "finished"
    document = _document(rest)
    is_error = document is not None and _said(document, rest).is_error
    return "failed" if is_error else "interrupted"


def _events(body: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Type and data of the events, and the data of one whose blank line is missing."""
    *lines, last = _LINE_END.split(body)
    found = []
    kind = b""
    data: list[bytes] = []
    for line in lines:
        name, colon, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if data:
                found.append((kind, b"\n".join(data)))
            kind, data = b"", []
        elif name == b"data":
            data.append(value)
        elif name == b"event":
            kind = value
        elif name == b"error" and colon and value.startswith(b"{"):  # llama.cpp's own
            kind = b"error"
            data.append(value)
    if not data and last.startswith(b"data:"):
        data = [last.removeprefix(b"data:").removeprefix(b" ")]
    return found, b"\n".join(data)


def _document(data: bytes) -> dict[str, Any] | None:
    """The object; None where the bytes are none that a strict parser takes."""
    try:
        text = data.decode()
        value = json.loads(text, parse_constant=_refuse, parse_int=_integer, parse_float=_number)
    except (ValueError, RecursionError):
        return None
    if "\\u" in text:
        for found in _TEXT.findall(text):
            try:
                json.loads(found).encode()
            except UnicodeEncodeError:
                raise HalfACharacter from None
    return value if isinstance(value, dict) else None


def _refuse(_: str) -> None:
    raise ValueError("no JSON")


def _integer(text: str) -> int:
    value = int(text)
    if not -(2**63) <= value < 2**64:
        raise ValueError("beyond 64 bits")
    return value


def _number(text: str) -> float:
    value = float(text)
    if value in (float("inf"), float("-inf")):
        raise ValueError("too large")
    return value


def _said(document: dict[str, Any], raw: bytes) -> Said:
    choices = document.get("choices")
    response = document.get("response")
    is_error = _tells_a_failure(document.get("error")) or document.get("object") == "error"
    if not isinstance(choices, list):
        has_response = isinstance(response, str)
        text = response if isinstance(response, str) else ""
        return Said(Chunk(text, None, None, None, raw), is_error, has_response, {})
    content, reason, role, first = "", None, None, None
    ended: dict[int, bool] = {}
    for place, choice in enumerate(choices):
        if not isinstance(choice, dict):
            continue
        number, own_reason = _index(choice.get("index")), _text(choice.get("finish_reason"))
        counted = min(number, 63)
        ended[counted] = ended.get(counted, False) or own_reason is not None
        if place == 0:
            content, role = _delta(choice)
            first, reason = number, own_reason
    return Said(Chunk(content, reason, role, first, raw), is_error, True, ended)


def _delta(choice: dict[str, Any]) -> tuple[str, str | None]:
    """Content and role; of a delta and a message the later counts."""
    (*_, delta) = [None, *(choice[key] for key in choice if key in ("delta", "message"))]
    if not isinstance(delta, dict):
        return "", None
    content = delta.get("content")
    if isinstance(content, list):
        texts = [part.get("text") for part in content if isinstance(part, dict)]
        content = "".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else "", _text(delta.get("role"))


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _index(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value >= 2**63:
        return 0
    return min(max(value, 0), _LARGEST_INDEX)


def _tells_a_failure(error: object) -> bool:
    if isinstance(error, list):
        return True
    if isinstance(error, (int, float)):
        return not isinstance(error, bool)
    return bool(error)
