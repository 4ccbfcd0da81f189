"""The one thread of a batch that gives files their names and writes down what has happened."""

from __future__ import annotations

import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from polymux.batches.output_store import is_without_room
from polymux.batches.records import Failed, Made, Returned, failed_with
from polymux.errors import OutputError, OutputExistsError

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.batches.manifest import Manifest
    from polymux.batches.output_store import Storage


class Clerk(threading.Thread):
    """Writes down what threads hand over, all that is there at once.

    A change of the manifest waits for the disk several times, whether it is of one item or of many:
    while this thread waits, others work, and what they have made meanwhile goes into the next one.

    Args:
        manifest: Where it is written down.
        storage: Where the files are.
        overwrite: Replace files that this batch has not made.
        on_over: Told of each item whose end was written down, on this thread.
        on_error: Told what keeps this thread from going on, which ends it.
        on_end: Told that nothing more comes.
    """

    def __init__(
        self,
        manifest: Manifest,
        storage: Storage,
        *,
        overwrite: bool,
        on_over: Callable[[Made | Failed | Returned], object],
        on_error: Callable[[BaseException], object],
        on_end: Callable[[], object],
    ) -> None:
        """Begins with `start`."""
        super().__init__(name="polymux-batch-clerk", daemon=True)
        self._manifest, self._storage, self._overwrite = manifest, storage, overwrite
        self._on_over, self._on_error, self._on_end = on_over, on_error, on_end
        self._given: SimpleQueue[int | Made | Failed | Returned | None] = SimpleQueue()

    def hand_over(self, one: int | Made | Failed | Returned | None) -> None:
        """Takes a number of an item that was taken up, an item's end, or None: the last word."""
        self._given.put(one)

    def run(self) -> None:
        """The thread."""
        named: list[Made] = []
        try:
            is_open = True
            # What could not get its name is a failure that this thread hands to itself.
            while is_open or named or not self._given.empty():
                given = self._all_given(waits=is_open and not named)
                is_open = is_open and None not in given
                named = self._written(given, named)
        except BaseException as error:
            self._on_error(error)
        finally:
            self._on_end()

    def _all_given(self, *, waits: bool) -> list[int | Made | Failed | Returned | None]:
        """Everything that is there; at least one thing where it is worth to wait for that."""
        given = [self._given.get()] if waits else []
        while True:
            try:
                given.append(self._given.get_nowait())
            except Empty:
                return given

    def _written(
        self, given: list[int | Made | Failed | Returned | None], named: list[Made]
    ) -> list[Made]:
        """Writes everything down; gives the items whose files have got their names after that."""
        failed = [one for one in given if isinstance(one, Failed)]
        returned = [one for one in given if isinstance(one, Returned)]
        made = [one for one in given if isinstance(one, Made)]
        answers = self._manifest.write_down(
            taken=[one for one in given if isinstance(one, int)],
            finished=named,
            failed=failed,
            returned=returned,
            made=made,
            overwrite=self._overwrite,
        )
        overs: list[Made | Failed | Returned] = [*named, *failed, *returned]
        for over in overs:
            self._on_over(over)
        now_named = []
        for one, answer in zip(made, answers, strict=True):
            try:
                if isinstance(answer, OutputExistsError):
                    raise answer
                self._storage.publish(one.task.id, answer)
            except OutputError as error:
                if is_without_room(error):
                    raise
                self._storage.clear(one.task.id)
                self.hand_over(failed_with(one.task, error, one.elapsed_s))
            else:
                now_named.append(one)
        self._storage.sync()
        return now_named
