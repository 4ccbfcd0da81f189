"""The orders of a batch on their way to the workers of a cluster, and large files in both ways.

Ray Data reads the orders as the one block after another of a data set without end. It may read them
a second time, where a machine was lost: the same place of the row must have the same order then.
"""

from __future__ import annotations

import json
import struct
import threading
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ray.data.block import BlockMetadata
from ray.data.datasource import Datasource, ReadTask

from polymux import errors
from polymux.errors import InternalError, PolymuxError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: What goes from machine to machine at once. What is no larger goes with the order itself.
PIECE_BYTES = 4 << 20
#: How many orders go to a worker together, where many wait: each way costs some milliseconds.
_MAX_BATCH = 8


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
        most = min(_MAX_BATCH, max(1, len(self._waiting) // (2 * self._workers)))
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

    place = 0
    while (group := ray.get(feed.group.remote(place))) is not None:
        yield table_of([packed_order(one) for one in group])
        place += 1


def table_of(values: list[bytes]) -> Any:
    """A table with one column of bytes."""
    import pyarrow  # type: ignore[import-untyped]

    return pyarrow.table({"packed": pyarrow.array(values, pyarrow.large_binary())})


_LENGTH = struct.Struct("<Q")


def _packed(head: dict[str, Any], files: Sequence[bytes]) -> bytes:
    """JSON and files, with their lengths."""
    text = json.dumps({**head, "lengths": [len(one) for one in files]}).encode("ascii")
    return b"".join((_LENGTH.pack(len(text)), text, *files))


def _unpacked(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    head: dict[str, Any] = json.loads(data[_LENGTH.size : end])
    files = []
    for length in head["lengths"]:
        files.append(data[end : end + length])
        end += length
    return head, files


def packed_order(order: Order) -> bytes:
    """An order as bytes.

    Example:
        >>> from polymux.ray.batch_queue import Order
        >>> from polymux.ray.batch_queue import packed_order, unpacked_order
        >>> order = Order(7, {"file": "a.wav"}, {"file": b"RIFF"}, {"file": 4}, "out/7")
        >>> unpacked_order(packed_order(order)) == order
        True
    """
    head = order._replace(contents={})._asdict() | {"names": list(order.contents)}
    return _packed(head, list(order.contents.values()))


def unpacked_order(data: bytes) -> Order:
    """The order that was packed."""
    head, files = _unpacked(data)
    contents = dict(zip(head["names"], files, strict=True))
    return Order(head["key"], head["fields"], contents, head["sizes"], head["staging"])


def packed_outcome(outcome: Outcome) -> bytes:
    """An outcome as bytes; an error that is none of polymux's becomes words.

    Example:
        >>> import polymux
        >>> from polymux.ray.batch_queue import Outcome
        >>> from polymux.ray.batch_queue import packed_outcome, unpacked_outcome
        >>> failed = Outcome(7, polymux.NoAudioError("no sound", input_name="a.mkv"))
        >>> unpacked_outcome(packed_outcome(failed)).error
        NoAudioError('no sound')
    """
    names = [[one, file if isinstance(file, str) else None] for one, file in outcome.files]
    head = {"key": outcome.key, "error": _told(outcome.error), "names": names}
    return _packed(head, [file for _, file in outcome.files if isinstance(file, bytes)])


def unpacked_outcome(data: bytes) -> Outcome:
    """The outcome that was packed."""
    head, contents = _unpacked(data)
    rest = iter(contents)
    files = tuple((one, next(rest) if name is None else name) for one, name in head["names"])
    return Outcome(head["key"], _error(head["error"]), files)


def _told(error: Exception | None) -> dict[str, Any] | None:
    """An error as JSON: its class by name, and what it says."""
    if error is None:
        return None
    if not isinstance(error, PolymuxError) or not hasattr(errors, type(error).__name__):
        error = InternalError(f"{type(error).__name__}: {error}")
    _, (kind, message, details), state = error.__reduce__()
    plain = {name: one for name, one in state.items() if _is_plain(one)}
    return {"kind": kind.__name__, "message": message, "details": details, "state": plain}


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(one) for name, one in value.items())
    return value is None or isinstance(value, (str, int, float))


def _error(told: dict[str, Any] | None) -> Exception | None:
    if told is None:
        return None
    error: Exception = getattr(errors, told["kind"])(told["message"], **told["details"])
    error.__dict__.update(told["state"])
    return error


class _Orders(Datasource):
    """One task that reads the orders from their actor, one block after another."""

    def __init__(self, feed: Any) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._feed = feed

    def estimate_inmemory_data_size(self) -> int | None:
        """Nobody knows."""
        return None

    def get_read_tasks(
        self,
        parallelism: int,  # noqa: ARG002 - as Ray calls it
        per_task_row_limit: int | None = None,  # noqa: ARG002
        data_context: Any = None,  # noqa: ARG002
    ) -> list[Any]:
        """The one task."""
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(partial(blocks_of, self._feed), unknown)]


def source_of(feed: Any) -> Any:
    """The orders of a feed.

    Args:
        feed: The actor.
    """
    return _Orders(feed)
