"""Speech to text at upstreams in OpenAI's form."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeGuard

from polymux import errors
from polymux._multipart import multipart_body
from polymux.engines.prepared import refuse_addresses
from polymux.languages import code_of
from polymux.service.failures import refusal
from polymux.upstreams.failing import failed

if TYPE_CHECKING:
    from polymux._core import MultipartBody
    from polymux.service.work import Sink, Upload, Work

_UNTOLD_LANGUAGES = ("", "none", "auto")
#: Of a recording: a year.
_LONGEST_S = 365 * 24 * 3600.0


def refuse_transcription(name: str, work: Work) -> None:
    """Raises for what the interface has and OpenAI's does not.

    Raises:
        NoBackendError: An address, or times of each word of a translation.
    """
    refuse_addresses(work, "audio")
    if work.values.get("task") == "translate" and work.values.get("timestamp") == "word":
        raise refusal(
            errors.NoBackendError,
            f"the upstream {name} tells no times of a translation's words: ask for "
            "timestamp=chunk, or for task=transcribe",
            param="timestamp",
        )


def transcription_request(work: Work, model: str, sink: Sink) -> tuple[str, MultipartBody]:
    """Where it is asked for, and the form; what is left out is said in the log."""
    file: Upload = work.values["audio"]
    fields = [("model", model), ("response_format", "verbose_json")]
    if "batch_size" in work.given:
        sink.log("batch_size: an upstream decides that itself")
    language = code_of(work.values.get("language") or "")
    translated = work.values.get("task") == "translate"
    if translated and language not in _UNTOLD_LANGUAGES:
        sink.log("language: an upstream finds out by itself what it translates from")
    elif language not in _UNTOLD_LANGUAGES:
        fields.append(("language", language))
    if not translated:
        kind = "word" if work.values.get("timestamp") == "word" else "segment"
        fields.append(("timestamp_granularities[]", kind))
    # By its name: the sender's word for its type is nobody's business.
    body = multipart_body(fields, [("file", (file.file_name, file.path))], awaited=True)
    return f"/audio/{'translations' if translated else 'transcriptions'}", body


def transcript(name: str, value: Any, work: Work, sink: Sink) -> dict[str, Any]:
    """The operation's output, of what an upstream has answered.

    Args:
        name: The upstream's.
        value: Its answer, ``verbose_json``.
        work: What was asked for.
        sink: Where it is said that there are no times.

    Raises:
        InternalServerError: It is no transcript.
    """
    text = value.get("text") if isinstance(value, dict) else None
    if not isinstance(text, str):
        raise failed(name, "its answer is no transcript")
    chunks = None
    if work.values.get("timestamp") == "word":
        chunks = _chunks(name, value.get("words"), "word")
        if chunks is None:
            sink.log("timestamp: the upstream tells no times of words")
    if chunks is None:
        chunks = _chunks(name, value.get("segments"), "text")
    if chunks is None:
        sink.log("timestamp: the upstream tells no times")
        chunks = [{"text": text, "timestamp": [0.0, None]}]
    output: dict[str, Any] = {"text": text.strip(), "chunks": chunks}
    if isinstance(value.get("language"), str):
        output["language"] = code_of(value["language"])
    return output


def seconds_of(value: dict[str, Any]) -> dict[str, float]:
    """How long the recording is, where the answer tells it."""
    duration = value.get("duration")
    if not _is_number(duration) or not 0 <= duration <= _LONGEST_S:
        return {}
    return {"audio_seconds": float(duration)}


def _chunks(name: str, parts: Any, member: str) -> list[dict[str, Any]] | None:
    """Stretches or words; None where the answer has none."""
    if parts is None or (parts == [] and member == "word"):
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
        name: The upstream's.
        value: What it tells; None where it does not.

    Raises:
        InternalServerError: That is no time of any recording.

    Example:
        >>> time_of("groq", -0.02), time_of("groq", None)
        (0.0, None)
    """
    if value is None:
        return None
    if not _is_number(value) or not value <= _LONGEST_S:
        raise failed(name, "its answer is no transcript")
    # By so little words are said to begin early.
    return max(0.0, float(value))


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, (int, float)) and not isinstance(value, bool)
