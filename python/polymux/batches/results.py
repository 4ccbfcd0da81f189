"""What a batch tells: of its items, of how far it is, and of its end."""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from polymux._util.html_repr import MAX_ROWS, HtmlReprMixin, escaped, facts, linked_path, table
from polymux._util.text import clock
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["BatchItem", "BatchProgress", "BatchReport", "State"]

State = Literal["waiting", "working", "done", "failed"]


@dataclass(frozen=True, slots=True)
class BatchItem:
    """One input of a batch, and what became of it.

    Attributes:
        id: Its number in the manifest, from 1.
        input: The path of the file as it was found, undecodable bytes as surrogates; of an item
            without a file, its fields as JSON.
        state: ``"waiting"``, ``"working"``, ``"done"`` or ``"failed"``.
        outputs: Where the results lie; empty unless it is done.
        copied_from: Number of the item with the same content and fields whose result was copied;
            None where the work was done for this one.
        error_code: Stable name of what went wrong; None unless it failed.
        error_message: The same in words; None unless it failed.
        tries: How often it was taken up.
        elapsed_s: How long the last try took, in seconds; None before its end.
        size_bytes: Size of the input; None where it has no file.
        identity: SHA-256, as 64 hexadecimal digits, of operation, fields and content; None until it
            was taken up.
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

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values for JSON; what is None is left out.

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
        """A table for notebooks."""
        return _batch_item_html(self)


@dataclass(frozen=True, slots=True)
class BatchProgress(HtmlReprMixin):
    """How far a batch is.

    Attributes:
        done: Items that are done, those of runs before this one included.
        failed: Items that have failed.
        total: Items that are known.
        is_counting: Whether inputs are still being looked for, so that `total` grows.
        done_bytes: Size of the inputs that are done or have failed, in bytes.
        total_bytes: Size of all known inputs; 0 where they have no files.
        ended_here: Items that this run has brought to an end.
        ended_here_bytes: Size of their inputs.
        elapsed_s: Seconds since this run began.
        paused_s: Seconds that it will still wait because the server asked for a pause; else 0.
        is_stopping: Whether an interruption lets only what has begun come to its end.
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

    @property
    def items_per_s(self) -> float:
        """Items that this run brings to an end in a second."""
        return self.ended_here / self.elapsed_s if self.elapsed_s > 0 else 0.0

    @property
    def eta_s(self) -> float | None:
        """Seconds until the end, by bytes where they are known, else by items.

        None while inputs are being looked for, and before anything has ended.

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
    """What became of a batch.

    Attributes:
        manifest: Where everything is written down.
        total: Items in the manifest.
        done: Items that are done.
        failed: Items that have failed; `polymux.batch` with ``retry_failed=True`` tries them again.
        waiting: Items that were not taken up, or not brought to an end.
        kept: Of `done`, those that were done before this run.
        copied: Items of this run whose result was copied from one with the same content.
        repeated: Inputs that were given more than once, or in an earlier run already.
        ignored: Files of folders that the operation does not read.
        unread: What kept folders from being read, in words, of 100 at most. What is in them is no
            item yet: give the inputs again with `resume` when they can be read.
        remade: Items that were done again: their input had changed, or their output was not there,
            or not as it was made.
        elapsed_s: How long this run took, in seconds.
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

    @property
    def is_complete(self) -> bool:
        """Whether everything is done, and every folder was read."""
        return self.done == self.total and not self.unread

    def items(self, state: State | None = None) -> Iterator[BatchItem]:
        """The items, in the order in which they were found, read from the manifest piece by piece.

        Args:
            state: Only those in this state. Default: all.
        """
        from polymux.batches.manifest import items_of

        return items_of(self.manifest, state)

    def write(self, path: str | os.PathLike[str], *, overwrite: bool = True) -> Path:
        """Writes a table of all items; it appears only when it is whole.

        Args:
            path: Ends with ``.csv``, ``.jsonl`` or ``.parquet``, which needs ``polymux[batch]``.
            overwrite: Replace an existing file. Default: True.

        Returns:
            The path.

        Raises:
            InvalidRequestError: Another ending.
            MissingDependencyError: Parquet without the package for it.
            OutputError: It cannot be written.
        """
        from polymux.batches.reports import write_report

        items = (item.to_dict() for item in self.items())
        return write_report(items, Path(path), overwrite=overwrite)

    def _repr_html_(self) -> str:
        """Tables for notebooks: what became of all, and of those that failed."""
        return _batch_report_html(self)


def _batch_item_html(item: BatchItem) -> str:
    """An input and what became of it; the results are linked where a notebook can reach them."""
    rows = [("input", escaped(_input(item)))]
    rows += [("output", linked_path(path, path.name)) for path in item.outputs[:MAX_ROWS]]
    if item.error_code is not None:
        rows.append(("why", escaped(_why(item))))
    return table(rows) + facts(item, ("state", "tries", "elapsed_s", "size_bytes"))


def _input(item: BatchItem) -> str:
    return item.input if item.size_bytes is None else Path(item.input).name


def _why(item: BatchItem) -> str:
    """What went wrong, without the path that its own message begins with."""
    message = (item.error_message or "").removeprefix(f"{item.input}: ")
    return f"{item.error_code}: {message}"


def _batch_report_html(report: BatchReport) -> str:
    """How a batch went, and which inputs failed and why: the first of them."""
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
            failed = [("", escaped(error))]  # The manifest is gone; the counts are not.
    return table(rows) + (table(failed, ("failed", "why")) if failed else "")
