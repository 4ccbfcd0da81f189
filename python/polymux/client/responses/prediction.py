"""Jobs of models: what became of them, and what they made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux._util.html_repr import (
    MAX_EMBEDDED_BYTES,
    HtmlReprMixin,
    escaped,
    is_address,
    preformatted,
    table,
)
from polymux._util.text import clock, printable, shortened
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
    """A stretch of speech, or a word.

    Attributes:
        text: What was said.
        start_s: Its start in seconds; None when not given.
        end_s: Its end in seconds; None when not given, as for a last chunk that was cut off.
    """

    __slots__ = ("end_s", "start_s")
    _also_known = frozenset({"timestamp"})
    _shown = ("start_s", "end_s", "text")

    text: str = member("a text", absent="")
    start_s: float | None
    end_s: float | None

    def __init__(self, value: Any, *, path: str = "") -> None:
        super().__init__(value, path=path)
        at = joined(path, "timestamp")
        times = value.get("timestamp")
        if times is None:
            times = [None, None]
        if not isinstance(times, list) or len(times) != 2:
            raise wrong(at, "an array of start and end", times)
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
    """A job of a model, and what came of it: the shape of Replicate's prediction.

    The form of `output` depends on the operation; `images`, `videos`, `text`, `chunks`, `audio` and
    `spectrogram` read it, and raise `polymux.DecodeError` where it has another form.

    Attributes:
        id: Identifier of the job; None when not given.
        status: ``"starting"``, ``"processing"``, ``"succeeded"``, ``"failed"``, ``"canceled"`` or
            ``"aborted"``.
        model: The model, owner/name.
        version: Version of the model: 64 hexadecimal digits, or a word.
        input: What was asked for, files as addresses.
        output: What was made, as it came; None while there is nothing.
        source: ``"web"`` or ``"api"``.
        error: Why it failed; None otherwise.
        logs: What the model said while it worked; empty when it said nothing.
        metrics: ``predict_time`` and ``total_time`` in seconds, and counts.
        urls: ``get``, ``cancel`` and, where supported, ``stream``.
        created_at: RFC 3339.
        started_at: RFC 3339; None before.
        completed_at: RFC 3339; None before.
        webhook: Where the server reports to, when it was asked to.
        webhook_events_filter: What it reports.

    Example:
        >>> import polymux
        >>> body = b'{"status": "succeeded", "output": {"text": "Hi", "chunks": []}}'
        >>> polymux.Prediction.decode(body).text
        'Hi'
    """

    __slots__ = ()
    _shown = ("id", "status", "model", "error")

    id: str | None = member("a text")
    status: str = member("a text", required=True)
    model: str | None = member("a text")
    version: str | None = member("a text")
    input: dict[str, Any] | None = member("an object")
    output: Any = member("anything")
    source: str | None = member("a text")
    error: Any = member("anything")
    logs: str = member("a text", absent="")
    metrics: dict[str, Any] | None = member("an object")
    urls: dict[str, Any] | None = member("an object")
    created_at: str | None = member("a text")
    started_at: str | None = member("a text")
    completed_at: str | None = member("a text")
    webhook: str | None = member("a text")
    webhook_events_filter: list[Any] | None = member("an array")

    @property
    def succeeded(self) -> bool:
        """Whether it came to a good end."""
        return self.status == "succeeded"

    @property
    def failed(self) -> bool:
        """Whether it came to a bad end: failed, canceled or aborted."""
        return self.status in _FAILED

    @property
    def finished(self) -> bool:
        """Whether it came to an end."""
        return self.succeeded or self.failed

    def raise_for_status(self) -> Prediction:
        """This prediction, unless it failed.

        Raises:
            PredictionFailedError: It failed, was canceled or aborted; `prediction` is this one.
        """
        if not self.failed:
            return self
        reason = "" if self.error is None else f": {shortened(printable(str(self.error)))}"
        which = " ".join(("the prediction", *filter(None, (self.model, self.id)), self.status))
        error = PredictionFailedError(f"{which}{reason}")
        error.prediction = self
        raise error

    @property
    def images(self) -> tuple[MediaFile, ...]:
        """The pictures; each is fetched when it is read, saved or shown.

        Raises:
            DecodeError: The output is no address or array of addresses.
        """
        return self._files()

    @property
    def videos(self) -> tuple[MediaFile, ...]:
        """The videos; each is fetched when it is read, saved or shown.

        Raises:
            DecodeError: The output is no address or array of addresses.
        """
        return self._files()

    @property
    def text(self) -> str:
        """All that was said; empty while there is nothing.

        Raises:
            DecodeError: The output is no transcript, or its text is something else.
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
            raise wrong("output.text", "a text", text)
        return text or ""

    @property
    def chunks(self) -> tuple[TranscriptChunk, ...]:
        """Stretch by stretch, or word by word; empty where the model gave none.

        Raises:
            DecodeError: The output is no transcript.
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
        """The sound; None while there is none.

        Raises:
            DecodeError: The output is something else.
        """
        output = self._value.get("output")
        return self._file(output) if isinstance(output, str) else self._file_of("audio")

    @property
    def spectrogram(self) -> MediaFile | None:
        """The sound's spectrogram, a picture; None where there is none.

        Raises:
            DecodeError: The output is something else.
        """
        output = self._value.get("output")
        return None if isinstance(output, str) else self._file_of("spectrogram")

    def _repr_html_(self) -> str:
        """How it went, and pictures, players or text of what it made, for notebooks."""
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
            raise wrong("output", "an address or an array of addresses", output)
        for index, address in enumerate(output):
            if not isinstance(address, str):
                raise wrong(joined("output", index), "an address", address)
        return tuple(self._file(address) for address in output)

    def _file_of(self, name: str) -> MediaFile | None:
        output = self._value.get("output")
        if output is None:
            return None
        if not isinstance(output, dict):
            raise wrong("output", "an object with the member audio", output)
        address = output.get(name)
        if not isinstance(address, (str, type(None))):
            raise wrong(joined("output", name), "an address", address)
        return None if address is None else self._file(address)


def _output_html(job: Prediction) -> str:
    """What a job made, by its form: operations share none."""
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
    """Files as each shows itself, until the page has bytes enough."""
    shown, spent = [], 0
    for number, file in enumerate(files):
        if spent > MAX_EMBEDDED_BYTES or number >= _MAX_FILES:
            shown.append(f"<div>and {len(files) - number} more</div>")
            break
        shown.append(file._repr_html_())
        spent += len(shown[-1])
    return "".join(shown)


def _transcript_html(text: str, chunks: Sequence[TranscriptChunk]) -> str:
    """What was said, and when."""
    rows = [(_moment(one.start_s), _moment(one.end_s), escaped(one.text)) for one in chunks]
    times = "" if not rows else (
        f"<details><summary>times</summary>{table(rows, ('from', 'to', 'text'))}</details>"
    )  # fmt: skip
    return preformatted(text, 100_000) + times


def _moment(time_s: float | None) -> str:
    return "" if time_s is None else f"{clock(time_s)}.{int(time_s * 10 % 10)}"


def files_of(result: Any) -> list[tuple[str, MediaFile]]:
    """The files of a result, each with what tells it from the others where that needs a word."""
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
    # file: is of this computer's own engines; of a server it is refused where it is fetched.
    return isinstance(value, str) and value.startswith(("https://", "http://", "data:", "file:"))
