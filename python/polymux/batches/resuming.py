"""What an earlier run has left: what was being stored, and whether what is done still is."""

from __future__ import annotations

import json
import os
from itertools import chain
from typing import TYPE_CHECKING, Any

from polymux.errors import InputChangedError, InputError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.batches.manifest import Manifest
    from polymux.batches.output_store import Storage
    from polymux.batches.records import Found, Task
    from polymux.batches.spec import Subject


def recover(manifest: Manifest, storage: Storage) -> None:
    """Brings what was being worked on to an end where it was made, else back to where it was.

    What was made is never made again: it lies under its name, or whole in the staging folder.

    Raises:
        OutputError: A file cannot be given its name.
    """
    for task, outputs in manifest.interrupted():
        lying = [one for one in outputs if storage.holds(one)]
        staged = [one for one in outputs if one not in lying and storage.is_staged(task.id, one)]
        # A file that has come meanwhile under the name of ours is not ours to replace.
        taken = [one for one in staged if not one.is_own and os.path.lexists(storage.path_of(one))]
        if outputs and not taken and len(lying) + len(staged) == len(outputs):
            storage.publish(task.id, staged)
            storage.sync()
            manifest.recovered(task.id)
            continue
        for one in lying:
            # Part of a result that is not whole; what was whole once is replaced by the next.
            if not one.is_own:
                storage.path_of(one).unlink(missing_ok=True)
        manifest.wait_again([task.id])
    storage.clear()


def undone(manifest: Manifest, storage: Storage, subject: Subject) -> Iterator[Task]:
    """Items that count as done and are to be done again; they wait when this yields them.

    Their outputs are not there, or not as they were made, or their input has changed.
    """
    last = 0
    while page := manifest.done_after(last):
        again = []
        for task, outputs in page:
            last = task.id
            is_whole = bool(outputs) and all(map(storage.holds, outputs))
            if not is_whole or _has_changed(task, manifest, subject):
                again.append(task)
        if again:
            manifest.wait_again([task.id for task in again])
        yield from again


def _has_changed(task: Task, manifest: Manifest, subject: Subject) -> bool:
    """Whether an input has another content than when it was done; one that is gone has not."""
    fields = {**subject.fields, **json.loads(task.fields)}
    status = status_of(fields.get(subject.first)) if subject.is_file else None
    if status is None or status == (task.size_bytes, task.mtime_ns):
        return False
    try:
        if subject.identity(fields) != task.identity:
            return True
    except InputError:
        return False
    manifest.keep_times(task.id, status[1])
    return False


def status_of(path: object) -> tuple[int, int] | None:
    """Size in bytes and time of the last change in ns; None where nothing lies there."""
    if not isinstance(path, str):
        return None
    try:
        found = os.stat(path)  # noqa: PTH116 - a path of any bytes
    except (OSError, ValueError):
        return None
    return found.st_size, found.st_mtime_ns


def check_unchanged(path: Any, before: tuple[int, int] | None) -> None:
    """Of a file that changed meanwhile nobody knows what the result is of."""
    if status_of(path) != before:
        raise InputChangedError("the file was changed while it was read", input_name=path)


def listed(found: Iterator[Found], manifest: Manifest) -> Iterator[Found]:
    """The items as they are found. From the first on the manifest knows that there are more.

    Raises:
        InvalidRequestError: There are none, and an earlier run did not come to its last one.
    """
    first = next(found, None)
    if first is None:
        manifest.check_listing()
        return iter(())
    manifest.note_listing(is_whole=False)
    return chain((first,), found)
