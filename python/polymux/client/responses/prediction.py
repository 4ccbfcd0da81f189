"""Jobs and their outputs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polymux._util.html_repr import (
    MAX_EMBEDDED_BYTES,
    HtmlReprMixin,
    escaped,
    is_address,
    preformatted,
    table,
)
from polymux._util.imports import IMPORTING
from polymux._util.text import clock, printable, short_repr, shortened
from polymux.client.responses._base import (
    Response,
    Result,
    all_nested,
    is_kind,
    joined,
    keep,
    member,
    wrong,
)
from polymux.errors import PolymuxError, PredictionFailedError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.media.media_file import MediaFile


_MAX_FILES = 50

_FAILED = frozenset({"failed", "canceled", "aborted"})


class TranscriptChunk(HtmlReprMixin, Result):
    """A segment of speech, or a word.

    Attributes:
        text: Text of the segment.
        start_s: Start in seconds; None if missing.
        end_s: End in seconds; None if missing, for example if the last segment is cut off.
    """

    __slots__ = ("end_s", "start_s")
    _also_known = frozenset({"timestamp"})
    _shown = ("text", "start_s", "end_s")

    text: str = member("a string", absent="")
    start_s: float | None
    end_s: float | None

    def __init__(self, value: Any, *, path: str = "") -> None:
        super().__init__(value, path=path)
        at = joined(path, "timestamp")
        times = value.get("timestamp")
        if times is None:
            times = [None, None]
        if not isinstance(times, list) or len(times) != 2:
            raise wrong(at, "an array of a start and an end time", times)
        for index, time in enumerate(times):
            if time is not None and not is_kind(time, "a number"):
                raise wrong(joined(at, index), "a number", time)
        keep(self, "start_s", times[0])
        keep(self, "end_s", times[1])

    @property
    def timestamp(self) -> tuple[float | None, float | None]:
        """Start and end in seconds."""
        return self.start_s, self.end_s


class Prediction(Response):
    """A job and its output, in the format of Replicate's predictions.

    The type of `output` depends on the operation. `images`, `videos`, `text`, `chunks`, `audio` and
    `spectrogram` read it, and raise `polymux.DecodeError` if it has another type.

    Attributes:
        id: ID of the job; None if missing.
        status: ``"starting"``, ``"processing"``, ``"succeeded"``, ``"failed"``, ``"canceled"`` or
            ``"aborted"``.
        model: Model as ``owner/name``.
        engine_model: Name of the model that did the work: of an installed model, or of an
            upstream's model; None if unknown.
        version: Version of the model: 64 hexadecimal digits, or a name.
        input: Fields of the request, with files as URLs.
        output: Output of the job as received; None before it exists.
        source: Origin of the request: ``"web"`` or ``"api"``.
        error: Error message of a failed job, else None.
        logs: Log output of the model; may be empty.
        warnings: Lines of `logs` about parts of the request that were ignored, limited or not
            satisfied; None without any.
        metrics: ``predict_time`` and ``total_time`` in seconds, and counts.
        urls: URLs to ``get``, ``cancel`` and, if supported, ``stream`` the job.
        created_at: Time of creation (RFC 3339).
        started_at: Time at which processing started (RFC 3339); None before.
        completed_at: Time at which the job ended (RFC 3339); None before.
        webhook: URL to which the server reports events, if requested.
        webhook_events_filter: Events that the server reports.

    Example:
        >>> import polymux
        >>> body = b'{"status": "succeeded", "output": {"text": "Hi", "chunks": []}}'
        >>> polymux.Prediction.decode(body).text
        'Hi'
    """

    __slots__ = ()

    id: str | None = member("a string")
    status: str = member("a string", required=True)
    model: str | None = member("a string")
    engine_model: str | None = member("a string")
    version: str | None = member("a string")
    input: dict[str, Any] | None = member("an object")
    output: Any = member("anything")
    source: str | None = member("a string")
    error: Any = member("anything")
    logs: str = member("a string", absent="")
    warnings: list[Any] | None = member("an array")
    metrics: dict[str, Any] | None = member("an object")
    urls: dict[str, Any] | None = member("an object")
    created_at: str | None = member("a string")
    started_at: str | None = member("a string")
    completed_at: str | None = member("a string")
    webhook: str | None = member("a string")
    webhook_events_filter: list[Any] | None = member("an array")

    def __repr__(self) -> str:
        if not hasattr(self, "_value"):
            return super().__repr__()
        return short_repr(self, "error", "model", "id", **_answer(self), status=self.status)

    @property
    def succeeded(self) -> bool:
        """Whether the job succeeded."""
        return self.status == "succeeded"

    @property
    def failed(self) -> bool:
        """Whether the job failed, or was canceled or aborted."""
        return self.status in _FAILED

    @property
    def finished(self) -> bool:
        """Whether the job has ended."""
        return self.succeeded or self.failed

    def raise_for_status(self) -> Prediction:
        """Return this prediction, or raise if it failed.

        Raises:
            PredictionFailedError: The job failed, or was canceled or aborted. Its `prediction` is
                this object.
        """
        if not self.failed:
            return self
        reason = "" if self.error is None else f": {shortened(printable(str(self.error)))}"
        which = " ".join(("job", *filter(None, (self.model, self.id)), self.status))
        error = PredictionFailedError(f"{which}{reason}")
        error.prediction = self
        raise error

    @property
    def images(self) -> tuple[MediaFile, ...]:
        """The images. Each one is downloaded when it is read, saved or displayed.

        Raises:
            DecodeError: The output is not a URL or an array of URLs.
        """
        return self._files()

    @property
    def videos(self) -> tuple[MediaFile, ...]:
        """The videos. Each one is downloaded when it is read, saved or displayed.

        Raises:
            DecodeError: The output is not a URL or an array of URLs.
        """
        return self._files()

    @property
    def text(self) -> str:
        """The full text of a transcript; empty if there is no output.

        Raises:
            DecodeError: The output is not a transcript.
        """
        output = self._value.get("output")
        if output is None:
            return ""
        if isinstance(output, str):
            return output
        if isinstance(output, list):
            return "".join(chunk.text for chunk in self.chunks).strip()
        if not isinstance(output, dict):
            raise wrong("output", "a transcript", output)
        text = output.get("text")
        if not isinstance(text, (str, type(None))):
            raise wrong("output.text", "a string", text)
        return text or ""

    @property
    def chunks(self) -> tuple[TranscriptChunk, ...]:
        """The segments or words of a transcript; empty if there are none.

        Raises:
            DecodeError: The output is not a transcript.
        """
        output = self._value.get("output")
        path = "output"
        if isinstance(output, dict):
            output, path = output.get("chunks"), "output.chunks"
        if output is None or isinstance(output, str):
            return ()
        if not isinstance(output, list):
            raise wrong(path, "an array of chunks", output)
        return all_nested(TranscriptChunk, output, path)

    @property
    def audio(self) -> MediaFile | None:
        """The audio; None if there is none.

        Raises:
            DecodeError: The output has another type.
        """
        output = self._value.get("output")
        return self._file(output) if isinstance(output, str) else self._file_of("audio")

    @property
    def spectrogram(self) -> MediaFile | None:
        """The spectrogram of the audio as an image; None if there is none.

        Raises:
            DecodeError: The output has another type.
        """
        output = self._value.get("output")
        return None if isinstance(output, str) else self._file_of("spectrogram")

    def _repr_html_(self) -> str:
        """Return the job's status and a preview of its output for notebooks."""
        facts = [f"<b>{escaped(self.model or 'prediction')}</b>", escaped(self.status)]
        took_s = (self.metrics or {}).get("predict_time")
        if isinstance(took_s, (int, float)):
            facts.append(f"{took_s:.1f} s")
        if self.id is not None:
            facts.append(escaped(self.id))
        parts = [f"<div>{' · '.join(facts)}</div>"]
        done = self.extra.get("progress")
        if not self.finished and isinstance(done, (int, float)):
            parts.append(f'<progress value="{float(done):.4f}" max="1"></progress>')
        if self.error is not None:
            parts.append(f"<div>{escaped(self.error)}</div>")
        parts.append(_output_html(self))
        if self.logs.strip():
            parts.append(f"<details><summary>logs</summary>{preformatted(self.logs)}</details>")
        return f"<div>{''.join(parts)}</div>"

    def _files(self) -> tuple[MediaFile, ...]:
        output = self._value.get("output")
        if output is None:
            return ()
        if isinstance(output, str):
            return (self._file(output),)
        if not isinstance(output, list):
            raise wrong("output", "a URL or an array of URLs", output)
        for index, address in enumerate(output):
            if not isinstance(address, str):
                raise wrong(joined("output", index), "a URL", address)
        return tuple(self._file(address) for address in output)

    def _file_of(self, name: str) -> MediaFile | None:
        output = self._value.get("output")
        if output is None:
            return None
        if not isinstance(output, dict):
            raise wrong("output", "an object with the member audio", output)
        address = output.get(name)
        if not isinstance(address, (str, type(None))):
            raise wrong(joined("output", name), "a URL", address)
        return None if address is None else self._file(address)


def _answer(job: Prediction) -> dict[str, Any]:
    """Return the most useful form of a job's output, without signed URLs."""
    if job.output is None:
        return {}
    with suppress(PolymuxError):
        files = tuple(file for _, file in files_of(job))
        return {"files": files} if files else {"text": job.text}
    return {"output": job.output}


def _output_html(job: Prediction) -> str:
    """Return a preview of the output according to its type, as jobs do not name their operation."""
    output = job.output
    try:
        if isinstance(output, str):
            return _files_html(job.images) if _is_file(output) else preformatted(output)
        if isinstance(output, list) and all(isinstance(one, str) for one in output):
            if all(_is_file(one) for one in output):
                return _files_html(job.images)
            return preformatted("".join(output))
        if isinstance(output, dict) and ("audio" in output or "spectrogram" in output):
            return _files_html([one for one in (job.audio, job.spectrogram) if one is not None])
        if isinstance(output, (dict, list)):
            return _transcript_html(job.text, job.chunks)
    except PolymuxError as error:
        return f"<div>{escaped(error)}</div>"
    return ""


def _is_file(text: str) -> bool:
    return is_address(text) or text.startswith("file:///")


def _files_html(files: Sequence[MediaFile]) -> str:
    """Return previews of files until the page is large enough."""
    shown, spent = [], 0
    for number, file in enumerate(files):
        if spent > MAX_EMBEDDED_BYTES or number >= _MAX_FILES:
            shown.append(f"<div>and {len(files) - number} more</div>")
            break
        shown.append(file._repr_html_())
        spent += len(shown[-1])
    return "".join(shown)


def _transcript_html(text: str, chunks: Sequence[TranscriptChunk]) -> str:
    rows = [(_moment(one.start_s), _moment(one.end_s), escaped(one.text)) for one in chunks]
    times = "" if not rows else (
        f"<details><summary>times</summary>{table(rows, ('from', 'to', 'text'))}</details>"
    )  # fmt: skip
    return preformatted(text, 100_000) + times


def _moment(time_s: float | None) -> str:
    return "" if time_s is None else f"{clock(time_s)}.{int(time_s * 10 % 10)}"


def files_of(result: Any) -> list[tuple[str, MediaFile]]:
    """Return the files of a result with labels. A label is empty unless it is needed."""
    with IMPORTING:
        from polymux.media.media_file import MediaFile

    if isinstance(result, MediaFile):
        return [("", result)]
    if not isinstance(result, Prediction):
        return []
    output = result.output
    if isinstance(output, dict) and "audio" in output:
        found = (("", result.audio), ("spectrogram", result.spectrogram))
        return [(label, file) for label, file in found if file is not None]
    addresses = [output] if isinstance(output, str) else output
    if isinstance(addresses, list) and addresses and all(map(_is_address, addresses)):
        return [("", file) for file in result.images]
    return []


def _is_address(value: object) -> bool:
    # Local engines return file: URLs. The download rejects such URLs from a server.
    return isinstance(value, str) and value.startswith(("https://", "http://", "data:", "file:"))
