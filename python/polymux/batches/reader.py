"""Manifests as they are, for whoever looks: also while a batch works with one."""

from __future__ import annotations

import os
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.sqlite import connect
from polymux._util.text import display_name
from polymux.batches.database import BUSY_S, check_application, refuse_others, reported
from polymux.batches.records import counts_of, item_of
from polymux.batches.results import BatchReport
from polymux.errors import InputNotFoundError

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator

    from polymux.batches.results import BatchItem, State

_PAGE = 500


def report_of(manifest: str | os.PathLike[str]) -> BatchReport:
    """How things stand in a manifest.

    Args:
        manifest: Its path.

    Raises:
        InputNotFoundError: There is no such file.
        OutputError: It is damaged, or no manifest.

    Example:
        >>> import polymux
        >>> from polymux.batches.reader import report_of
        >>> made = polymux.batch("convert_to_mp3", ["song.flac"], output_dir="again", bitrate="64k")
        >>> report_of(made.manifest).done
        1
    """
    path = Path(manifest).absolute()
    with closing(_connected(path)) as connection, reported(path):
        counts = counts_of(connection)
    return BatchReport(path, counts.total, counts.done, counts.failed, counts.waiting)


def items_of(manifest: Path, state: State | None) -> Iterator[BatchItem]:
    """The items of a manifest, by their numbers, a page at a time.

    Raises:
        InputNotFoundError: There is no such file.
        OutputError: It is damaged, or no manifest.
    """
    last, where = 0, "" if state is None else "AND state = ?"
    values = () if state is None else (state,)
    with closing(_connected(manifest)) as connection:
        with reported(manifest):
            out = _out_of(connection, manifest)
        while True:
            # Each page is read at once: whoever writes waits no longer than for that.
            with reported(manifest):
                rows = connection.execute(
                    f"SELECT * FROM items WHERE id > ? {where} ORDER BY id LIMIT {_PAGE}",  # noqa: S608
                    (last, *values),
                ).fetchall()
                items = [item_of(connection, row, out) for row in rows]
            if not items:
                return
            yield from items
            last = items[-1].id


def _connected(path: Path) -> sqlite3.Connection:
    if not path.is_file():
        raise InputNotFoundError(
            f"there is no manifest '{display_name(path.as_posix())}'", input_name=os.fspath(path)
        )
    refuse_others(path)
    with reported(path):
        connection = connect(path, timeout_s=BUSY_S)
        try:
            check_application(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def _out_of(connection: sqlite3.Connection, manifest: Path) -> Path:
    row = connection.execute("SELECT value FROM facts WHERE name = 'out'").fetchone()
    return Path(os.fsdecode(row["value"])) if row and row["value"] else manifest.parent
