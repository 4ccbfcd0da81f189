"""Captions as text: WebVTT and SubRip read, lines that roll up told once.

WebVTT: https://www.w3.org/TR/webvtt1/, read as leniently as players do.
"""

from __future__ import annotations

import html
import io
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

_TIMES = re.compile(
    r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})\s*-->\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
)
_TAGS = re.compile(r"<[^<>]{0,200}>")
_MOST_CUES = 200_000
_LONGEST_LINE = 2_000
#: Notes, styles and regions are blocks that are not shown (WebVTT, 4.1).
_NOT_SHOWN = ("NOTE", "STYLE", "REGION", "WEBVTT")


class Said(NamedTuple):
    """Words, and when.

    Attributes:
        start_s: From the beginning.
        text: On one line.
    """

    start_s: float
    text: str


def read_captions(data: bytes) -> list[Said]:
    r"""What captions say, in order, each line once.

    Its time grows with the file's length and no faster, whatever a stranger has put there; of
    megabytes it is seconds, and so nothing for an event loop.

    Args:
        data: A file of WebVTT or SubRip, UTF-8.

    Example:
        >>> read_captions(
        ...     b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello <b>there</b>\n\n"
        ...     b"00:02.000 --> 00:03.000\nHello there\nyou &amp; me\n"
        ... )
        [Said(start_s=1.0, text='Hello there'), Said(start_s=2.0, text='you & me')]
    """
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    return _rolled_up(_cues(text))


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines between blank ones, whatever their line ends are; all but the first part of long ones.

    One by one: a pattern over the whole would hold the interpreter's lock until it is through.
    """
    block: list[str] = []
    for line in io.StringIO(text, newline=None):
        if line.strip(" \t\n"):
            block.append(line[:_LONGEST_LINE].rstrip("\n"))
        elif block:
            yield block
            block = []
    if block:
        yield block


def _cues(text: str) -> list[tuple[float, list[str]]]:
    found: list[tuple[float, list[str]]] = []
    for lines in _blocks(text):
        at = next((number for number, line in enumerate(lines[:3]) if _TIMES.search(line)), None)
        if at is None or (at == 0 and lines[0].startswith(_NOT_SHOWN)):
            continue
        matched = _TIMES.search(lines[at])
        if matched is None or len(found) >= _MOST_CUES:
            continue
        hours, minutes, seconds, fraction = matched.groups()[:4]
        start_s = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
        shown = [_plain(line) for line in lines[at + 1 :]]
        found.append((start_s + float(f"0.{fraction}"), [line for line in shown if line]))
    return found


def _plain(line: str) -> str:
    return " ".join(html.unescape(_TAGS.sub("", line)).split())


def _rolled_up(cues: list[tuple[float, list[str]]]) -> list[Said]:
    """Each line where it comes first: captions that roll up show a line again under the next.

    A line counts as shown before where it is one of the last cue's, or begins as its last one does
    and goes on: then only what is new is told.
    """
    said: list[Said] = []
    before: set[str] = set()
    last = ""
    for start_s, lines in cues:
        new = []
        for line in lines:
            if line in before:
                continue
            if last and line.startswith(f"{last} "):
                line = line[len(last) :].strip()
            new.append(line)
        if new:
            said.append(Said(start_s, " ".join(new)))
        if lines:
            before, last = set(lines), lines[-1]
    return said
