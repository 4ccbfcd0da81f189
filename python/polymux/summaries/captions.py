"""Parse WebVTT and SubRip captions, and remove the repeated lines of roll-up captions.

WebVTT: https://www.w3.org/TR/webvtt1/, parsed as leniently as video players do.
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
#: yt-dlp reports these values if it cannot determine the format.
_UNKNOWN_FORMATS = (None, "", "unknown_video")
#: Language code for captions without one (ISO 639-2).
_NO_LANGUAGE = "und"
_TAGS = re.compile(r"<[^<>]{0,200}>")
_MAX_CUES = 200_000
_MAX_LINE_CHARACTERS = 2_000
#: Maximum number of bytes read from a captions file.
MAX_BYTES = 16 << 20
#: Maximum share of invalid characters in a file decoded as UTF-8. Western text in an 8-bit encoding
#: has few of them, text in other scripts almost only them.
_MAX_UNKNOWN_SHARE = 0.1
#: Scripts written without spaces: Thai to Lao, Burmese, Khmer, Chinese, Japanese.
_NO_BLANKS = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3000-\u30ff\u3400-\u9fff\uf900-\ufaff\uff01-\uff9f"
    "\U00020000-\U0003ffff]"
)
#: Notes, styles and regions are blocks that are not displayed (WebVTT, 4.1).
_NOT_SHOWN = ("NOTE", "STYLE", "REGION", "WEBVTT")


class SpokenText(NamedTuple):
    """A line of speech and its start time."""

    start_s: float
    text: str


def read_captions(data: bytes) -> list[SpokenText]:
    r"""Parse captions into lines in order, without repeated lines.

    Runs in linear time for any input, also untrusted input. Megabytes take seconds: do not call it
    on an event loop.

    Args:
        data: A WebVTT or SubRip file, in UTF-8, or in UTF-16 with a byte order mark.

    Example:
        >>> read_captions(
        ...     b"WEBVTT\n\n00:01.000 --> 00:02.000\nHello <b>there</b>\n\n"
        ...     b"00:02.000 --> 00:03.000\nHello there\nyou &amp; me\n"
        ... )
        [SpokenText(start_s=1.0, text='Hello there'), SpokenText(start_s=2.0, text='you & me')]
    """
    return _rolled_up(_cues(_decoded(data)))


def says_anything(path: Path) -> bool:
    """Check whether a captions file contains words; reads at most `MAX_BYTES`."""
    with path.open("rb") as file:
        cues = _cues(_decoded(file.read(MAX_BYTES)))
    return any(has_words(line) for _, lines in cues for line in lines)


def has_words(text: str) -> bool:
    """Check whether a text contains words; ignores sound descriptions in brackets.

    Example:
        >>> [has_words(one) for one in ("[Music]", "(door) ...", "[Anna] Come in")]
        [False, False, True]
    """
    return any(map(str.isalnum, _HEARD.sub("", text)))


def chosen_captions(info: Mapping[str, Any]) -> tuple[str, dict[str, Any]] | None:
    """Select the captions track of a video: language and yt-dlp track.

    Prefers captions made by the publisher to automatic ones. Within each, prefers the video's
    language, then English, then the first track.

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
    """Select a WebVTT or SubRip track, or one whose format yt-dlp cannot tell from its URL."""
    known = list(forms)
    for wanted in (_FORMS, _UNKNOWN_FORMATS):
        for one in known:
            if one.get("ext") in wanted:
                return dict(one)
    return None


def _decoded(data: bytes) -> str:
    """Decode UTF-8 (the encoding of WebVTT), or UTF-16 with a byte order mark (old SubRip files).

    Returns an empty string if the encoding is unknown.
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return data.decode("utf-16", "replace")
    text = data.decode("utf-8", "replace").removeprefix("\ufeff")
    unknown = text.count("\ufffd")
    if unknown and unknown > _MAX_UNKNOWN_SHARE * (unknown + sum(map(str.isalpha, text))):
        return ""
    return text


def _blocks(text: str) -> Iterator[list[str]]:
    """Split captions at empty lines, with any line endings; truncates long lines.

    A line of times also begins a block, with or without an empty line before it. The number above
    it in old files is not part of the previous block. A line of spaces does not end a block in
    WebVTT.

    Reads line by line because one regular expression would hold the GIL for the whole file.
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
    """Check whether `line` is `last` followed by whole words."""
    if not last or not line.startswith(last) or len(line) == len(last):
        return False
    following = line[len(last)]
    return following == " " or bool(_NO_BLANKS.match(following) or _NO_BLANKS.match(last[-1]))


def _rolled_up(cues: Iterable[tuple[float, list[str]]]) -> list[SpokenText]:
    """Remove repeated lines: roll-up captions show each line again above the next one.

    Skips a line that the previous cue contains. If a line extends the last line of the previous
    cue, keeps only the new words.
    """
    transcript: list[SpokenText] = []
    before: set[str] = set()
    last = ""
    for start_s, lines in cues:
        new = []
        for line in lines:
            if line in before:
                continue
            new.append(line[len(last) :].strip() if _goes_on(last, line) else line)
        if new:
            transcript.append(SpokenText(start_s, " ".join(new)))
        if lines:
            before, last = set(lines), lines[-1]
    return transcript
