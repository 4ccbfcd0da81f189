"""Items, progress and results of a batch."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from polymux._util.html_repr import MAX_ROWS, HtmlReprMixin, escaped, facts, linked_path, table
from polymux._util.text import clock, short_repr
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["BatchItem", "BatchProgress", "BatchReport", "State"]

State = Literal["waiting", "working", "done", "failed"]


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One input of a batch with its state and outputs.

    Attributes:
        id: Number in the manifest, from 1.
        input: Path of the file as found, with undecodable bytes as surrogates; or, without a file,
            the fields as JSON.
        state: ``"waiting"``, ``"working"``, ``"done"`` or ``"failed"``.
        outputs: Paths of the outputs; empty unless the item is done.
        copied_from: Number of the item with the same content and fields whose result was copied;
            None if the item was processed itself.
        error_code: Stable name of the error; None unless the item failed.
        error_message: Error message; None unless the item failed.
        tries: Number of attempts.
        elapsed_s: Duration of the last attempt in seconds; None before its end.
        size_bytes: Size of the input; None without a file.
        identity: SHA-256 of operation, fields and content, as 64 hexadecimal digits; None before
            the first attempt.
    """

    id: int
    input: str
    state: State
    outputs: tuple[Path, ...]
    copied_from: int | None
    error_code: str | None
    error_message: str | None
    tries: int
    elapsed_s: float | None
    size_bytes: int | None
    identity: str | None

    def __repr__(self) -> str:
        names = ("outputs", "error_code", "error_message", "elapsed_s")
        return short_repr(self, *names, state=self.state, input=self.input)

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON-compatible values without the None ones.

        Example:
            >>> from polymux.batches.results import BatchItem
            >>> item = BatchItem(1, "a.wav", "waiting", (), None, None, None, 0, None, 44, None)
            >>> item.to_dict()["input"], "identity" in item.to_dict()
            ('a.wav', False)
        """
        plain = {name: getattr(self, name) for name in self.__slots__}
        plain["outputs"] = [os.fspath(path) for path in self.outputs]
        return {name: value for name, value in plain.items() if value is not None}

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        return _batch_item_html(self)


@dataclass(frozen=True, slots=True)
class BatchProgress(HtmlReprMixin):
    """The progress of a batch.

    Attributes:
        done: Number of done items, including those of earlier runs.
        failed: Number of failed items.
        total: Number of known items.
        is_counting: Whether inputs are still being listed and `total` may grow.
        done_bytes: Size of the inputs that are done or failed, in bytes.
        total_bytes: Size of all known inputs in bytes; 0 without files.
        ended_here: Number of items that were processed in this run, without failed and copied
            ones, which take almost no time.
        ended_here_bytes: Size of their inputs in bytes.
        elapsed_s: Seconds since the start of this run.
        paused_s: Seconds left of a pause that the server requested, else 0.
        is_stopping: Whether the batch was interrupted and only finishes running items.
    """

    done: int
    failed: int
    total: int
    is_counting: bool
    done_bytes: int
    total_bytes: int
    ended_here: int
    ended_here_bytes: int
    elapsed_s: float
    paused_s: float
    is_stopping: bool

    def __repr__(self) -> str:
        names = ("failed", "elapsed_s", "eta_s", "paused_s")
        return short_repr(self, *names, done=self.done, total=self.total)

    @property
    def items_per_s(self) -> float:
        """Items that are processed per second in this run, without failed and copied ones."""
        return self.ended_here / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """Estimated seconds until the end, by bytes if known, else by items.

        None while inputs are being listed, and before the first item was processed.

        Example:
            >>> from polymux.batches.results import BatchProgress
            >>> BatchProgress(3, 1, 10, False, 40, 100, 4, 40, 8.0, 0.0, False).eta_s
            12.0
        """
        if self.is_counting:
            return None
        if self.total_bytes > 0 and self.ended_here_bytes > 0:
            left = self.total_bytes - self.done_bytes
            return self.elapsed_s * left / self.ended_here_bytes
        if self.ended_here == 0:
            return None
        left = self.total - self.done - self.failed
        return self.elapsed_s * left / self.ended_here


@dataclass(frozen=True, slots=True)
class BatchReport:
    """The result of a batch.

    Attributes:
        manifest: Path of the manifest.
        total: Number of items in the manifest.
        done: Number of done items.
        failed: Number of failed items; retry them with ``retry_failed=True`` in `polymux.batch`.
        waiting: Number of items that were not started or not finished.
        kept: Number of items in `done` from earlier runs.
        copied: Number of items in this run whose result was copied from identical inputs.
        repeated: Number of duplicate inputs, including those of earlier runs.
        ignored: Number of files in directories that the operation does not support.
        unread: Error messages of unreadable directories and of invalid lines in files of texts, at
            most 100. They are not items yet: correct them and pass the inputs again with `resume`.
        remade: Number of items that were processed again, because their input had changed or an
            output was missing or changed.
        elapsed_s: Duration of this run in seconds.
    """

    manifest: Path
    total: int
    done: int
    failed: int
    waiting: int
    kept: int = 0
    copied: int = 0
    repeated: int = 0
    ignored: int = 0
    remade: int = 0
    elapsed_s: float = 0.0
    unread: tuple[str, ...] = ()

    def __repr__(self) -> str:
        names = ("failed", "waiting", "unread", "elapsed_s", "manifest")
        return short_repr(self, *names, done=self.done, total=self.total)

    @property
    def is_complete(self) -> bool:
        """Whether all items are done and all inputs were read."""
        return self.done == self.total and not self.unread

    def items(self, state: State | None = None) -> Iterator[BatchItem]:
        """Iterate over the items in the order in which they were found, read in pages.

        Args:
            state: Only items in this state. Default: all.
        """
        from polymux.batches.manifest import items_of

        return items_of(self.manifest, state)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Write a report of all items. The file appears only when it is complete.

        Args:
            path: Output path: ``.csv``, ``.jsonl`` or ``.parquet`` (requires ``polymux[batch]``).
            overwrite: Replace an existing file. Default: True.

        Returns:
            The path.

        Raises:
            InvalidRequestError: The suffix is not supported.
            MissingDependencyError: The package for Parquet is not installed.
            OutputError: The file cannot be written.
        """
        from polymux.batches.reports import write_report

        items = (item.to_dict() for item in self.items())
        return write_report(items, Path(path), overwrite=overwrite)

    def _repr_html_(self) -> str:
        """Return tables for notebooks: a summary and the failed items."""
        return _batch_report_html(self)


def _batch_item_html(item: BatchItem) -> str:
    """Return a table of an item; outputs are links if a notebook can open them."""
    rows = [("input", escaped(_input(item)))]
    rows += [("output", linked_path(path, path.name)) for path in item.outputs[:MAX_ROWS]]
    if item.error_code is not None:
        rows.append(("why", escaped(_why(item))))
    return table(rows) + facts(item, ("state", "tries", "elapsed_s", "size_bytes"))


def _input(item: BatchItem) -> str:
    return item.input if item.size_bytes is None else Path(item.input).name


def _why(item: BatchItem) -> str:
    """Return the error without the path at the start of its message."""
    message = (item.error_message or "").removeprefix(f"{item.input}: ")
    return f"{item.error_code}: {message}"


def _batch_report_html(report: BatchReport) -> str:
    """Return a summary of a batch, and its first failed items."""
    rows = [(name, escaped(getattr(report, name))) for name in ("total", "done")]
    others = ("failed", "waiting", "kept", "copied", "repeated", "ignored", "remade")
    rows += [(name, escaped(count)) for name in others if (count := getattr(report, name))]
    rows += [("unread", escaped(one)) for one in report.unread[:MAX_ROWS]]
    rows.append(("took", clock(report.elapsed_s)))
    rows.append(("manifest", linked_path(report.manifest, report.manifest.name)))
    failed = []
    if report.failed:
        try:
            first = islice(report.items("failed"), MAX_ROWS)
            failed = [(escaped(_input(item)), escaped(_why(item))) for item in first]
        except PolymuxError as error:
            failed = [("", escaped(error))]  # The manifest was deleted; show the counts anyway.
    return table(rows) + (table(failed, ("failed", "why")) if failed else "")
