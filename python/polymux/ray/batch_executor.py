"""The work of a batch by Ray Data: asked for here, done on all machines of a cluster."""

from __future__ import annotations

import itertools
import logging
import os
import threading
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import shortened
from polymux.errors import (
    ConnectError,
    InputNotFoundError,
    InputUnreadableError,
    NoBackendError,
)
from polymux.ray import cluster
from polymux.ray.batch_queue import PIECE_BYTES, Feed, Order, Outcome, source_of, unpacked_outcome
from polymux.ray.batch_worker import BatchWorker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.batches.output_store import OutputStore
    from polymux.batches.spec import BatchSpec
    from polymux.errors import PolymuxError

#: Threads of the actor that gives the orders; a worker that waits for a piece of a file has one.
_FEED_THREADS = 64
#: What a worker may have at once: one order that it works on, one that comes meanwhile.
_IN_FLIGHT = 2
#: Items that wait for each worker, so that several of them can go on one way.
_ASKED_PER_WORKER = 8
_MAX_REQUESTED_WORKERS = 256
_LEAVE_S = 5.0
_MAX_WORDS = 600


class ResourceRequest(NamedTuple):
    """What a batch takes of a cluster.

    Attributes:
        address: Of the cluster, as `polymux.ray.cluster.check_address` has it.
        cpus: Processors that each worker is given. Default: 1.
        gpus: GPUs, or part of one, that each worker is given. Default: none.
        workers: At most so many. Default: as many as the cluster has room for.
    """

    address: str
    cpus: float = 1.0
    gpus: float = 0.0
    workers: int | None = None


class RayExecutor:
    """Has items done by the workers of a cluster. Any thread may ask.

    Where the data set breaks off, those who wait are told so as of a server that cannot be reached,
    and the next that asks begins another: the batch goes on as soon as there are machines again.
    Where nothing was done before, nothing will be, and the batch ends.

    Args:
        spec: What is to be done.
        timeout_s: Seconds that one item may take; None for the default.
        share: What it takes of which cluster.

    Raises:
        InvalidRequestError: The address is none.
        MissingDependencyError: Ray is not installed.
        ConnectError: There is no such cluster.
        NoBackendError: The cluster has no machine for such a worker.
    """

    def __init__(self, spec: BatchSpec, timeout_s: float | None, share: ResourceRequest) -> None:
        self._spec, self._timeout_s, self._share = spec, timeout_s, share
        self._ray = cluster.ray_module()
        cluster.ray_module("ray.data")
        self._is_own = cluster.connect(share.address)
        try:
            self._workers = _room(self._ray, share)
        except BaseException:
            self.close()
            raise
        self._lock = threading.Lock()
        self._keys = itertools.count()
        self._waiting: dict[int, Future[Outcome]] = {}
        self._has_done = False
        self._feed: Any = None
        self._thread: threading.Thread | None = None

    @property
    def asks(self) -> int:
        """How many items are to be asked for at once."""
        return min(_MAX_REQUESTED_WORKERS, _ASKED_PER_WORKER * self._workers)

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Has it done, and stages what has come of it.

        Raises:
            ConnectError: The cluster could not be asked, or was lost meanwhile.
            Exception: As the operation raises.
        """
        staging = os.fspath(storage.staged(item, 0)).removesuffix("-0.part")
        order = self._order(fields, staging)
        outcome = self._asked(order)
        if outcome.error is not None:
            raise outcome.error
        for number, (_, content) in enumerate(outcome.files):
            if isinstance(content, bytes):
                storage.write(item, number, content)
            else:
                Path(content).replace(storage.staged(item, number))
        return [ending for ending, _ in outcome.files]

    def _order(self, fields: Mapping[str, Any], staging: str) -> Order:
        contents, sizes = {}, {}
        for name in self._spec.files & fields.keys():
            path = Path(fields[name])
            try:
                sizes[name] = path.stat().st_size
                if sizes[name] <= PIECE_BYTES:
                    contents[name] = path.read_bytes()
            except FileNotFoundError:
                raise InputNotFoundError("there is no such file", input_name=str(path)) from None
            except OSError as error:
                raise InputUnreadableError(
                    error.strerror or "it cannot be read", input_name=str(path), errno=error.errno
                ) from error
        return Order(next(self._keys), dict(fields), contents, sizes, staging)

    def _asked(self, order: Order) -> Outcome:
        """What has become of an order."""
        answer: Future[Outcome] = Future()
        with self._lock:
            self._begin()
            self._waiting[order.key] = answer
            feed = self._feed
        try:
            self._ray.get(feed.add.remote(order))
        except Exception as error:
            if self._waiting.pop(order.key, None) is None:
                return answer.result()  # It is known why.
            raise self._lost(error) from error
        return answer.result()

    def _begin(self) -> None:
        """Starts the feed and the workers, where they are not at work."""
        if self._thread is not None and self._thread.is_alive():
            return
        try:
            here = self._ray.get_runtime_context().get_node_id()
            # It reads this machine's files, and its blocks must outlive every other machine.
            place = {"num_cpus": 0, "label_selector": {"ray.io/node-id": here}}
            actor = self._ray.remote(Feed).options(max_concurrency=_FEED_THREADS, **place)
            feed = actor.remote(self._workers)
        except Exception as error:
            raise self._lost(error) from error
        self._feed = feed
        self._thread = threading.Thread(
            target=self._listen, args=(feed, place), name="polymux-batch-cluster", daemon=True
        )
        self._thread.start()

    def _listen(self, feed: Any, place: Mapping[str, Any]) -> None:
        """The thread that takes what workers have made, to the end of the data set."""
        why: BaseException = RuntimeError("the workers have ended")
        try:
            with _context():
                tables = _data_set(
                    self._spec, self._timeout_s, feed, self._workers, self._share, place
                ).iter_batches(batch_size=None, batch_format="pyarrow", prefetch_batches=0)
                for table in tables:
                    for packed in table.column("packed").to_pylist():
                        self._take(unpacked_outcome(packed), feed)
        except BaseException as error:
            why = error
        with self._lock:
            left, self._waiting = self._waiting, {}
            self._thread = None
        for one in left.values():
            one.set_exception(self._lost(why))
        with suppress(Exception):
            self._ray.kill(feed)

    def _lost(self, error: BaseException) -> PolymuxError:
        """What those who wait are told; before anything was done, that nothing will be."""
        words = f"the Ray cluster does not do this: {type(error).__name__}: {error}"
        words = shortened(words, _MAX_WORDS)
        return ConnectError(words) if self._has_done else NoBackendError(words)

    def _take(self, outcome: Outcome, feed: Any) -> None:
        """Gives an outcome to whoever waits; of an order that was done twice, the first."""
        self._has_done = True
        answer = self._waiting.pop(outcome.key, None)
        if answer is not None:
            feed.end.remote(outcome.key)
            answer.set_result(outcome)

    def close(self) -> None:
        """Ends the workers, and leaves the cluster where this has joined it."""
        thread, feed = getattr(self, "_thread", None), getattr(self, "_feed", None)
        if thread is not None and feed is not None:
            with suppress(Exception):
                if self._waiting:  # Nobody listens any more.
                    self._ray.kill(feed)
                else:
                    feed.close.remote()
                    thread.join(_LEAVE_S)
        if self._is_own:
            with suppress(Exception):
                cluster.disconnect()


def _room(ray: Any, share: ResourceRequest) -> int:
    """How many workers there shall be.

    Raises:
        NoBackendError: There is no room for one.
    """
    there = ray.cluster_resources()
    wanted = {"CPU": share.cpus, "GPU": share.gpus}
    counts = [int(there.get(name, 0.0) / each) for name, each in wanted.items() if each > 0]
    most = min(counts, default=1)
    if most < 1:
        raise NoBackendError(
            f"the cluster has {there.get('CPU', 0):g} processors and {there.get('GPU', 0):g} GPUs, "
            f"and each worker shall have {share.cpus:g} and {share.gpus:g}"
        )
    return min(most, share.workers or most)


def _context() -> Any:
    """Ray Data's settings for the time of a batch."""
    data = cluster.ray_module("ray.data")
    for name in ("ray.data", "ray.data._internal"):
        logging.getLogger(name).setLevel(logging.ERROR)
    context = data.DataContext.get_current().copy()
    # Each block goes on as it comes; by itself it would wait until there are 128 MiB.
    context.target_max_block_size = 1
    context.enable_progress_bars = False
    context.print_on_execution_start = False
    return data.DataContext.current(context)


def _data_set(
    spec: BatchSpec, timeout_s: float | None, feed: Any, workers: int, share: ResourceRequest,
    place: Mapping[str, Any],
) -> Any:  # fmt: skip
    """The outcomes of all orders, in whatever order they come."""

    data = cluster.ray_module("ray.data")
    orders = data.read_datasource(source_of(feed), override_num_blocks=1, **place)
    return orders.map_batches(
        BatchWorker,
        batch_size=None,
        batch_format="pyarrow",
        fn_constructor_args=(spec, timeout_s, feed),
        compute=data.ActorPoolStrategy(
            min_size=1, max_size=workers, max_tasks_in_flight_per_actor=_IN_FLIGHT
        ),
        num_cpus=share.cpus,
        num_gpus=share.gpus or None,
    )
