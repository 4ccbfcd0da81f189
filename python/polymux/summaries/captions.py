"""Captions as text: WebVTT and SubRip read, lines that roll up told once.

WebVTT: https://www.w3.org/TR/webvtt1/, read as leniently as players do.
"""

from __future__ import annotations

import codecs
import html
import io
import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from pathlib import Path
    from typing import Any

_TIMES = re.compile(
    r"(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})\s*-->\s*(?:(\d{1,4}):)?(\d{1,2}):(\d{2})[.,](\d{1,3})"
)
_HEARD = re.compile(r"\[[^\[\]]{0,200}\]|\([^()]{0,200}\)")
_FORMS = ("vtt", "srt")
#: What yt-dlp says of a form that it cannot tell: what the file holds is looked at then.
_UNTOLD = (None, "", "unknown_video")
#: Of captions whose page does not say it (ISO 639-2).
_NO_LANGUAGE = "und"
_TAGS = re.compile(r"<[^<>]{0,200}>")
_MAX_CUES = 200_000
_MAX_LINE_CHARACTERS = 2_000
#: Of a file, what is read.
MAX_BYTES = 16 << 20
#: Of the letters of a file, those that its encoding may leave unknown. In another encoding of eight
#: bits, which nothing names, Western words keep most of theirs, and others none.
_MAX_UNKNOWN_SHARE = 0.1
#: What a text is of that is written without blanks: Thai to Lao, Burmese, Khmer, Chinese, Japanese.
_NO_BLANKS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f"
    "\U00020000-\U0003ffff]"
)
#: Notes, styles and regions are blocks that are not shown (WebVTT, 4.1).
_NOT_SHOWN = ("NOTE", "STYLE", "REGION", "WEBVTT")


class SpokenText(NamedTuple):
    """Words on one line, and when they are said."""

    start_s: float
    text: str


def read_captions(data: bytes) -> list[SpokenText]:
    r"""What captions say, in order, each line once.

    Its time grows with the file's length and no faster, whatever a stranger has put there; of
    megabytes it is seconds, and so nothing for an event loop.

    Args:
        data: A file of WebVTT or SubRip, in UTF-8, or in UTF-16 with its mark.

    Example:
        >>> read_captions(
        ...     b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello <b>there</b>\n\n"
        ...     b"00:02.000 --> 00:03.000\nHello there\nyou &amp; me\n"
        ... )
        [SpokenText(start_s=1.0, text='Hello there'), SpokenText(start_s=2.0, text='you & me')]
    """
    return _rolled_up(_cues(_decoded(data)))


def says_anything(path: Path) -> bool:
    """Whether a file of captions shows any words; of long ones the beginning counts."""
    with path.open("rb") as file:
        cues = _cues(_decoded(file.read(MAX_BYTES)))
    return any(has_words(line) for _, lines in cues for line in lines)


def has_words(text: str) -> bool:
    """Whether a text says anything: what stands in brackets is heard, and not said.

    Example:
        >>> [has_words(one) for one in ("[Music]", "(door) ...", "[Anna] Come in")]
        [False, False, True]
    """
    return any(map(str.isalnum, _HEARD.sub("", text)))


def chosen_captions(info: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Language and address of a video's captions; its maker's before those of a machine.

    Of several languages its own is taken, else English, else the first.

    Example:
        >>> chosen_captions({"subtitles": {"de": [{"ext": "vtt", "url": "/de.vtt"}]}})
        ('de', {'ext': 'vtt', 'url': '/de.vtt'})
    """
    for kind in ("subtitles", "automatic_captions"):
        found = {
            str(language) or _NO_LANGUAGE: _readable(forms)
            for language, forms in (info.get(kind) or {}).items()
            if language != "live_chat"
        }
        known = {language: one for language, one in found.items() if one is not None}
        own = str(info.get("language") or "en")
        for wanted in (own, f"{own}-orig", "en"):
            for language, one in known.items():
                if language == wanted or language.startswith(f"{wanted}-"):
                    return language, one
        if known:
            return next(iter(known.items()))
    return None


def _readable(forms: Iterable[Mapping[str, Any]]) -> dict[str, Any] | None:
    """WebVTT or SubRip; else what may be it: yt-dlp tells a track's form by its address alone."""
    known = list(forms)
    for wanted in (_FORMS, _UNTOLD):
        for one in known:
            if one.get("ext") in wanted:
                return dict(one)
    return None


def _decoded(data: bytes) -> str:
    """UTF-8 as WebVTT has it, and UTF-16 where it says so, in which old SubRip files are.

    Empty where it is in an encoding that nothing names.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    unknown = text.count("\ufffd")
    if unknown and unknown > _MAX_UNKNOWN_SHARE * (unknown + sum(map(str.isalpha, text))):
        return ""
    return text


def _blocks(text: str) -> Iterator[list[str]]:
    """Lines between empty ones, whatever their line ends are; all but the first part of long ones.

    A line of times begins a block, too, with or without an empty line before it: the number that
    old files have above it is no words of the block before. One of blanks ends none in WebVTT.

    One by one: a pattern over the whole would hold the interpreter's lock until it is through.
    """
    block: list[str] = []
    timed = False
    for line in io.StringIO(text, newline=None):
        line = line[:_MAX_LINE_CHARACTERS].rstrip("\n")
        begins = "-->" in line and _TIMES.match(line.lstrip(" \t")) is not None
        if block and (not line or (begins and timed)):
            if begins and block[-1].strip().isdecimal():
                block.pop()
            yield block
            block, timed = [], False
        if line.strip(" \t") or timed:
            block.append(line)
            timed = timed or begins
    if block:
        yield block


def _cues(text: str) -> Iterator[tuple[float, list[str]]]:
    count = 0
    for lines in _blocks(text):
        at = next((number for number, line in enumerate(lines[:3]) if _TIMES.search(line)), None)
        if at is None or (at == 0 and lines[0].startswith(_NOT_SHOWN)):
            continue
        matched = _TIMES.search(lines[at])
        if matched is None:
            continue
        count += 1
        if count > _MAX_CUES:
            return
        hours, minutes, seconds, fraction = matched.groups()[:4]
        start_s = int(hours or 0) * 3600 + int(minutes) * 60 + int(seconds)
        shown = [_plain(line) for line in lines[at + 1 :]]
        yield start_s + float(f"0.{fraction}"), [line for line in shown if line]


def _plain(line: str) -> str:
    return " ".join(html.unescape(_TAGS.sub("", line)).split())


def _goes_on(last: str, line: str) -> bool:
    """Whether a line is another and whole words more."""
    if not last or not line.startswith(last) or len(line) == len(last):
        return False
    following = line[len(last)]
    return following == " " or bool(_NO_BLANKS.match(following) or _NO_BLANKS.match(last[-1]))


def _rolled_up(cues: Iterable[tuple[float, list[str]]]) -> list[SpokenText]:
    """Each line where it comes first: captions that roll up show a line again under the next.

    A line counts as shown before where it is one of the last cue's, or begins as its last one does
    and goes on: then only what is new is told.
    """
    said: list[SpokenText] = []
    before: set[str] = set()
    last = ""
    for start_s, lines in cues:
        new = []
        for line in lines:
            if line in before:
                continue
            new.append(line[len(last) :].strip() if _goes_on(last, line) else line)
        if new:
            said.append(SpokenText(start_s, " ".join(new)))
        if lines:
            before, last = set(lines), lines[-1]
    return said
