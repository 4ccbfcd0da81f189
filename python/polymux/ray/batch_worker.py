"""What works on the orders of a batch, on whatever machine of the cluster Ray Data has made it."""

from __future__ import annotations

import secrets
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name
from polymux.batches.executors import executor_for
from polymux.batches.output_store import OutputStore
from polymux.errors import InternalError, PolymuxError
from polymux.ray.batch_queue import PIECE_BYTES, Outcome, packed_outcome, table_of, unpacked_order
from polymux.service.errors import engine_failed

if TYPE_CHECKING:
    from polymux.batches.spec import BatchSpec
    from polymux.ray.batch_queue import Order

#: How often an order is begun: what ends its worker each time shall not end all of them.
_MAX_TRIES = 3


class BatchWorker:
    """An actor of Ray Data: what the local runner does here, it does there, by the same executor.

    Args:
        spec: What is to be done.
        timeout_s: Seconds that one item may take; None for the default.
        feed: The actor that gives the orders.
    """

    def __init__(self, spec: BatchSpec, timeout_s: float | None, feed: Any) -> None:
        self._feed = feed
        self._folder = Path(tempfile.mkdtemp(prefix="polymux-batch-"))
        self._storage = OutputStore(self._folder / "out", secrets.token_hex(8))
        self._executor = executor_for(spec, None, timeout_s, self._storage)

    def __call__(self, table: Any) -> Any:
        orders = map(unpacked_order, table.column("packed").to_pylist())
        return table_of([packed_outcome(self._outcome(order)) for order in orders])

    def _outcome(self, order: Order) -> Outcome:
        """What has become of an order."""
        folder = Path(tempfile.mkdtemp(dir=self._folder))
        names: dict[str, str] = {}
        try:
            files = self._done(order, folder, names)
            return Outcome(order.key, None, files)
        except Exception as error:
            return Outcome(order.key, _renamed(error, names))
        finally:
            self._storage.clear(order.key)
            shutil.rmtree(folder, ignore_errors=True)

    def _done(
        self, order: Order, folder: Path, names: dict[str, str]
    ) -> tuple[tuple[str, bytes | str], ...]:
        """Does it; `names` gets what files are called here, and what they are called there."""
        import ray

        tries = ray.get(self._feed.begin.remote(order.key))
        if tries > _MAX_TRIES:
            raise engine_failed(f"{_MAX_TRIES} workers of the cluster have ended at this")
        fields = dict(order.fields)
        for name in order.sizes:
            there = order.fields[name]
            here = folder / secrets.token_hex(4) / Path(there).name
            here.parent.mkdir()
            names |= {str(here): there, display_name(str(here)): display_name(there)}
            self._bring(order, name, here)
            fields[name] = str(here)
        endings = self._executor.run(fields, order.key, self._storage)
        return tuple((ending, self._sent(order, number)) for number, ending in enumerate(endings))

    def _bring(self, order: Order, name: str, here: Path) -> None:
        """Brings a file to this machine."""
        import ray

        if name in order.contents:
            here.write_bytes(order.contents[name])
            return
        with here.open("wb") as file:
            while piece := ray.get(self._feed.read.remote(order.fields[name], file.tell())):
                file.write(piece)

    def _sent(self, order: Order, number: int) -> bytes | str:
        """A result: its content, or of a large one where its content lies on the other machine."""
        import ray

        made = self._storage.staged(order.key, number)
        if made.stat().st_size <= PIECE_BYTES:
            return made.read_bytes()
        # A name that no other try has: the last words of one that was ended may come late.
        target = f"{order.staging}-{number}.{secrets.token_hex(8)}.part"
        with made.open("rb") as file:
            begin = 0
            while piece := file.read(PIECE_BYTES):
                ray.get(self._feed.write.remote(target, begin, piece))
                begin += len(piece)
        return target


def _renamed(error: Exception, names: dict[str, str]) -> Exception:
    """The error as the caller knows the files; what cannot travel becomes what can, in words."""
    cause = getattr(error, "cause", None)
    if not isinstance(error, PolymuxError) and isinstance(cause, (PolymuxError, OSError)):
        error = cause  # As Ray packs what an actor has raised.
    if not isinstance(error, PolymuxError):
        return InternalError(_with(f"{type(error).__name__}: {error}", names))
    kind, (cls, message, details), state = error.__reduce__()
    made: Exception = kind(cls, _with(message, names), _with(details, names))
    made.__dict__.update(_with(state, names))
    return made


def _with(value: Any, names: dict[str, str]) -> Any:
    """A value with the names of one machine in the place of those of the other."""
    if isinstance(value, dict):
        return {name: _with(one, names) for name, one in value.items()}
    if isinstance(value, str):
        for here, there in names.items():
            value = value.replace(here, there)
    return value
