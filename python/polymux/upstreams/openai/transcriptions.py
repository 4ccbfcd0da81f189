"""Speech to text at upstreams in OpenAI's form."""

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

#: What transcripts may come in: with times, or without them, as some models have no others.
TIMED = "verbose_json"
FORMS = (TIMED, "json")
_UNTOLD_LANGUAGES = ("", "none", "auto")
#: Between two words of a text: what is longer has words of its own.
_MAX_GAP_CHARACTERS = 40
#: Of a recording: a year.
_MAX_RECORDING_S = 365 * 24 * 3600.0


def refuse_transcription(name: str, work: OperationRequest, *, form: str = TIMED) -> None:
    """Raises for what the interface has and OpenAI's does not.

    Args:
        form: Of `FORMS` the one that it answers in.

    Raises:
        NoBackendError: An address, or times of words that it does not tell.
    """
    refuse_addresses(work, "audio")
    if work.values.get("timestamp") != "word":
        return
    words = ""
    if form != TIMED:
        words = f"the upstream {name} tells no times: ask for timestamp=chunk"
    elif work.values.get("task") == "translate":
        words = (
            f"the upstream {name} tells no times of a translation's words: ask for "
            "timestamp=chunk, or for task=transcribe"
        )
    if words:
        raise status_error(errors.NoBackendError, words, param="timestamp")


def transcription_request(
    work: OperationRequest, model: str, sink: ProgressSink, *, form: str = TIMED
) -> tuple[str, MultipartBody]:
    """Where it is asked for, and the form; what is left out is said in the log.

    Args:
        form: Of `FORMS` the one that it answers in.
    """
    file: Upload = work.values["audio"]
    fields = [("model", model), ("response_format", form)]
    if "batch_size" in work.given:
        sink.log("batch_size: an upstream decides that itself")
    language = code_of(work.values.get("language") or "")
    translated = work.values.get("task") == "translate"
    if translated and language not in _UNTOLD_LANGUAGES:
        sink.log("language: an upstream finds out by itself what it translates from")
    elif language not in _UNTOLD_LANGUAGES:
        fields.append(("language", language))
    if not translated and form == TIMED:
        kind = "word" if work.values.get("timestamp") == "word" else "segment"
        fields.append(("timestamp_granularities[]", kind))
    # By its name: the sender's word for its type is nobody's business.
    body = multipart_body(fields, [("file", (file.file_name, file.path))], awaited=True)
    return f"/audio/{'translations' if translated else 'transcriptions'}", body


def transcript(name: str, value: Any, work: OperationRequest, sink: ProgressSink) -> dict[str, Any]:
    """The operation's output, of what an upstream has answered.

    Args:
        value: Its answer, ``verbose_json`` or ``json``.

    Returns:
        The text and its parts; ``timestamp`` where they are not what was asked for: ``"chunk"`` for
        stretches in the place of words, ``"none"`` for one part without times.

    Raises:
        InternalServerError: It is no transcript.
    """
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise failed(name, "its answer is no transcript")
    chunks, told = None, ""
    if work.values.get("timestamp") == "word":
        chunks = _words(name, value.get("words"), text.strip())
        if chunks is None:
            sink.log("timestamp: the upstream tells no times of words")
            told = "chunk"
    if chunks is None:
        chunks = _chunks(name, value.get("segments"), "text")
    if chunks is None:
        sink.log("timestamp: the upstream tells no times")
        chunks, told = [{"text": text, "timestamp": [0.0, None]}], "none"
    output: dict[str, Any] = {"text": text.strip(), "chunks": chunks}
    if told:
        output["timestamp"] = told
    if isinstance(value.get("language"), str):
        output["language"] = code_of(value["language"])
    return output


def _words(name: str, parts: Any, text: str) -> list[dict[str, Any]] | None:
    """Words with what stands between them; None where there is a text and none of its words."""
    if parts is None or (parts == [] and text):
        return None
    found = _chunks(name, parts, "word") or []
    for one, spelled in zip(found, spelled_in(text, [part["text"] for part in found]), strict=True):
        one["text"] = spelled
    return found


def spelled_in(text: str, words: Sequence[str]) -> list[str]:
    """Words with the spaces and marks of the text that they are of: joined they are that text.

    Marks belong to the word before them, spaces to the one behind. OpenAI's words have neither, and
    those of the interface do. A word that the text does not have where it should be stands behind a
    space, where the text has any.

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
    """Stretches or words; None where the answer has none."""
    if parts is None:
        return None
    found = []
    for part in parts if isinstance(parts, list) else [None]:
        if not isinstance(part, dict) or not isinstance(part.get(member), str):
            raise failed(name, "its answer is no transcript")
        times = [time_of(name, part.get(one)) for one in ("start", "end")]
        found.append({"text": part[member], "timestamp": times})
    return found


def time_of(name: str, value: Any) -> float | None:
    """Seconds from the beginning, as an upstream tells them of a stretch or a word.

    Args:
        value: What it tells; None where it does not.

    Raises:
        InternalServerError: That is no time of any recording.

    Example:
        >>> time_of("groq", -0.02), time_of("groq", None)
        (0.0, None)
    """
    if value is None:
        return None
    if not _is_number(value) or not value <= _MAX_RECORDING_S:
        raise failed(name, "its answer is no transcript")
    # By so little words are said to begin early.
    return max(0.0, float(value))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
