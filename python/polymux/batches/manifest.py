"""The manifest of a batch: all items with their states and outputs.

`Manifest` is for the batch that writes it. `report_of` and `items_of` read it, even during a run.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
from contextlib import closing, suppress
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.sqlite import connect
from polymux._util.text import display_name
from polymux.batches.database import BUSY_S, Database, check_application, refuse_others, reported
from polymux.batches.records import (
    Counts,
    Failed,
    Found,
    Output,
    StagedResult,
    Task,
    counts_of,
    item_of,
    outputs_of,
    task_of,
)
from polymux.batches.results import BatchReport
from polymux.batches.spec import canonical
from polymux.errors import (
    InputChangedError,
    InputError,
    InputNotFoundError,
    InvalidRequestError,
    OutputExistsError,
)

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterable, Iterator

    from polymux.batches.output_store import OutputStore
    from polymux.batches.results import BatchItem, State
    from polymux.batches.spec import BatchSpec

_HASH_DIGITS = 8
#: Name of the fact that records whether all inputs were listed.
_LISTING = "listing"
#: Name of the fact with the additional fields; missing in manifests of 0.1.
_EXTRA = "extra_body"
_PAGE = 500


class Manifest:
    """The items of one batch. Thread-safe.

    Args:
        path: Path of the database, which is created if necessary.
        out: Absolute path of the output directory.

    Raises:
        OutputError: See `polymux.batches.database.Database`.
    """

    def __init__(self, path: Path, out: Path) -> None:
        self.path = path
        self.out = out
        self._database = Database(path)
        self._change, self._read = self._database.change, self._database.read

    def begin(self, operation: str, fields: str, extra: str, *, resumes: bool) -> str:
        """Record what the batch does, or check that it is the same as before.

        Args:
            operation: The operation with its model.
            fields: The common fields, as canonical JSON.
            extra: Those of them that are additional fields, as canonical JSON.
            resumes: Whether items may exist.

        Returns:
            An ID that distinguishes the staging files of this manifest from others.

        Raises:
            InvalidRequestError: Items exist although `resumes` is False, or they belong to another
                operation, other fields, or another output directory.
        """
        # If the manifest is in the output directory, both can be moved together.
        out = b"" if self.path.parent == self.out else os.fsencode(self.out)
        wanted = {"operation": operation.encode(), "fields": fields.encode(), "out": out}
        wanted[_EXTRA] = extra.encode()
        name = display_name(self.path.as_posix())
        with self._read() as connection:
            facts = _facts(connection)
            (count,) = connection.execute("SELECT COUNT(*) FROM items").fetchone()
        if count and not resumes:
            raise InvalidRequestError(
                f"manifest '{name}': already has {count} items. Use --resume (resume=True) to "
                "continue, or another --output-dir or --manifest"
            )
        beside = os.fsencode(self.path.parent)
        for fact, words in (
            ("operation", "operation"),
            ("fields", "fields"),
            ("out", "output directory"),
        ):
            if count and facts.get(fact) != wanted[fact]:
                there, here = (display_name(one.get(fact) or beside) for one in (facts, wanted))
                raise InvalidRequestError(
                    f"manifest '{name}': belongs to a batch with the {words} {there} (got {here}). "
                    f"Use the same {words}, or another --manifest"
                )
        identity = facts.get("id", secrets.token_hex(8).encode())
        with self._change() as connection:
            _write_facts(connection, {**wanted, "id": identity})
        return identity.decode()

    def described(self) -> tuple[str, str, str | None] | None:
        """Return the arguments of the earlier `begin`; None without items."""
        with self._read() as connection:
            facts = _facts(connection)
            if connection.execute("SELECT 1 FROM items").fetchone() is None:
                return None
        extra = facts[_EXTRA].decode() if _EXTRA in facts else None
        return facts["operation"].decode(), facts["fields"].decode(), extra

    def note_listing(self, *, is_whole: bool) -> None:
        """Record that the listing of inputs has started or is complete."""
        with self._change() as connection:
            _write_facts(connection, {_LISTING: b"whole" if is_whole else b"begun"})

    def check_listing(self) -> None:
        """Check that all inputs are listed, for a run without new inputs.

        Raises:
            InvalidRequestError: An earlier run ended during the listing, so inputs are missing.
        """
        with self._read() as connection:
            listing = _facts(connection).get(_LISTING)
        if listing == b"begun":
            raise InvalidRequestError(
                f"manifest '{display_name(self.path.as_posix())}': incomplete list of inputs, "
                "because an earlier run was interrupted or could not read an input. Pass the "
                "inputs again"
            )

    def add(self, found: Iterable[Found]) -> tuple[int, int, int]:
        """Add items. Return number and size in bytes of new ones, and the number of known ones."""
        batch = list(found)
        with self._change() as connection:
            new = [one for one in batch if _insert(connection, one)]
        return len(new), sum(one.size_bytes or 0 for one in new), len(batch) - len(new)

    def is_output(self, name: bytes) -> bool:
        """Return whether an item has made, or is about to make, a file with this relative name."""
        query = "SELECT 1 FROM outputs WHERE name = ?"
        with self._read() as connection:
            return connection.execute(query, (name,)).fetchone() is not None

    def next_ones(self, most: int, but: Collection[int]) -> list[Task]:
        """Return the first waiting items.

        Args:
            most: Maximum number.
            but: Numbers of items to skip, because they are already taken.
        """
        places = ", ".join("?" * len(but))
        with self._read() as connection:
            rows = connection.execute(
                f"SELECT * FROM items WHERE state = 'waiting' AND id NOT IN ({places}) "  # noqa: S608
                "ORDER BY id LIMIT ?",
                (*but, most),
            )
            return [task_of(row) for row in rows]

    def done_like(self, identity: bytes, but: int) -> tuple[int, list[Output]] | None:
        """Return an item with that identity that is done, and its outputs, if any."""
        with self._read() as connection:
            row = connection.execute(
                "SELECT id FROM items WHERE identity = ? AND state = 'done' AND id != ?",
                (identity, but),
            ).fetchone()
            return None if row is None else (row["id"], outputs_of(connection, row["id"]))

    def write_down(
        self,
        *,
        taken: Iterable[int] = (),
        finished: Iterable[StagedResult] = (),
        failed: Iterable[Failed] = (),
        returned: Iterable[Task] = (),
        made: Iterable[StagedResult] = (),
        overwrite: bool = False,
    ) -> list[list[Output] | OutputExistsError]:
        """Record events, all in one transaction.

        Args:
            taken: Items whose processing starts.
            finished: Items whose files have their final names and are on the disk.
            failed: Items that failed.
            returned: Items that were taken but not processed.
            made: Items whose files are staged and will get their final names next.
            overwrite: Whether to replace files that are not from this batch.

        Returns:
            For each of `made`, its files with their names, or the error that prevents them.
        """
        with self._change() as connection:
            connection.executemany(
                "UPDATE items SET state = 'working', tries = tries + 1 WHERE id = ?",
                [(one,) for one in taken],
            )
            connection.executemany(
                "UPDATE items SET state = 'done', error_code = NULL, error_message = NULL, "
                "elapsed_s = ? WHERE id = ?",
                [(one.elapsed_s, one.task.id) for one in finished],
            )
            _own(connection, [one.task.id for one in finished])
            connection.executemany(
                "UPDATE items SET state = 'waiting', tries = max(0, tries - 1) WHERE id = ?",
                [(one.id,) for one in returned],
            )
            for one in failed:
                _fail(connection, one)
            return [self._intend(connection, one, overwrite=overwrite) for one in made]

    def _intend(
        self, connection: sqlite3.Connection, made: StagedResult, *, overwrite: bool
    ) -> list[Output] | OutputExistsError:
        """Record the final names of files before the files are renamed."""
        item = made.task.id
        try:
            names = self._names(connection, made, overwrite=overwrite)
        except OutputExistsError as error:
            return error
        outputs = [
            Output(number, name, *one, is_own)
            for number, (one, (name, is_own)) in enumerate(zip(made.staged, names, strict=True))
        ]
        connection.execute("DELETE FROM outputs WHERE item = ?", (item,))
        connection.executemany(
            "INSERT INTO outputs VALUES (?, ?, ?, ?, ?, ?, ?)", [(item, *one) for one in outputs]
        )
        connection.execute(
            "UPDATE items SET identity = ?, size_bytes = ?, mtime_ns = ?, copied_from = ? "
            "WHERE id = ?",
            (made.identity, made.size_bytes, made.mtime_ns, made.copied_from, item),
        )
        return outputs

    def _names(
        self, connection: sqlite3.Connection, made: StagedResult, *, overwrite: bool
    ) -> list[tuple[bytes, bool]]:
        """Return a name for each file, and whether an existing file may be replaced."""
        task, staged = made.task, made.staged
        row = connection.execute("SELECT stem, key FROM items WHERE id = ?", (task.id,)).fetchone()
        others = {
            name
            for one in staged
            for (name,) in connection.execute(
                "SELECT name FROM outputs WHERE name = ? AND item != ?",
                (row["stem"] + os.fsencode(one.ending), task.id),
            )
        }
        # For example, another item's numbered file `a-1.png` may have this item's name.
        stem = _unique_stem(row["stem"], row["key"]) if others else row["stem"]
        own = {one.name for one in outputs_of(connection, task.id) if one.is_own}
        found = []
        for one in staged:
            name = stem + os.fsencode(one.ending)
            path = os.path.join(os.fsencode(self.out), name)  # noqa: PTH118 - byte for byte
            is_own = overwrite or name in own
            if is_own and _is_input(connection, task, path):
                raise OutputExistsError(
                    f"cannot write '{display_name(path)}': it is an input of this batch. Use "
                    "another --output-dir"
                )
            if not is_own and os.path.lexists(path):
                raise OutputExistsError(
                    f"cannot write '{display_name(path)}': already exists and is not from this "
                    "batch. Use --overwrite or another --output-dir"
                )
            found.append((name, is_own))
        return found

    def recovered(self, item: int) -> None:
        """Record that an item of an interrupted run is done."""
        with self._change() as connection:
            connection.execute(
                "UPDATE items SET state = 'done', error_code = NULL, error_message = NULL "
                "WHERE id = ?",
                (item,),
            )
            _own(connection, [item])

    def wait_again(self, items: Iterable[int]) -> None:
        """Mark items as waiting."""
        values = [(one,) for one in items]
        with self._change() as connection:
            connection.executemany("UPDATE items SET state = 'waiting' WHERE id = ?", values)

    def keep_times(self, item: int, mtime_ns: int) -> None:
        """Record the new modification time of an input with unchanged content."""
        with self._change() as connection:
            connection.execute("UPDATE items SET mtime_ns = ? WHERE id = ?", (mtime_ns, item))

    def interrupted(self) -> list[tuple[Task, list[Output]]]:
        """Return the items that were in progress when the last run ended, with their outputs."""
        return self._with_outputs("state = 'working' ORDER BY id")

    def done_after(self, item: int, most: int = 200) -> list[tuple[Task, list[Output]]]:
        """Return the next items that are done, with their outputs."""
        return self._with_outputs("state = 'done' AND id > ? ORDER BY id LIMIT ?", item, most)

    def _with_outputs(self, where: str, *values: Any) -> list[tuple[Task, list[Output]]]:
        query = f"SELECT * FROM items WHERE {where}"  # noqa: S608 - constants of this class
        with self._read() as connection:
            rows = connection.execute(query, values).fetchall()
            return [(task_of(row), outputs_of(connection, row["id"])) for row in rows]

    def retry_failed(self) -> None:
        """Mark all failed items as waiting."""
        with self._change() as connection:
            connection.execute("UPDATE items SET state = 'waiting' WHERE state = 'failed'")

    def counts(self) -> Counts:
        """Return the number of items in each state."""
        with self._read() as connection:
            return counts_of(connection)

    def item(self, number: int) -> BatchItem:
        """Return one item for callers."""
        with self._read() as connection:
            row = connection.execute("SELECT * FROM items WHERE id = ?", (number,)).fetchone()
            return item_of(connection, row, self.out)

    def close(self) -> None:
        """Close the database and release the lock. Idempotent."""
        self._database.close()


def _facts(connection: sqlite3.Connection) -> dict[str, bytes]:
    return {row["name"]: row["value"] for row in connection.execute("SELECT * FROM facts")}


def _write_facts(connection: sqlite3.Connection, facts: dict[str, bytes]) -> None:
    connection.executemany("INSERT OR REPLACE INTO facts VALUES (?, ?)", list(facts.items()))


def _insert(connection: sqlite3.Connection, found: Found) -> bool:
    """Add an item. Return False if it already exists."""
    key = hashlib.sha256(found.fields.encode()).digest()
    if connection.execute("SELECT 1 FROM items WHERE key = ?", (key,)).fetchone():
        return False
    stem = found.stem
    if connection.execute("SELECT 1 FROM items WHERE stem = ?", (stem,)).fetchone():
        stem = _unique_stem(stem, key)
    connection.execute(
        "INSERT INTO items (key, input, fields, stem, state, size_bytes) "
        "VALUES (?, ?, ?, ?, 'waiting', ?)",
        (key, found.input, found.fields, stem, found.size_bytes),
    )
    return True


def _is_input(connection: sqlite3.Connection, task: Task, path: bytes) -> bool:
    """Return whether a path is an input. An output must never replace an input."""
    absolute = os.path.abspath(os.fsdecode(path))  # noqa: PTH100 - does not resolve links
    for name, value in json.loads(task.fields).items():
        key = hashlib.sha256(canonical({name: absolute}).encode()).digest()
        if connection.execute("SELECT 1 FROM items WHERE key = ?", (key,)).fetchone():
            return True
        with suppress(OSError, TypeError, ValueError):  # The value is a text or a missing file.
            if os.path.samefile(value, absolute):  # noqa: PTH121
                return True
    return False


def _own(connection: sqlite3.Connection, items: list[int]) -> None:
    """Record that files with the names of done items belong to them."""
    connection.executemany(
        "UPDATE outputs SET is_own = 1 WHERE item = ?", [(one,) for one in items]
    )


def _fail(connection: sqlite3.Connection, failed: Failed) -> None:
    """Record a failure. Outputs of an earlier success stay known; intended names do not."""
    connection.execute("DELETE FROM outputs WHERE item = ? AND NOT is_own", (failed.task.id,))
    connection.execute(
        "UPDATE items SET state = 'failed', error_code = ?, error_message = ?, elapsed_s = ? "
        "WHERE id = ?",
        (failed.code, failed.message, failed.elapsed_s, failed.task.id),
    )


def _unique_stem(stem: bytes, key: bytes) -> bytes:
    return stem + b"-" + key.hex()[:_HASH_DIGITS].encode()


def recover(manifest: Manifest, storage: OutputStore) -> None:
    """Finish the items of an interrupted run whose outputs are complete; reset the others.

    Results that were made are not made again: they have their names, or are complete in the staging
    directory.

    Raises:
        OutputError: A file cannot be renamed.
    """
    for task, outputs in manifest.interrupted():
        lying = [one for one in outputs if storage.holds(one)]
        staged = [one for one in outputs if one not in lying and storage.is_staged(task.id, one)]
        # Do not replace a file that was created in the meantime under our name.
        taken = [one for one in staged if not one.is_own and os.path.lexists(storage.path_of(one))]
        if outputs and not taken and len(lying) + len(staged) == len(outputs):
            storage.publish(task.id, staged)
            storage.sync()
            manifest.recovered(task.id)
            continue
        for one in lying:
            # Delete parts of an incomplete result. An earlier complete result will be replaced.
            if not one.is_own:
                storage.path_of(one).unlink(missing_ok=True)
        manifest.wait_again([task.id])
    storage.clear()


def undone(manifest: Manifest, storage: OutputStore, spec: BatchSpec) -> Iterator[Task]:
    """Mark done items as waiting if they must be processed again, and yield them.

    Their outputs are missing or changed, or their input has changed.
    """
    last = 0
    while page := manifest.done_after(last):
        again = []
        for task, outputs in page:
            last = task.id
            is_whole = bool(outputs) and all(map(storage.holds, outputs))
            if not is_whole or _has_changed(task, manifest, spec):
                again.append(task)
        if again:
            manifest.wait_again([task.id for task in again])
        yield from again


def _has_changed(task: Task, manifest: Manifest, spec: BatchSpec) -> bool:
    """Return whether the content of an input has changed. A missing input counts as unchanged."""
    fields = {**spec.fields, **json.loads(task.fields)}
    status = status_of(fields.get(spec.first)) if spec.is_file else None
    if status is None or status == (task.size_bytes, task.mtime_ns):
        return False
    try:
        if spec.identity(fields) != task.identity:
            return True
    except InputError:
        return False
    manifest.keep_times(task.id, status[1])
    return False


def status_of(path: object) -> tuple[int, int] | None:
    """Return size in bytes and modification time in ns; None if there is no file."""
    if not isinstance(path, str):
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - a path of any bytes
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns


def check_unchanged(path: Any, before: tuple[int, int] | None) -> None:
    """Check that an input did not change during its processing."""
    if status_of(path) != before:
        raise InputChangedError("the file changed while it was read", input_name=path)


def listed(found: Iterator[Found], manifest: Manifest) -> Iterator[Found]:
    """Return the found items, and record that the listing has started if there are any.

    Raises:
        InvalidRequestError: There are no items, and an earlier run did not list all of them.
    """
    first = next(found, None)
    if first is None:
        manifest.check_listing()
        return iter(())
    manifest.note_listing(is_whole=False)
    return chain((first,), found)


def report_of(manifest: str | os.PathLike[str]) -> BatchReport:
    """Return the status of a batch from its manifest.

    Args:
        manifest: Path of the manifest.

    Raises:
        InputNotFoundError: The file does not exist.
        OutputError: It is damaged or not a manifest.

    Example:
        >>> import polymux
        >>> from polymux.batches.manifest import report_of
        >>> made = polymux.batch("convert_to_mp3", ["song.flac"], output_dir="again", bitrate="64k")
        >>> report_of(made.manifest).done
        1
    """
    path = Path(manifest).absolute()
    with closing(_connected(path)) as connection, reported(path):
        counts = counts_of(connection)
    return BatchReport(path, counts.total, counts.done, counts.failed, counts.waiting)


def items_of(manifest: Path, state: State | None) -> Iterator[BatchItem]:
    """Iterate over the items of a manifest by number, one page at a time.

    Raises:
        InputNotFoundError: The file does not exist.
        OutputError: It is damaged or not a manifest.
    """
    last, where = 0, "" if state is None else "AND state = ?"
    values = () if state is None else (state,)
    with closing(_connected(manifest)) as connection:
        with reported(manifest):
            out = _out_of(connection, manifest)
        while True:
            # Read each page at once: writers then wait only briefly.
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
            f"manifest not found: '{display_name(path.as_posix())}'", input_name=os.fspath(path)
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
