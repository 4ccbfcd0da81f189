"""Transcripts as subtitles: SubRip (.srt) and WebVTT (.vtt)."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

#: Assumed reading speed and time limits for a cue without an end time.
_READ_CHARACTERS_PER_S = 15
_MIN_CUE_MS = 1000
_MAX_CUE_MS = 7000


class TimedText(Protocol):
    """The fields of `polymux.TranscriptChunk` that subtitles need."""

    @property
    def text(self) -> str: ...
    @property
    def start_s(self) -> float | None: ...
    @property
    def end_s(self) -> float | None: ...


class Cue(NamedTuple):
    """A subtitle with its start and end in milliseconds."""

    start_ms: int
    end_ms: int
    text: str


def cues(chunks: Sequence[TimedText]) -> list[Cue]:
    """Return the cues of a transcript. The end of each cue is after its start.

    A missing start becomes the end of the previous cue. If the end is missing or not after the
    start, it is estimated from the reading time, but not after the start of the next cue. Chunks
    without text are skipped.

    Example:
        >>> from polymux import TranscriptChunk
        >>> from polymux.media.subtitles import cues
        >>> cues([TranscriptChunk({"text": " Hello there.", "timestamp": [1.5, None]})])
        [Cue(start_ms=1500, end_ms=2500, text='Hello there.')]
    """
    spoken = [(_line(one.text), _ms(one.start_s), _ms(one.end_s)) for one in chunks]
    spoken = [one for one in spoken if one[0]]
    found: list[Cue] = []
    for index, (text, start, end) in enumerate(spoken):
        begins = start if start is not None else (found[-1].end_ms if found else 0)
        following = spoken[index + 1][1] if index + 1 < len(spoken) else None
        if end is None or end <= begins:
            end = _guessed_end(begins, text)
            if following is not None and following > begins:
                end = min(end, following)
        found.append(Cue(begins, end, text))
    return found


def _line(text: str) -> str:
    """Remove empty lines, which would end a cue."""
    return "\n".join(filter(None, (" ".join(line.split()) for line in text.splitlines())))


def _ms(seconds: float | None) -> int | None:
    return None if seconds is None else max(0, round(seconds * 1000))


def _guessed_end(start_ms: int, text: str) -> int:
    reading_ms = len(text) * 1000 // _READ_CHARACTERS_PER_S
    return start_ms + min(max(reading_ms, _MIN_CUE_MS), _MAX_CUE_MS)


def srt(chunks: Sequence[TimedText]) -> str:
    """Return SubRip subtitles: numbered cues, times with a comma."""
    return "".join(
        f"{number}\n{_clock(cue.start_ms, ',')} --> {_clock(cue.end_ms, ',')}\n{cue.text}\n\n"
        for number, cue in enumerate(cues(chunks), 1)
    )


def vtt(chunks: Sequence[TimedText]) -> str:
    """WebVTT subtitles (https://www.w3.org/TR/webvtt1/): times with a period, escaped markup."""
    return "WEBVTT\n\n" + "".join(_vtt_cues(cues(chunks)))


def _vtt_cues(found: Iterable[Cue]) -> Iterator[str]:
    for cue in found:
        text = cue.text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
        yield f"{_clock(cue.start_ms, '.')} --> {_clock(cue.end_ms, '.')}\n{text}\n\n"


def _clock(milliseconds: int, separator: str) -> str:
    seconds, thousandths = divmod(milliseconds, 1000)
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:02}:{minutes:02}:{seconds:02}{separator}{thousandths:03}"
