"""The orders of a batch on their way to the workers of a cluster, and large files in both ways.

Ray Data reads the orders as the one block after another of a data set without end. It may read them
a second time, where a machine was lost: the same place of the row must have the same order then.
"""

from __future__ import annotations

import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

#: What goes from machine to machine at once. What is no larger goes with the order itself.
PIECE_BYTES = 4 << 20
#: How many orders go to a worker together, where many wait: each way costs some milliseconds.
_MOST_TOGETHER = 8


class Order(NamedTuple):
    """Work on one item.

    Attributes:
        key: Its number among the orders.
        fields: All fields, on the wire; files are paths of the machine that the batch runs on.
        contents: The files that are small, by the names of their fields.
        sizes: The size of each file in bytes, by the names of their fields.
        staging: What the names of large results begin with, on the machine of the batch.
    """

    key: int
    fields: Mapping[str, Any]
    contents: Mapping[str, bytes] = {}
    sizes: Mapping[str, int] = {}
    staging: str = ""

    @property
    def size_bytes(self) -> int:
        """Of what goes with it."""
        return sum(map(len, self.contents.values()))


class Outcome(NamedTuple):
    """What has become of an order.

    Attributes:
        key: The order's.
        error: Why it has failed; None where it has not.
        files: Of each result the ending of its name, and its content; or, of a large one, the name
            that it has got in the staging folder.
    """

    key: int
    error: Exception | None
    files: tuple[tuple[str, bytes | str], ...] = ()


_NONE: dict[int, Order] = {}


class Feed:
    """Gives orders out. An actor on the machine that the batch runs on; many threads call it.

    Args:
        workers: How many workers there are at most.

    Example:
        >>> from polymux.ray.batch_queue import Feed, Order
        >>> feed = Feed(workers=1)
        >>> feed.add(Order(0, {"prompt": "a boat"}))
        >>> [one.key for one in feed.group(0)], feed.begin(0), feed.begin(0)
        ([0], 1, 2)
        >>> feed.end(0)
        >>> feed.group(0)
        ()
        >>> feed.close()
        >>> feed.group(1) is None
        True
    """

    def __init__(self, workers: int) -> None:
        """No order yet."""
        self._workers = workers
        self._changed = threading.Condition()
        self._waiting: list[Order] = []
        #: What is over is not kept: of a million orders not one.
        self._groups: list[dict[int, Order]] = []
        self._places: dict[int, int] = {}
        self._begun: dict[int, int] = {}
        self._is_closed = False

    def add(self, order: Order) -> None:
        """Takes an order."""
        with self._changed:
            self._waiting.append(order)
            self._changed.notify_all()

    def group(self, place: int) -> tuple[Order, ...] | None:
        """The orders at this place of the row, the same each time; those that are over left out.

        Waits until there is one. None at the end.
        """
        with self._changed:
            while len(self._groups) <= place:
                if self._waiting:
                    taken = self._taken()
                    self._places.update((one.key, len(self._groups)) for one in taken)
                    self._groups.append({one.key: one for one in taken})
                elif self._is_closed:
                    return None
                else:
                    self._changed.wait()
            return tuple(self._groups[place].values())

    def _taken(self) -> tuple[Order, ...]:
        """Several where there are more than workers; else one, so that each has something to do."""
        most = min(_MOST_TOGETHER, max(1, len(self._waiting) // (2 * self._workers)))
        count, size_bytes = 0, 0
        for one in self._waiting[:most]:
            size_bytes += max(one.size_bytes, sum(one.sizes.values()))
            if count and size_bytes > PIECE_BYTES:
                break
            count += 1
        taken, self._waiting = tuple(self._waiting[:count]), self._waiting[count:]
        return taken

    def begin(self, key: int) -> int:
        """Notes that a worker begins with an order; how often one has."""
        with self._changed:
            self._begun[key] = self._begun.get(key, 0) + 1
            return self._begun[key]

    def end(self, key: int) -> None:
        """Nobody waits for this order any more."""
        with self._changed:
            self._begun.pop(key, None)
            place = self._places.pop(key, None)
            if place is not None:
                left = {one: order for one, order in self._groups[place].items() if one != key}
                self._groups[place] = left or _NONE

    def read(self, path: str, begin: int) -> bytes:
        """A piece of a file of this machine.

        Raises:
            OSError: It cannot be read.
        """
        with Path(path).open("rb") as file:
            file.seek(begin)
            return file.read(PIECE_BYTES)

    def write(self, path: str, begin: int, piece: bytes) -> None:
        """Writes a piece of a file of this machine.

        Raises:
            OSError: It cannot be written.
        """
        with Path(path).open("r+b" if begin else "wb") as file:
            file.seek(begin)
            file.write(piece)

    def close(self) -> None:
        """No more orders come."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()


def blocks_of(feed: Any) -> Iterator[Any]:
    """The orders as blocks of Ray Data, to the last.

    Args:
        feed: The actor.
    """
    import ray

    from polymux.ray.packing import packed_order

    place = 0
    while (group := ray.get(feed.group.remote(place))) is not None:
        yield table_of([packed_order(one) for one in group])
        place += 1


def table_of(values: list[bytes]) -> Any:
    """A table with one column of bytes."""
    import pyarrow  # type: ignore[import-untyped]

    return pyarrow.table({"packed": pyarrow.array(values, pyarrow.large_binary())})
