"""A key that an upstream repeats in a stream, also where it comes in pieces: nobody gets it.

Chunks go on as they came, and unread, for as long as none of their texts ends as the key begins.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.redaction import redact, redact_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux._native._core import ChatChunk

    #: Where a text is: names of members, and the numbers of choices and calls.
    Path = tuple[str | int, ...]

_MASK = "***"
#: Escapes that a letter of a key can have. Most answers have none, which is found out quickly.
_ESCAPED = re.compile(rb"\\(?:/|u00[2-7])")
#: All escapes, one after the other: a backslash that is escaped begins no other.
_ESCAPE = re.compile(rb"\\(?:u00([2-7][0-9A-Fa-f])|.)", re.DOTALL)
#: A chunk with so much of the key's beginning is read. Less is looked for at the ends of texts.
_HEAD = 4
#: Of a long key so many letters are no secret, and many words end so: they are not held.
_MAX_UNHELD_CHARACTERS = 3
_LETTERS_FOR_ONE_FREE = 8
#: Texts of one answer that end as the key begins; an honest one has hardly one.
_MAX_OPEN = 64


class WrittenKey:
    r"""A key as JSON has it: looking for so many bytes costs next to nothing.

    Args:
        key: Visible ASCII.

    Example:
        >>> from polymux.upstreams.key_redaction import WrittenKey
        >>> key = WrittenKey("sk-0123456789")
        >>> key.is_in(b'["sk\\u002d0123456789"]'), key.may_begin_in(b'{"text": "a boat"}')
        (True, False)
        >>> key.may_begin_in(b'{"text": "words"}')
        True
    """

    def __init__(self, key: str) -> None:
        """Nothing is looked for."""
        self.text = key
        self.free = min(_MAX_UNHELD_CHARACTERS, len(key) // _LETTERS_FOR_ONE_FREE)
        letters = [_written(one.encode()) for one in key]
        self._whole = b"".join(letters)
        head = [re.escape(one) for one in letters[:_HEAD]]
        ends = b"|".join(b"".join(head[:count]) for count in range(1, len(head)))
        # The end of a text, and of no member's name.
        self._beginning = re.compile(rb'%s|(?:%s)"[ \t\r\n]*[,}\]]' % (b"".join(head), ends))

    def is_in(self, data: bytes) -> bool:
        """Whether JSON has all of it, however its letters are written."""
        if self._whole in data:
            return True
        return _ESCAPED.search(data) is not None and self._whole in _unescaped(data)

    def may_begin_in(self, data: bytes) -> bool:
        """Whether JSON has a text that ends as the key begins, or more of it anywhere."""
        if self._beginning.search(data) is not None:
            return True
        return _ESCAPED.search(data) is not None and (
            self._beginning.search(_unescaped(data)) is not None
        )

    def end_of(self, text: str) -> int:
        """How many letters at the end of a text are the beginning of the key, and not all of it."""
        most = min(len(text), len(self.text) - 1)
        return next((size for size in range(most, 0, -1) if text.endswith(self.text[:size])), 0)


@dataclass(slots=True)
class _Open:
    """A text that ends as the key begins.

    Attributes:
        sent: What callers have of the key's beginning.
        held: What comes behind it, and they do not have yet.
        head: Members of the chunk that it came in.
    """

    sent: str
    held: str
    head: dict[str, Any]

    def let_go(self) -> str:
        """What was held, as it may be told where no more comes."""
        text, self.held = self.held, ""
        hides = text and redact(self.sent + text) != self.sent + text
        self.sent += text
        return _MASK if hides else text


class _Text(NamedTuple):
    """One of a chunk's texts: where it is, and what has it."""

    path: Path
    owner: dict[str, Any] | list[Any]
    at: Any


class Echoes:
    """Takes the key out of one answer's chunks.

    A text's end that may be the key's beginning is held until the next piece of the same text, the
    end of that choice or the end of the stream.

    Args:
        key: The key, or None where there is none.
    """

    def __init__(self, key: WrittenKey | None) -> None:
        """Nothing has come."""
        self._key = key
        self._open: dict[Path, _Open] = {}

    def without(self, chunk: ChatChunk) -> ChatChunk:
        """The next chunk as callers may have it: the same one, where it repeats nothing."""
        key = self._key
        if key is None or not (self._open or key.may_begin_in(chunk.raw)):
            return chunk
        value: Any = chunk.json()
        changed = self._read(key, value)
        if key.is_in(chunk.raw):
            changed, value = True, redact_json(value)
        return _chunk_of(value) if changed else chunk

    def rest(self) -> Iterator[ChatChunk]:
        """What was held to the end, in chunks of its own."""
        for path, one in self._open.items():
            text = one.let_go()
            if text:
                value = redact_json(one.head)
                if path[0] == "choices":
                    value["choices"] = [{"index": path[1], "delta": {}, "finish_reason": None}]
                _put(value, path, text)
                yield _chunk_of(value)
        self._open.clear()

    def _read(self, key: WrittenKey, value: dict[str, Any]) -> bool:
        """Takes the key, and what may be its beginning, out of all texts; whether there was any."""
        changed = False
        told = {name: one for name, one in value.items() if name != "response"}
        head = {name: one for name, one in told.items() if isinstance(one, (str, int))}
        if isinstance(value.get("response"), str):
            changed = self._take(key, _Text(("response",), value, "response"), head)
        choices = value.get("choices")
        for number, choice in enumerate(choices if isinstance(choices, list) else ()):
            if not isinstance(choice, dict):
                continue
            path = ("choices", _number_of(choice, number))
            found = [
                self._take(key, text, head)
                for name in ("delta", "message")
                if name in choice
                for text in _texts((*path, name), choice, name)
            ]
            if choice.get("finish_reason"):
                found.append(self._end(path, value))
            if any(found):
                changed = True
                if choice.get("logprobs") is not None:
                    choice["logprobs"] = None  # They tell each piece of the text again.
        return changed

    def _take(self, key: WrittenKey, text: _Text, head: dict[str, Any]) -> bool:
        """One text; whether it was changed."""
        new = text.owner[text.at]
        if not new:
            return False
        before = self._open.pop(text.path, None)
        sent, held = (before.sent, before.held) if before else ("", "")
        whole = f"{sent}{held}{new}"
        size = key.end_of(whole.rpartition(key.text)[2])
        told, end = whole[: len(whole) - size], whole[len(whole) - size :]
        gone = max(0, len(sent) - len(told))  # Of the end, what callers have already.
        out = _masked_behind(told, len(sent), key.text)
        room = len(self._open) < _MAX_OPEN
        if size <= key.free:
            out, kept = out + end[gone:], _Open(end, "", head)
        else:
            out, kept = out if room else out + _MASK, _Open(end[:gone], end[gone:], head)
        if size and room:
            self._open[text.path] = kept
        text.owner[text.at] = out
        return bool(out != new)

    def _end(self, path: Path, value: dict[str, Any]) -> bool:
        """What was held of a choice that comes to its end goes into its last chunk."""
        found = False
        for known, one in self._open.items():
            text = one.let_go() if known[: len(path)] == path else ""
            if text:
                found = True
                _put(value, known, text)
        return found


def _texts(path: Path, owner: Any, at: Any) -> Iterator[_Text]:
    """All texts from there on."""
    value = owner[at]
    if isinstance(value, str):
        yield _Text(path, owner, at)
    elif isinstance(value, dict):
        for name in value:
            yield from _texts((*path, name), value, name)
    elif isinstance(value, list):
        for number, one in enumerate(value):
            yield from _texts((*path, _number_of(one, number)), value, number)


def _masked_behind(text: str, start: int, key: str) -> str:
    """A text from there on, with the mask in the place of each key that ends behind that."""
    first = text.find(key)
    if 0 <= first < start:
        return _MASK + text[first + len(key) :].replace(key, _MASK)
    return text[start:].replace(key, _MASK)


def _put(value: dict[str, Any], path: Path, text: str) -> None:
    """Adds to the text at a path, of which nothing needs to be there."""
    owner: Any = value
    for at, inner in pairwise(path):
        empty: dict[str, Any] | list[Any] = [] if isinstance(inner, int) else {}
        if isinstance(owner, dict):
            if not isinstance(owner.get(at), type(empty)):
                owner[at] = empty
            owner = owner[at]
            continue
        found = next(
            (one for number, one in enumerate(owner) if _number_of(one, number) == at), None
        )
        if not isinstance(found, type(empty)):
            found = empty if isinstance(inner, int) else {"index": at}
            owner.append(found)
        owner = found
    if isinstance(owner, list):
        owner.append(text)
    else:
        owner[path[-1]] = f"{owner.get(path[-1]) or ''}{text}"


def _number_of(value: object, number: int) -> int:
    """Of a choice or a call what it says itself: chunks have some of them only."""
    told = value.get("index") if isinstance(value, dict) else None
    return told if isinstance(told, int) else number


def _chunk_of(value: Any) -> ChatChunk:
    from polymux._native.core import core

    return core.ChatChunk(core.write_json(value))


def _written(text: bytes) -> bytes:
    return text.replace(b"\\", b"\\\\").replace(b'"', b'\\"')


def _unescaped(data: bytes) -> bytes:
    """JSON without the escapes that it need not have: any letter of a key may be written as one."""
    return _ESCAPE.sub(_plain, data)


def _plain(escape: re.Match[bytes]) -> bytes:
    if escape[1] is not None:
        return _written(bytes.fromhex(escape[1].decode()))
    return b"/" if escape[0] == b"\\/" else escape[0]
