"""What is to be done, for whom, and what comes of it: the words between doors and backends."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field, replace
from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.service.errors import engine_failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from polymux.contract import CheckedRequest
    from polymux.service.temporary_files import TempFile

    #: Gives the work that is done in the place of another, ready for its backend.
    Prepare = Callable[
        ["OperationRequest", "ProgressSink"], AbstractAsyncContextManager["OperationRequest"]
    ]


_SHOWN_DATA = 1024
#: Of a preview: a small picture.
LARGEST_PREVIEW_BYTES = 256 << 10
_PREVIEWS = ("image/jpeg", "image/png")


@dataclass(frozen=True, slots=True)
class Caller:
    """Whoever asks.

    Attributes:
        id: Of the key; ``"local"`` without a server.
        name: Of the key, for people.
        max_estimate_s: Work that is thought to take longer is refused; None for no limit but
            that of the service.
    """

    id: str
    name: str = ""
    max_estimate_s: float | None = None


#: Who asks without a server.
LOCAL = Caller("local", "local")


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that came with a request; it is there until the request's work is over.

    Attributes:
        path: Where it lies.
        file_name: What the sender calls it; for people, never part of a path.
        content_type: What the sender says it is; judged by nobody.
        size_bytes: Its size.
    """

    path: Path
    file_name: str
    content_type: str
    size_bytes: int


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """A request that keeps the contract.

    Attributes:
        operation: Such as ``"transcribe"``.
        variant: Id of the variant; empty where there is one only.
        model: The model selector; empty where there is none.
        values: Wire name to value with the contract's defaults filled in; files are `Upload`.
        given: The names that the caller gave.
        caller: Who asks.
        warnings: What was left out of the request.
        request_id: Names the request in logs.
        asked: What a door keeps of the request in its own words, as JSON; None for nothing.
        prepare: What comes before a job has a place at work, such as files that are brought from
            addresses; None for nothing. What it gives has none.
    """

    operation: str
    variant: str
    model: str
    values: Mapping[str, Any]
    given: frozenset[str]
    caller: Caller = LOCAL
    warnings: tuple[str, ...] = ()
    request_id: str = field(default_factory=lambda: secrets.token_hex(12))
    asked: Mapping[str, Any] | None = None
    prepare: Prepare | None = None

    @classmethod
    def of(
        cls, checked: CheckedRequest, caller: Caller = LOCAL, request_id: str | None = None
    ) -> OperationRequest:
        """Of a request that was received and checked."""
        values = _defaults(checked.operation, checked.variant) | checked.values
        return cls(
            checked.operation,
            checked.variant,
            checked.model,
            values,
            frozenset(checked.values),
            caller,
            checked.warnings,
            request_id or secrets.token_hex(12),
        )

    def step(self, operation: str, values: Mapping[str, Any]) -> OperationRequest:
        """Work that another backend does on the way to this."""
        return replace(self, operation=operation, values=values, given=frozenset())

    @property
    def streamed(self) -> bool:
        return self.operation in ("chat", "free_chat") and self.values.get("stream") is True

    def described_input(self) -> dict[str, Any]:
        """The values as JSON: files by their names, long ``data:`` URLs cut off."""
        return {
            name: f"file:{value.file_name}" if isinstance(value, Upload) else without_data(value)
            for name, value in self.values.items()
        }


def without_data(value: Any) -> Any:
    """JSON whose ``data:`` URLs are cut off behind 1,024 characters: records hold no files.

    Example:
        >>> len(without_data({"image": "data:image/png;base64," + "A" * 5000})["image"])
        1027
    """
    if isinstance(value, dict):
        return {name: without_data(one) for name, one in value.items()}
    if isinstance(value, list):
        return [without_data(one) for one in value]
    if isinstance(value, str) and len(value) > _SHOWN_DATA and value[:5].lower() == "data:":
        return f"{value[:_SHOWN_DATA]}..."
    return value


@cache
def _defaults(operation: str, variant: str) -> dict[str, Any]:
    described = contract.operation(operation)
    shape = next(one for one in described.variants if one.id == variant)
    # What the interface leaves open is the model's own.
    found = {
        one.name: one.raw.get("upstream_default") if one.default is None else one.default
        for one in shape.fields
    }
    return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Estimate:
    """What work will take, about.

    Attributes:
        seconds: Of work, without waiting; None where nobody knows.
        memory_bytes: More than is in use without it; None where nobody knows.
        why: What the numbers come from, for people.
        remedies: What would take less, for people; empty for the usual.
        doubt: How many times too long `seconds` may be: 1 where such work was timed before.
    """

    seconds: float | None = None
    memory_bytes: int | None = None
    why: str = ""
    remedies: str = ""
    doubt: float = 1.0


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file that a backend has made.

    Attributes:
        draft: What was written.
        content_type: What it is.
        file_name: What to save it as.
    """

    draft: TempFile
    content_type: str
    file_name: str


def discard_outputs(output: Any) -> None:
    """Gives up the files of an output that have no name yet: another of them could not be kept."""
    if isinstance(output, OutputFile):
        output.draft.discard()
    elif isinstance(output, (list, dict)):
        for one in output.values() if isinstance(output, dict) else output:
            discard_outputs(one)


@dataclass(slots=True)
class OperationResult:
    """What came of work.

    Attributes:
        output: As the operation's answer has it, JSON with `OutputFile` in the place of files.
        version: SHA-256 of the model's file, or a word.
        metrics: Numbers by name.
    """

    output: Any
    version: str = "hidden"
    metrics: dict[str, float] = field(default_factory=dict)


class ProgressSink:
    """Where a backend tells how its work goes. Called on the service's event loop.

    Args:
        on_change: Called without arguments whenever something new is there.
        draft: Makes room for a file of so many bytes.
    """

    _MAX_LINES = 500

    def __init__(self, on_change: Callable[[], object], draft: Callable[[int], TempFile]) -> None:
        self._on_change = on_change
        self._draft = draft
        self.lines: list[str] = []
        self.progress: float | None = None
        #: Of the model that does it, SHA-256 of its file; None while nobody knows.
        self.version: str | None = None
        #: The answer so far, where it comes in pieces; else None.
        self.text_pieces: list[str] | None = None
        #: The last preview, as a ``data:`` URL; None before the first.
        self.preview_url: str | None = None

    def log(self, line: str) -> None:
        """A line for the job's log: what was clamped, left out, or put in another's place."""
        if len(self.lines) < self._MAX_LINES:
            self.lines.append(line)
            self._on_change()

    def report(self, progress: float) -> None:
        """How much is done, from 0 to 1; it never goes back."""
        progress = min(1.0, max(progress, self.progress or 0.0))
        if progress != self.progress:
            self.progress = progress
            self._on_change()

    def emit_text(self, text: str) -> None:
        self.text_pieces = [] if self.text_pieces is None else self.text_pieces
        self.text_pieces.append(text)
        self._on_change()

    def preview(self, data: bytes, content_type: str) -> None:
        """A small picture of what is being made, in the place of the one before.

        Raises:
            ValueError: It is none, or a large one.
        """
        if content_type not in _PREVIEWS or len(data) > LARGEST_PREVIEW_BYTES:
            raise ValueError(content_type)
        text = base64.b64encode(data).decode("ascii")
        self.preview_url = f"data:{content_type};base64,{text}"
        self._on_change()

    def part(self, begin: float, end: float) -> ProgressSink:
        """A sink for a part of the work, whose whole is so much of the whole."""
        return _Part(self, begin, end)

    def draft(self, expected_bytes: int = 0) -> TempFile:
        """A place for a file that is made.

        Raises:
            InternalServerError: There is no room (code ``storage_full``).
        """
        return self._draft(expected_bytes)


class _Part(ProgressSink):
    """Tells another sink, on its scale."""

    def __init__(self, whole: ProgressSink, begin: float, end: float) -> None:
        super().__init__(_no_change, whole.draft)
        self._whole = whole
        self._begin, self._share = begin, end - begin

    def log(self, line: str) -> None:
        self._whole.log(line)

    def emit_text(self, text: str) -> None:
        self._whole.emit_text(text)

    def preview(self, data: bytes, content_type: str) -> None:
        self._whole.preview(data, content_type)

    def report(self, progress: float) -> None:
        self._whole.report(self._begin + self._share * min(1.0, max(0.0, progress)))


def buffered_sink(draft: Callable[[int], TempFile]) -> ProgressSink:
    """A sink of work that is no job: its lines are read with its answer."""
    return ProgressSink(_no_change, draft)


def unseen_sink() -> ProgressSink:
    """A sink of a step that makes no file, whose lines nobody reads."""
    return ProgressSink(_no_change, _no_draft)


def _no_draft(_: int) -> TempFile:
    raise engine_failed("this step makes no file")


def _no_change() -> None:
    """Nobody looks before the end; or what is told goes to the whole's."""
