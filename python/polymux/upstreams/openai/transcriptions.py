"""Speech to text on OpenAI-compatible upstreams."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from polymux import errors
from polymux.client.multipart import multipart_body
from polymux.engines.media.backend import refuse_addresses
from polymux.media.languages import code_of
from polymux.service.errors import status_error
from polymux.upstreams.error_mapping import failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux._native._core import MultipartBody
    from polymux.service.model import OperationRequest, ProgressSink, Upload

#: Response formats of transcripts: with times, or without, as some models support no other.
TIMED = "verbose_json"
FORMS = (TIMED, "json")
_UNSPECIFIED_LANGUAGES = ("", "none", "auto")
#: Maximum gap between two words in a text; a longer gap contains unlisted words.
_MAX_GAP_CHARACTERS = 40
#: Maximum duration of a recording: a year.
_MAX_RECORDING_S = 365 * 24 * 3600.0


def refuse_transcription(name: str, work: OperationRequest, *, form: str = TIMED) -> None:
    """Reject requests that OpenAI's API does not support.

    Args:
        form: The response format, one of `FORMS`.

    Raises:
        NoBackendError: A URL instead of a file, or unavailable word times.
    """
    refuse_addresses(work, "audio")
    if work.values.get("timestamp") != "word":
        return
    words = ""
    if form != TIMED:
        words = f"timestamp=word: the upstream {name} returns no timestamps. Use timestamp=chunk"
    elif work.values.get("task") == "translate":
        words = (
            f"timestamp=word: the upstream {name} returns no word timestamps in translations. "
            "Use timestamp=chunk or task=transcribe"
        )
    if words:
        raise status_error(errors.NoBackendError, words, param="timestamp")


def transcription_request(
    work: OperationRequest, model: str, sink: ProgressSink, *, form: str = TIMED
) -> tuple[str, MultipartBody]:
    """Return path and form of the request; logs fields that are ignored.

    Args:
        form: The response format, one of `FORMS`.
    """
    file: Upload = work.values["audio"]
    fields = [("model", model), ("response_format", form)]
    if "batch_size" in work.given:
        sink.warn("batch_size: ignored, the upstream chooses it")
    language = code_of(work.values.get("language") or "")
    translated = work.values.get("task") == "translate"
    if translated and language not in _UNSPECIFIED_LANGUAGES:
        sink.warn("language: ignored, the upstream detects the language of a translation")
    elif language not in _UNSPECIFIED_LANGUAGES:
        fields.append(("language", language))
    if not translated and form == TIMED:
        kind = "word" if work.values.get("timestamp") == "word" else "segment"
        fields.append(("timestamp_granularities[]", kind))
    # Send the name without the client's content type, which is not trusted.
    body = multipart_body(fields, [("file", (file.file_name, file.path))], awaited=True)
    return f"/audio/{'translations' if translated else 'transcriptions'}", body


def transcript(name: str, value: Any, work: OperationRequest, sink: ProgressSink) -> dict[str, Any]:
    """Convert an upstream's response to the operation's output.

    Args:
        value: The response, ``verbose_json`` or ``json``.

    Returns:
        Text and chunks; ``timestamp`` if the times differ from the request: ``"chunk"`` for
        segments instead of words, ``"none"`` for one chunk without times.

    Raises:
        InternalServerError: The response is not a transcript.
    """
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise failed(name, "its response is not a transcript")
    chunks, granularity = None, ""
    if work.values.get("timestamp") == "word":
        chunks = _words(name, value.get("words"), text.strip())
        if chunks is None:
            sink.warn("timestamp: the upstream returned no word timestamps")
            granularity = "chunk"
    if chunks is None:
        chunks = _chunks(name, value.get("segments"), "text")
    if chunks is None:
        sink.warn("timestamp: the upstream returned no timestamps")
        chunks, granularity = [{"text": text, "timestamp": [0.0, None]}], "none"
    output: dict[str, Any] = {"text": text.strip(), "chunks": chunks}
    if granularity:
        output["timestamp"] = granularity
    if isinstance(value.get("language"), str):
        output["language"] = code_of(value["language"])
    return output


def _words(name: str, parts: Any, text: str) -> list[dict[str, Any]] | None:
    """Return words with the text between them; None if the text has no word list."""
    if parts is None or (parts == [] and text):
        return None
    found = _chunks(name, parts, "word") or []
    for one, spelled in zip(found, spelled_in(text, [part["text"] for part in found]), strict=True):
        one["text"] = spelled
    return found


def spelled_in(text: str, words: Sequence[str]) -> list[str]:
    """Add the spaces and punctuation of a text to its words: joined they are that text.

    Punctuation belongs to the word before it, spaces to the word after them. OpenAI's words have
    neither, the API's words have both. A word that is not found in the text gets a leading space,
    if the text has spaces at all.

    Example:
        >>> spelled_in("Hi there. Bye!", ["Hi", "there", "Bye"])
        ['Hi', ' there.', ' Bye!']
    """
    space = "" if text and not any(one.isspace() for one in text) else " "
    found: list[str] = []
    place, lost = 0, False
    for word in (one.strip() for one in words):
        if not word:
            found.append("")
            continue
        start = text.find(word, place, place + len(word) + _MAX_GAP_CHARACTERS)
        gap = text[place:start] if start >= 0 else ""
        if start < 0 or (not lost and any(one.isalnum() for one in gap)):
            found.append(f"{space if found else ''}{word}")
            lost = True
            continue
        marks = "" if lost else gap.rstrip() if space else gap
        if found:
            found[-1] += marks
        found.append((space if lost and found else gap[len(marks) :] if found else gap) + word)
        place, lost = start + len(word), False
    if found and not lost and not any(one.isalnum() for one in text[place:]):
        found[-1] += text[place:]
    return found


def seconds_of(value: dict[str, Any]) -> dict[str, float]:
    duration = value.get("duration")
    if not _is_number(duration) or not 0 <= duration <= _MAX_RECORDING_S:
        return {}
    return {"audio_seconds": float(duration)}


def _chunks(name: str, parts: Any, member: str) -> list[dict[str, Any]] | None:
    """Return segments or words; None if the response lacks them."""
    if parts is None:
        return None
    found = []
    for part in parts if isinstance(parts, list) else [None]:
        if not isinstance(part, dict) or not isinstance(part.get(member), str):
            raise failed(name, "its response is not a transcript")
        times = [time_of(name, part.get(one)) for one in ("start", "end")]
        found.append({"text": part[member], "timestamp": times})
    return found


def time_of(name: str, value: Any) -> float | None:
    """Return a time in seconds from the beginning of a recording.

    Args:
        value: From the upstream; None if missing.

    Raises:
        InternalServerError: The value is not a valid time.

    Example:
        >>> time_of("groq", -0.02), time_of("groq", None)
        (0.0, None)
    """
    if value is None:
        return None
    if not _is_number(value) or not value <= _MAX_RECORDING_S:
        raise failed(name, "its response is not a transcript")
    # Upstreams report slightly negative times for early words.
    return max(0.0, float(value))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
