"""Requests, results, estimates and progress: the data types between APIs and backends."""

from __future__ import annotations

import base64
import secrets
from dataclasses import dataclass, field, replace
from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import contract
from polymux._util.text import shown
from polymux.service.errors import bad_request, engine_failed

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractAsyncContextManager
    from pathlib import Path

    from polymux.contract import CheckedRequest
    from polymux.service.temporary_files import TempFile

    #: Returns the context of the request that runs in place of the given one.
    Prepare = Callable[
        ["OperationRequest", "ProgressSink"], AbstractAsyncContextManager["OperationRequest"]
    ]


_SHOWN_DATA = 1024
#: Maximum size of a preview image.
LARGEST_PREVIEW_BYTES = 256 << 10
_PREVIEWS = ("image/jpeg", "image/png")


@dataclass(frozen=True, slots=True)
class Caller:
    """The client of a request.

    Attributes:
        id: Id of the API key; ``"local"`` without a server.
        name: Name of the API key, for people.
        max_estimate_s: Maximum estimated time; None for the limit of the service.
    """

    id: str
    name: str = ""
    max_estimate_s: float | None = None


#: The caller without a server.
LOCAL = Caller("local", "local")


@dataclass(frozen=True, slots=True)
class Upload:
    """An input file of a request; exists until the work of the request is done.

    Attributes:
        file_name: From the client; for people, never used in a path.
        content_type: As declared by the client; not verified.
    """

    path: Path
    file_name: str
    content_type: str
    size_bytes: int


class ModelChoice(NamedTuple):
    """The model that a request selects.

    Attributes:
        selector: A model of the contract; None if the request has none.
        name: Name of the installed model that must run the request; empty for any.
        values: Fields that select this model in its engine.
    """

    selector: str | None
    name: str = ""
    values: Mapping[str, Any] = MappingProxyType({})

    def applied(self, work: OperationRequest) -> OperationRequest:
        """Return the request for this model.

        Raises:
            BadRequestError: The request has another value in a field that selects the model.
        """
        for field_name, value in self.values.items():
            if field_name in work.given and work.values[field_name] != value:
                raise bad_request(
                    f"{field_name}={shown(work.values[field_name])}: must be {shown(value)} for "
                    f"model={self.name}. Omit this field",
                    field_name,
                )
        if not self.name:
            return work
        return replace(
            work,
            values={**work.values, **self.values},
            given=work.given | self.values.keys(),
            engine_model=self.name,
        )


@dataclass(frozen=True, slots=True)
class OperationRequest:
    """A request that was checked against the contract.

    Attributes:
        operation: Such as ``"transcribe"``.
        variant: Id of the variant; empty if the operation has only one.
        model: The model selector, or empty.
        engine_model: Name of the installed model that must run it; empty for any.
        values: Wire name to value including the contract's defaults; files are `Upload`.
        given: Names of the fields in the request.
        warnings: Ignored parts of the request.
        request_id: Identifies the request in logs.
        asked: The request in the format of a compatibility API, as JSON; None for the polymux API.
        prepare: Prepares a job before it takes a place, such as by downloading URL inputs; None
            for nothing. The request that it returns has no `prepare`.
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
    engine_model: str = ""

    @classmethod
    def of(
        cls, checked: CheckedRequest, caller: Caller = LOCAL, request_id: str | None = None
    ) -> OperationRequest:
        """Create a request from a checked one."""
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
        """Create a request for another backend as a step of this one."""
        return replace(self, operation=operation, values=values, given=frozenset())

    @property
    def streamed(self) -> bool:
        return self.operation in ("chat", "free_chat") and self.values.get("stream") is True

    def described_input(self) -> dict[str, Any]:
        """Return the values as JSON, with names for files and truncated ``data:`` URLs."""
        return {
            name: f"file:{value.file_name}" if isinstance(value, Upload) else without_data(value)
            for name, value in self.values.items()
        }


def without_data(value: Any) -> Any:
    """Truncate ``data:`` URLs in JSON to 1,024 characters, because records must not hold files.

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
    # If the contract has no default, the model's default applies.
    found = {
        one.name: one.raw.get("upstream_default") if one.default is None else one.default
        for one in shape.fields
    }
    return {name: value for name, value in found.items() if value is not None}


@dataclass(frozen=True, slots=True)
class Estimate:
    """The estimated time and memory of a request.

    Attributes:
        seconds: Time without waiting; None if unknown.
        memory_bytes: Memory in addition to what is in use; None if unknown.
        why: Basis of the estimate, for people.
        remedies: How to reduce it, for people; empty for the general advice.
        doubt: Factor by which `seconds` may be too high: 1 if such work was measured before.
    """

    seconds: float | None = None
    memory_bytes: int | None = None
    why: str = ""
    remedies: str = ""
    doubt: float = 1.0


@dataclass(frozen=True, slots=True)
class OutputFile:
    """A file created by a backend; `file_name` is the suggested name for saving."""

    draft: TempFile
    content_type: str
    file_name: str


def discard_outputs(output: Any) -> None:
    """Discard the unstored files of an output, after one of them could not be stored."""
    if isinstance(output, OutputFile):
        output.draft.discard()
    elif isinstance(output, (list, dict)):
        for one in output.values() if isinstance(output, dict) else output:
            discard_outputs(one)


@dataclass(slots=True)
class OperationResult:
    """The result of a request.

    Attributes:
        output: The operation's answer as JSON, with `OutputFile` for files.
        version: SHA-256 of the model's file, or a word.
        metrics: Numbers by name.
        engine_model: Name of the model that did the work; empty if unknown.
    """

    output: Any
    version: str = "hidden"
    metrics: dict[str, float] = field(default_factory=dict)
    engine_model: str = ""


class ProgressSink:
    """Receives progress, logs and files from a backend. Called on the service's event loop.

    Args:
        on_change: Called after each change.
        draft: Creates a draft of the given expected size.
    """

    _MAX_LINES = 500

    def __init__(self, on_change: Callable[[], object], draft: Callable[[int], TempFile]) -> None:
        self._on_change = on_change
        self._draft = draft
        self.lines: list[str] = []
        #: Those of the lines that say what was ignored, limited or not satisfied.
        self.warnings: list[str] = []
        self.progress: float | None = None
        #: SHA-256 of the model's file; None while unknown.
        self.version: str | None = None
        #: Name of the model that does the work; empty while unknown.
        self.engine_model = ""
        #: The answer so far if it arrives in pieces; else None.
        self.text_pieces: list[str] | None = None
        #: The latest preview as a ``data:`` URL; None before the first.
        self.preview_url: str | None = None

    def log(self, line: str) -> None:
        """Add a line to the job's log."""
        if len(self.lines) < self._MAX_LINES:
            self.lines.append(line)
            self._on_change()

    def warn(self, line: str) -> None:
        """Like `log`, for a part of the request that was ignored, limited or not satisfied.

        Responses have these lines in the header field ``Polymux-Warnings``.
        """
        if len(self.warnings) < self._MAX_LINES:
            self.warnings.append(line)
        self.log(line)

    def copy_lines(self, sink: ProgressSink, prefix: str = "") -> None:
        """Add the lines of this sink to another one."""
        for line in self.lines:
            add = sink.warn if line in self.warnings else sink.log
            add(prefix + line)

    def report(self, progress: float) -> None:
        """Set the progress from 0 to 1; ignores lower values than before."""
        progress = min(1.0, max(progress, self.progress or 0.0))
        if progress != self.progress:
            self.progress = progress
            self._on_change()

    def emit_text(self, text: str) -> None:
        self.text_pieces = [] if self.text_pieces is None else self.text_pieces
        self.text_pieces.append(text)
        self._on_change()

    def preview(self, data: bytes, content_type: str) -> None:
        """Set a small image of the unfinished result; replaces the previous one.

        Raises:
            ValueError: It is too large or has an unsupported type.
        """
        if content_type not in _PREVIEWS or len(data) > LARGEST_PREVIEW_BYTES:
            raise ValueError(content_type)
        text = base64.b64encode(data).decode("ascii")
        self.preview_url = f"data:{content_type};base64,{text}"
        self._on_change()

    def part(self, begin: float, end: float) -> ProgressSink:
        """Create a sink for a part of the work, from `begin` to `end` on this sink's scale."""
        return _Part(self, begin, end)

    def draft(self, expected_bytes: int = 0) -> TempFile:
        """Create a draft for an output file.

        Raises:
            InternalServerError: Not enough space (code ``storage_full``).
        """
        return self._draft(expected_bytes)


class _Part(ProgressSink):
    """Forwards to another sink and scales the progress."""

    def __init__(self, whole: ProgressSink, begin: float, end: float) -> None:
        super().__init__(_no_change, whole.draft)
        self._whole = whole
        self._begin, self._share = begin, end - begin

    def log(self, line: str) -> None:
        self._whole.log(line)

    def warn(self, line: str) -> None:
        self._whole.warn(line)

    def emit_text(self, text: str) -> None:
        self._whole.emit_text(text)

    def preview(self, data: bytes, content_type: str) -> None:
        self._whole.preview(data, content_type)

    def report(self, progress: float) -> None:
        self._whole.report(self._begin + self._share * min(1.0, max(0.0, progress)))


def buffered_sink(draft: Callable[[int], TempFile]) -> ProgressSink:
    """Create a sink for an operation without a job; its lines are read with the answer."""
    return ProgressSink(_no_change, draft)


def unseen_sink() -> ProgressSink:
    """Create a sink for a step that creates no file and whose lines are ignored."""
    return ProgressSink(_no_change, _no_draft)


def _no_draft(_: int) -> TempFile:
    raise engine_failed("this step of an engine must not create a file")


def _no_change() -> None:
    """Ignore changes: nothing watches this sink."""
