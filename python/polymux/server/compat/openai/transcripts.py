"""Transcripts in OpenAI's five response formats."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.media import subtitles
from polymux.media.languages import name_of
from polymux.server.http.responses import to_json
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from polymux.client.responses import Prediction, TranscriptChunk

FORMS = ("json", "text", "srt", "verbose_json", "vtt")
_PLAIN = b"text/plain; charset=utf-8"
_TYPES = {"text": _PLAIN, "srt": _PLAIN, "vtt": b"text/vtt; charset=utf-8"}
#: A segment made of words ends at the end of a sentence, at a pause, or at its maximum length.
_SENTENCE_ENDS = (".", "?", "!", "\u2026", "\u3002", "\uff1f", "\uff01")
_PAUSE_S = 1.0
_MAX_SEGMENT_S = 30.0


class Span(NamedTuple):
    """A text with its start and end in seconds."""

    start_s: float
    end_s: float
    text: str


class Transcript(NamedTuple):
    """A transcript and the options of its response.

    Attributes:
        job: The successful job.
        translated: Whether it is a translation into English.
        by_words: Whether its chunks are words.
        wanted: ``"segment"`` and ``"word"``: items with times in ``verbose_json``.
        language: From the request; None if missing.
    """

    job: Prediction
    translated: bool
    by_words: bool
    wanted: frozenset[str]
    language: str | None

    def answer(self, form: str) -> tuple[bytes, bytes]:
        """Return content type and body of the response.

        Raises:
            InternalServerError: Subtitles need times, which the transcript lacks.
            NoBackendError: Word times are requested, which the transcript lacks.
        """
        if form == "text":
            return _TYPES[form], f"{self.job.text.strip()}\n".encode("utf-8", "replace")
        if form in ("srt", "vtt"):
            if self.job.text and (not self.job.chunks or self._actual_timestamp() == "none"):
                raise status_error(
                    errors.InternalServerError,
                    f"response_format: the transcript has no timestamps, which {form} requires. "
                    "Use json or text",
                    code="upstream_failed",
                    status=502,
                    param="response_format",
                )
            make = subtitles.srt if form == "srt" else subtitles.vtt
            return _TYPES[form], make(self.job.chunks).encode("utf-8", "replace")
        value: dict[str, Any] = {"text": self.job.text.strip()}
        if form == "verbose_json":
            value = self._verbose()
        seconds = self._measured_s()
        if seconds is not None:
            value["usage"] = {"type": "duration", "seconds": round(seconds, 3)}
        return b"application/json", to_json(value)

    def _actual_timestamp(self) -> str | None:
        """Return the kind of chunks if it differs from the request; see `polymux.upstreams`."""
        output = self.job.output
        actual = output.get("timestamp") if isinstance(output, dict) else None
        return actual if isinstance(actual, str) else None

    def _measured_s(self) -> float | None:
        seconds = (self.job.metrics or {}).get("audio_seconds")
        return float(seconds) if isinstance(seconds, (int, float)) else None

    def _verbose(self) -> dict[str, Any]:
        if "word" in self.wanted and self._actual_timestamp() is not None:
            raise status_error(
                errors.NoBackendError,
                "timestamp_granularities: the transcript has no word timestamps. Use segment",
                param="timestamp_granularities",
            )
        measured_s = self._measured_s()
        spoken = [] if self._actual_timestamp() == "none" else spans(self.job.chunks, measured_s)
        ends = max((one.end_s for one in spoken), default=0.0)
        value: dict[str, Any] = {
            "task": "translate" if self.translated else "transcribe",
            "language": self._language(),
            "duration": round(ends if measured_s is None else measured_s, 3),
            "text": self.job.text.strip(),
        }
        if "word" in self.wanted:
            value["words"] = [
                {"word": one.text.strip(), "start": one.start_s, "end": one.end_s} for one in spoken
            ]
        if "segment" in self.wanted:
            stretches = of_words(spoken) if self.by_words else spoken
            value["segments"] = [_segment(number, one) for number, one in enumerate(stretches)]
        return value

    def _language(self) -> str:
        if self.translated:
            return "english"
        output = self.job.output
        heard = output.get("language") if isinstance(output, dict) else None
        return name_of(heard if isinstance(heard, str) else self.language or "unknown")


def _segment(number: int, span: Span) -> dict[str, Any]:
    """Convert a span to a segment; unknown values are null."""
    return {
        "id": number,
        "seek": None,
        "start": span.start_s,
        "end": span.end_s,
        "text": span.text,
        "tokens": [],
        "temperature": 0.0,
        "avg_logprob": None,
        "compression_ratio": None,
        "no_speech_prob": None,
    }


def spans(chunks: Sequence[TranscriptChunk], duration_s: float | None) -> list[Span]:
    """Fill in missing times of chunks.

    A missing start becomes the previous end. A missing end becomes the next start, or the end of
    the recording.
    """
    found: list[Span] = []
    for number, chunk in enumerate(chunks):
        before = found[-1].end_s if found else 0.0
        start = before if chunk.start_s is None else float(chunk.start_s)
        end = chunk.end_s
        if end is None:
            end = next((one.start_s for one in chunks[number + 1 :] if one.start_s is not None),
                       duration_s)  # fmt: skip
        found.append(Span(start, max(start, start if end is None else float(end)), chunk.text))
    return found


def of_words(words: Iterable[Span]) -> list[Span]:
    """Join words to segments, which end with a sentence, before a 1 s pause, or after 30 s."""
    found: list[Span] = []
    ended = True
    for word in words:
        last = None if ended else found[-1]
        if (
            last is None
            or word.start_s - last.end_s >= _PAUSE_S
            or word.end_s - last.start_s > _MAX_SEGMENT_S
        ):
            found.append(word)
        else:
            found[-1] = Span(last.start_s, max(last.end_s, word.end_s), last.text + word.text)
        ended = word.text.rstrip().endswith(_SENTENCE_ENDS)
    return found
