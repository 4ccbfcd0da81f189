"""Safe display of untrusted text: limited length, no control characters."""

from __future__ import annotations

import os

from polymux._util.redaction import redact

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Iterable

SHOWN_CHARACTERS = 200


def printable(text: str) -> str:
    r"""Escape characters that a terminal or a log would interpret.

    Control characters, line separators, direction marks and undecodable bytes become ``\x1b``,
    ``\u202e`` and the like. Other characters are unchanged.
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
    """Shorten a text to `limit` characters by cutting the middle: both ends identify most paths.

    Redacts keys first, because a part of a key would not be recognized.
    """
    text = redact(text)
    if len(text) <= limit:
        return text
    kept = limit - 3
    return f"{text[: kept - kept // 2]}...{text[len(text) - kept // 2 :]}"


def shown(value: object) -> str:
    """Return the `repr` of a value, shortened and redacted for messages."""
    if isinstance(value, str):
        value = redact(value)  # Before `repr` escapes backslashes and quotes.
    return shortened(printable(repr(value)))


def short_repr(one: object, *names: str, **values: object) -> str:
    """Return a `repr` of a result on one line.

    Args:
        one: The result.
        names: Its attributes to show after `values`, unless they are None, zero or empty.
        values: Values to show first.

    Example:
        >>> short_repr(ValueError("x"), "args", bytes=3, took_s=0.12345)
        "ValueError(bytes=3, took_s=0.123, args=('x',))"
    """
    found = {name: value for name in names if (value := getattr(one, name))}
    parts = (f"{name}={shown(_plain(value))}" for name, value in (values | found).items())
    return redact(f"{type(one).__name__}({', '.join(parts)})")


def _plain(value: object) -> object:
    """Return paths as texts, and rounded numbers."""
    if isinstance(value, tuple):
        return tuple(map(_plain, value))
    if isinstance(value, os.PathLike):
        return os.fspath(value)
    return round(value, 3) if isinstance(value, float) else value


def display_name(path: str | bytes) -> str:
    """Return a path, shortened and redacted for messages."""
    return shortened(printable(os.fsdecode(path)))


def unknown_operation(name: str) -> str:
    """Return the message about an operation that does not exist."""
    return f"unknown operation {shown(name)}. Run 'polymux operations' to list them"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name; empty if no known name is similar.

    Example:
        >>> did_you_mean("transcrib", ["chat", "transcribe"])
        ". Did you mean 'transcribe'?"
    """
    from difflib import get_close_matches  # Only needed for errors.

    near = get_close_matches(name, known, n=1)
    return f". Did you mean {shown(near[0])}?" if near else ""


def sentences(*parts: str) -> str:
    """Join the parts of a message that are not empty; each after the first starts a sentence.

    Example:
        >>> sentences("model x is not installed", "", "run 'polymux models pull x'")
        "model x is not installed. Run 'polymux models pull x'"
    """
    given = [one for one in parts if one]
    return ". ".join(given[:1] + [one[0].upper() + one[1:] for one in given[1:]])


def clock(seconds: float) -> str:
    """Format a duration: ``"0:07"``, ``"3:25"``, ``"1:02:03"``."""
    whole = max(0, int(seconds))
    hours, minutes = whole // 3600, whole // 60 % 60
    if hours:
        return f"{hours}:{minutes:02}:{whole % 60:02}"
    return f"{minutes}:{whole % 60:02}"


def size(count: float) -> str:
    """Format a number of bytes in decimal units: ``"512 B"``, ``"3.2 MB"``."""
    unit = "B"
    for larger in ("kB", "MB", "GB"):
        if count < 999.95:
            break
        count, unit = count / 1000, larger
    return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"


def path_in(url: str) -> str:
    """Return the path in a URL, even in an invalid one such as ``http://[x/a.png``."""
    from urllib.parse import urlsplit

    try:
        return urlsplit(url).path
    except ValueError:
        bare = url.partition("#")[0].partition("?")[0].partition("://")[2]
        return "".join(bare.partition("/")[1:])
