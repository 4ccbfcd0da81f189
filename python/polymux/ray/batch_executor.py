"""The work of a batch on a Ray cluster: given out here, done by actors on all its machines."""

from __future__ import annotations

import json
import os
import secrets
import shutil
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from queue import LifoQueue
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import display_name, shortened
from polymux.batches.executors import executor_for
from polymux.batches.output_store import OutputStore
from polymux.errors import (
    ConnectError,
    InputNotFoundError,
    InputUnreadableError,
    InternalError,
    NoBackendError,
    PolymuxError,
)
from polymux.ray import cluster
from polymux.ray.messages import PIECE_BYTES
from polymux.service.errors import engine_failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polymux.batches.spec import BatchSpec

#: Each has a thread here.
_MAX_WORKERS = 256
#: How often an item is begun: what ends its worker each time shall not end all of them.
_MAX_TRIES = 3
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


class BatchWorker:
    """An actor of Ray: what the local runner does here, it does there, by the same executor.

    It has one item at a time: `bring` for each piece of its files, then `work`.

    Args:
        spec: What is to be done.
        timeout_s: Seconds that one item may take; None for the default.
    """

    def __init__(self, spec: BatchSpec, timeout_s: float | None) -> None:
        self._spec = spec
        self._folder = Path(tempfile.mkdtemp(prefix="polymux-batch-"))
        self._storage = OutputStore(self._folder / "out", secrets.token_hex(8))
        self._executor = executor_for(spec, None, timeout_s, self._storage)

    def ready(self) -> None:
        """Comes back once a machine has had room for the worker."""

    def bring(self, field: str, name: bytes, piece: bytes, *, begins: bool) -> None:
        """Takes the next piece of a file.

        Args:
            field: The field that it is given for.
            name: Its name, without folders.
            piece: The bytes.
            begins: Whether it is the first piece.
        """
        path = self._folder / field / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb" if begins else "ab") as file:
            file.write(piece)

    def work(self, given: str) -> Iterator[tuple[int, bytes, bool] | list[str] | Exception]:
        """Does an item whose files were brought.

        Args:
            given: All its fields, as JSON, with the files as the machine of the batch has them.

        Yields:
            Number, piece, and whether it is the first, of each file that was made; at the end what
            `Executor.run` returns, or why it failed.
        """
        fields = json.loads(given)
        names: dict[str, str] = {}
        folders = []
        for field in self._spec.files & fields.keys():
            there = fields[field]
            here = self._folder / field / Path(there).name
            fields[field] = str(here)
            folders.append(here.parent)
            names |= {str(here): there, display_name(str(here)): display_name(there)}
        try:
            endings = self._executor.run(fields, 0, self._storage)
            for number in range(len(endings)):
                with self._storage.staged(0, number).open("rb") as file:
                    yield number, file.read(PIECE_BYTES), True
                    while piece := file.read(PIECE_BYTES):
                        yield number, piece, False
            yield endings
        except Exception as error:
            yield _renamed(error, names)
        finally:
            self._storage.clear(0)
            for folder in folders:
                shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        """Ends the engines, and removes what they have left."""
        self._executor.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class RayExecutor:
    """Has items done by the workers of a cluster. Any thread may ask.

    A worker that ends has a successor, and its item is tried again. Where none can be started,
    those who ask are told so as of a server that cannot be reached: the batch goes on as soon as
    there are machines again. Where nothing was done before, nothing will be, and the batch ends.

    Args:
        spec: What is to be done.
        timeout_s: Seconds that one item may take; None for the default.
        share: What it takes of which cluster.

    Raises:
        InvalidRequestError: The address is none.
        MissingDependencyError: Ray is not installed.
        ConnectError: There is no such cluster.
        NoBackendError: The cluster has no machine for such a worker.

    Attributes:
        workers: How many there may be.
    """

    def __init__(self, spec: BatchSpec, timeout_s: float | None, share: ResourceRequest) -> None:
        self._spec, self._timeout_s = spec, timeout_s
        self._ray = cluster.ray_module()
        self._is_own = cluster.connect(share.address)
        self._lock = threading.Lock()
        self._started: list[Any] = []
        #: Workers with nothing to do; those that could not start, with the reason; and None for
        #: one that has ended.
        self._free: LifoQueue[tuple[Any, BaseException | None]] = LifoQueue()
        self._has_done = False
        try:
            self.workers = _room(self._ray, share)
        except BaseException:
            self.close()
            raise
        self._kind = self._ray.remote(num_cpus=share.cpus, num_gpus=share.gpus)(BatchWorker)

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Has it done, and stages what has come of it.

        Raises:
            ConnectError: The cluster could not be asked, or was lost meanwhile.
            Exception: As the operation raises.
        """
        failures = self._ray.exceptions
        for _ in range(_MAX_TRIES):
            worker = self._worker()
            is_usable = True
            try:
                return self._asked(worker, fields, item, storage)
            except failures.RayTaskError as error:
                cause = error.cause
                raise InternalError(f"{type(cause).__name__}: {cause}") from error
            except failures.RayError as error:
                is_usable = False
                if not isinstance(error, failures.RayActorError):
                    raise self._lost(error) from error
            finally:
                if is_usable:
                    self._free.put((worker, None))
                else:
                    self._forget(worker)
        raise engine_failed(f"{_MAX_TRIES} workers of the cluster have ended at this")

    def _worker(self) -> Any:
        """A worker that has nothing to do. Another is started while all have, and there may be."""
        while True:
            with self._lock:
                if self._free.empty() and len(self._started) < self.workers:
                    self._start()
            worker, error = self._free.get()
            if error is not None:
                self._forget(worker)
                raise self._lost(error) from error
            if worker is not None:
                return worker

    def _start(self) -> None:
        try:
            worker = self._kind.remote(self._spec, self._timeout_s)
            begun = worker.ready.remote().future()
        except Exception as error:
            raise self._lost(error) from error
        self._started.append(worker)
        begun.add_done_callback(lambda told: self._free.put((worker, told.exception())))

    def _forget(self, worker: Any) -> None:
        """Gives up a worker that has ended, or cannot be reached; whoever waits may start one."""
        with self._lock:
            self._started.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker)
        self._free.put((None, None))

    def _asked(
        self, worker: Any, fields: Mapping[str, Any], item: int, storage: OutputStore
    ) -> list[str]:
        """Sends an item with its files, and stages what comes back."""
        for field in self._spec.files & fields.keys():
            name = os.path.basename(os.fsencode(fields[field]))  # noqa: PTH119 - of any bytes
            begins = True
            for piece in _pieces(fields[field]):
                self._ray.get(worker.bring.remote(field, name, piece, begins=begins))
                begins = False
        # As JSON, in which names of any bytes go: Ray's own form has UTF-8 alone.
        for answer in worker.work.remote(json.dumps(dict(fields))):
            told = self._ray.get(answer)
            if isinstance(told, tuple):
                number, piece, begins = told
                storage.write(item, number, piece, append=not begins)
                continue
            self._has_done = True
            if isinstance(told, Exception):
                raise told
            return list(told)
        raise engine_failed("a worker of the cluster gave no answer")

    def _lost(self, error: BaseException) -> PolymuxError:
        """What those who ask are told; before anything was done, that nothing will be."""
        words = f"the Ray cluster does not do this: {type(error).__name__}: {error}"
        words = shortened(words, _MAX_WORDS)
        return ConnectError(words) if self._has_done else NoBackendError(words)

    def close(self) -> None:
        """Ends the workers, and leaves the cluster where this has joined it."""
        with suppress(Exception):
            ends = [one.close.remote() for one in self._started]
            self._ray.wait(ends, num_returns=len(ends), timeout=_LEAVE_S)
        for one in self._started:
            with suppress(Exception):
                self._ray.kill(one)
        if self._is_own:
            with suppress(Exception):
                cluster.disconnect()


def _room(ray: Any, share: ResourceRequest) -> int:
    """How many workers there may be.

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
    return min(most, share.workers or most, _MAX_WORKERS)


def _pieces(path: str) -> Iterator[bytes]:
    """The content of a file, in one piece at least."""
    try:
        with Path(path).open("rb") as file:
            yield file.read(PIECE_BYTES)
            while piece := file.read(PIECE_BYTES):
                yield piece
    except FileNotFoundError:
        raise InputNotFoundError("there is no such file", input_name=path) from None
    except OSError as error:
        raise InputUnreadableError(
            error.strerror or "it cannot be read", input_name=path, errno=error.errno
        ) from error


def _renamed(error: Exception, names: dict[str, str]) -> Exception:
    """The error as the caller knows the files; what cannot travel becomes what can, in words."""
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
