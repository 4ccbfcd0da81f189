"""What a manifest has, as values: what was found, what is to be done, what was made."""

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
    """An input that was found.

    Attributes:
        input: How it is shown: the bytes of its path, else its fields as JSON.
        fields: The fields that are its own, as canonical JSON.
        stem: What the names of its outputs begin with, below the out folder.
        size_bytes: Of its file; None where it has none.
    """

    input: bytes
    fields: str
    stem: bytes
    size_bytes: int | None


class Output(NamedTuple):
    """A file that was made, or is about to be.

    Attributes:
        number: Its place among those of its item, from 0.
        name: Below the out folder.
        ending: What follows the stem in it.
        size_bytes: Its size.
        sha256: Of its content.
        is_own: Whether what lies there under that name may be replaced.
    """

    number: int
    name: bytes
    ending: str
    size_bytes: int
    sha256: bytes
    is_own: bool


class Staged(NamedTuple):
    """A file that was made and has no name of its own yet.

    Attributes:
        ending: What follows the stem in its name: ``"-2.png"``.
        size_bytes: Its size.
        sha256: Of its content.
    """

    ending: str
    size_bytes: int
    sha256: bytes


@dataclass(frozen=True, slots=True)
class Task:
    """An item as those who work on it need it."""

    id: int
    input: bytes
    fields: str
    size_bytes: int | None
    mtime_ns: int | None
    identity: bytes | None


@dataclass(frozen=True, slots=True)
class StagedResult:
    """What was staged for an item.

    Attributes:
        task: The item.
        staged: Its files, in their order.
        identity: SHA-256 of operation, fields and content.
        size_bytes: Of its input, when that was read; None where it has no file.
        mtime_ns: Time of the input's last change; None where it has no file.
        copied_from: Number of the item whose result it is; None where it was made for this one.
        elapsed_s: How long that took, in seconds.
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
    """An item that has failed: its number, why, and how long that took, in seconds."""

    task: Task
    code: str
    message: str
    elapsed_s: float


class Counts(NamedTuple):
    """How many items are in each state, and how large the files of all and of the ended are."""

    waiting: int
    done: int
    failed: int
    ended_bytes: int
    total_bytes: int

    @property
    def total(self) -> int:
        """All of them."""
        return self.waiting + self.done + self.failed


def counts_of(connection: sqlite3.Connection) -> Counts:
    """How many items are in which state; those that are worked on count as waiting."""
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
    """A row of the items, for those who work on it."""
    return Task(*(row[name] for name in Task.__slots__))


def outputs_of(connection: sqlite3.Connection, item: int) -> list[Output]:
    """The files of an item, in their order."""
    rows = connection.execute(
        "SELECT number, name, ending, size_bytes, sha256, is_own FROM outputs WHERE item = ? "
        "ORDER BY number",
        (item,),
    )
    return [Output(*row)._replace(is_own=bool(row["is_own"])) for row in rows]


def item_of(connection: sqlite3.Connection, row: sqlite3.Row, out: Path) -> BatchItem:
    """A row of the items, as callers know it."""
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
    """An item that has failed by an error, told without any key."""
    if isinstance(error, PolymuxError):
        return Failed(task, error.code, printable(str(error)), elapsed_s)
    words = redact(printable(f"{type(error).__name__}: {error}"))
    return Failed(task, "error", words, elapsed_s)
