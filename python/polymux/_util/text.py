"""Text from outside, made safe to show: bounded in length, free of control characters."""

from __future__ import annotations

import os
import re

from polymux._util.redaction import redact

SHOWN_CHARACTERS = 200


def printable(text: str) -> str:
    r"""Replaces whatever a terminal or a log would interpret by an escape.

    Control characters, line separators, direction marks and undecodable bytes become ``\x1b``,
    ``\u202e`` and the like; everything else stays as it is.
    """
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else _escaped(char) for char in text)


def _escaped(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: this was the byte code - 0xDC00
        return f"\\x{code - 0xDC00:02x}"
    return char.encode("unicode_escape").decode("ascii")


def shortened(text: str, limit: int = SHOWN_CHARACTERS) -> str:
    """At most `limit` characters, the middle left out: both ends of a path or value tell most.

    Keys are hidden before: cut in two, one would not be known for what it is.
    """
    text = redact(text)
    if len(text) <= limit:
        return text
    kept = limit - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


def shown(value: object) -> str:
    """A value of the caller as an error message may quote it."""
    if isinstance(value, str):
        value = redact(value)  # Before its backslashes and quotes are doubled.
    return shortened(printable(repr(value)))


def display_name(path: str | bytes) -> str:
    """A path as a message may quote it."""
    return shortened(printable(os.fsdecode(path)))


def clock(seconds: float) -> str:
    """A duration as people write it: ``"0:07"``, ``"3:25"``, ``"1:02:03"``."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}:{minutes:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}"


def size(count: float) -> str:
    """A number of bytes in decimal units: ``"512 B"``, ``"3.2 MB"``."""
    unit = "B"
    for larger in ("kB", "MB", "GB"):
        if count < 999.95:
            break
        count, unit = count / 1000, larger
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


#: Pictures that are read: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM. Of BMP's two letters words begin,
#: so what is reserved in its header counts too.
PICTURE = re.compile(
    rb"\x89PNG\r\n\x1a\n|\xff\xd8\xff|II[*+]\0|MM\0[*+]|BM.{4}\0{4}|GIF8[79]a|RIFF.{4}WEBP|"
    rb"P[1-6][ \t\r\n]",
    re.DOTALL,
)
#: What no text has, and every container of media: they have lengths and counts at their beginning.
NO_TEXT = re.compile(rb"[\0-\x08\x0e-\x1a\x1c-\x1f]")


def path_in(url: str) -> str:
    """The path in an address; of what is none, such as ``http://[x/a.png``, what looks like it."""
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).path
    except ValueError:
        bare = url.partition("#")[0].partition("?")[0].partition("://")[2]
        return "".join(bare.partition("/")[1:])
