"""Values in a manifest: found inputs, tasks, outputs and results."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from polymux._util.redaction import redact
from polymux._util.text import printable
from polymux.batches.results import BatchItem
from polymux.errors import PolymuxError

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path


class Found(NamedTuple):
    """An input.

    Attributes:
        input: Display name: the bytes of its path, else its fields as JSON.
        fields: Its own fields, as canonical JSON.
        stem: Start of its output names, relative to the output directory.
        size_bytes: Size of its file; None without a file.
    """

    input: bytes
    fields: str
    stem: bytes
    size_bytes: int | None


class Output(NamedTuple):
    """A file that exists or is about to be created.

    Attributes:
        number: Index among the files of its item, from 0.
        name: Path relative to the output directory.
        ending: Part of the name after the stem.
        size_bytes: Size in bytes.
        sha256: Hash of the content.
        is_own: Whether an existing file with this name may be replaced.
    """

    number: int
    name: bytes
    ending: str
    size_bytes: int
    sha256: bytes
    is_own: bool


class Staged(NamedTuple):
    """A file in the staging directory.

    Attributes:
        ending: Part of its final name after the stem, such as ``"-2.png"``.
        size_bytes: Size in bytes.
        sha256: Hash of the content.
    """

    ending: str
    size_bytes: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Task:
    """An item, as needed for its processing."""

    id: int
    input: bytes
    fields: str
    size_bytes: int | None
    mtime_ns: int | None
    identity: bytes | None


@dataclass(frozen=True, slots=True)
class StagedResult:
    """The staged files of an item.

    Attributes:
        task: The item.
        staged: Its files in order.
        identity: SHA-256 of operation, fields and content.
        size_bytes: Size of the input when it was read; None without a file.
        mtime_ns: Modification time of the input; None without a file.
        copied_from: Number of the item whose result was copied; None if it was not copied.
        elapsed_s: Duration in seconds.
    """

    task: Task
    staged: tuple[Staged, ...]
    identity: bytes
    size_bytes: int | None
    mtime_ns: int | None
    copied_from: int | None
    elapsed_s: float


@dataclass(frozen=True, slots=True)
class Failed:
    """An item that failed, with error code, message and duration in seconds."""

    task: Task
    code: str
    message: str
    elapsed_s: float


class Counts(NamedTuple):
    """The number of items in each state, and the sizes of ended and of all inputs."""

    waiting: int
    done: int
    failed: int
    ended_bytes: int
    total_bytes: int

    @property
    def total(self) -> int:
        return self.waiting + self.done + self.failed


def counts_of(connection: sqlite3.Connection) -> Counts:
    """Count the items in each state. Items in progress count as waiting."""
    rows = connection.execute(
        "SELECT state, COUNT(*), TOTAL(size_bytes) FROM items GROUP BY state"
    ).fetchall()
    number = {state: count for state, count, _ in rows}
    size = {state: int(total) for state, _, total in rows}
    return Counts(
        number.get("waiting", 0) + number.get("working", 0),
        number.get("done", 0),
        number.get("failed", 0),
        size.get("done", 0) + size.get("failed", 0),
        sum(size.values()),
    )


def task_of(row: sqlite3.Row) -> Task:
    """Create a task from a row of the table `items`."""
    return Task(*(row[name] for name in Task.__slots__))


def outputs_of(connection: sqlite3.Connection, item: int) -> list[Output]:
    """Return the files of an item in order."""
    rows = connection.execute(
        "SELECT number, name, ending, size_bytes, sha256, is_own FROM outputs WHERE item = ? "
        "ORDER BY number",
        (item,),
    )
    return [Output(*row)._replace(is_own=bool(row["is_own"])) for row in rows]


def item_of(connection: sqlite3.Connection, row: sqlite3.Row, out: Path) -> BatchItem:
    """Create an item for callers from a row of the table `items`."""
    is_done, has_failed = row["state"] == "done", row["state"] == "failed"
    names = connection.execute(
        "SELECT name FROM outputs WHERE item = ? ORDER BY number", (row["id"],)
    ).fetchall()
    return BatchItem(
        id=row["id"],
        input=os.fsdecode(row["input"]),
        state=row["state"],
        outputs=tuple(out / os.fsdecode(name) for (name,) in names) if is_done else (),
        copied_from=row["copied_from"] if is_done else None,
        error_code=row["error_code"] if has_failed else None,
        error_message=row["error_message"] if has_failed else None,
        tries=row["tries"],
        elapsed_s=row["elapsed_s"],
        size_bytes=row["size_bytes"],
        identity=None if row["identity"] is None else row["identity"].hex(),
    )


def failed_with(task: Task, error: Exception, elapsed_s: float) -> Failed:
    """Create a failure from an exception, with keys redacted."""
    if isinstance(error, PolymuxError):
        return Failed(task, error.code, printable(str(error)), elapsed_s)
    words = redact(printable(f"{type(error).__name__}: {error}"))
    return Failed(task, "error", words, elapsed_s)
