"""Execution of a batch on a Ray cluster by actors on its machines."""

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

#: Each worker occupies one thread of this process.
_MAX_WORKERS = 256
#: Maximum attempts per item. An item that crashes its worker must not crash all of them.
_MAX_TRIES = 3
_LEAVE_S = 5.0
_MAX_WORDS = 600


class ResourceRequest(NamedTuple):
    """Resources that a batch uses on a cluster.

    Attributes:
        address: Address of the cluster, see `polymux.ray.cluster.check_address`.
        cpus: CPUs for each worker. Default: 1.
        gpus: GPUs for each worker; fractions are allowed. Default: 0.
        workers: Maximum number of workers. Default: as many as the cluster can run.
    """

    address: str
    cpus: float = 1.0
    gpus: float = 0.0
    workers: int | None = None


class BatchWorker:
    """A Ray actor that runs items with the same executor as a local batch.

    It processes one item at a time: call `bring` for each chunk of its files, then `work`.

    Args:
        spec: The batch.
        timeout_s: Time limit for one item in seconds; None for the default.
    """

    def __init__(self, spec: BatchSpec, timeout_s: float | None) -> None:
        self._spec = spec
        self._folder = Path(tempfile.mkdtemp(prefix="polymux-batch-"))
        self._storage = OutputStore(self._folder / "out", secrets.token_hex(8))
        self._executor = executor_for(spec, None, timeout_s, self._storage)

    def ready(self) -> None:
        """Return once Ray has placed the worker on a machine."""

    def bring(self, field: str, name: bytes, piece: bytes, *, begins: bool) -> None:
        """Store the next chunk of an input file.

        Args:
            field: Input field that the file belongs to.
            name: File name without directories.
            piece: The bytes.
            begins: Whether this is the first chunk of the file.
        """
        path = self._folder / field / os.fsdecode(name)
        path.parent.mkdir(exist_ok=True)
        with path.open("wb" if begins else "ab") as file:
            file.write(piece)

    def work(self, given: str) -> Iterator[tuple[int, bytes, bool] | list[str] | Exception]:
        """Run an item after its files were sent with `bring`.

        Args:
            given: All input fields as JSON. File fields have the paths of the machine that runs the
                batch.

        Yields:
            For each chunk of each output file: the number of the file, the chunk, and whether it is
                the first. Finally the result of `Executor.run`, or the error.
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
        """Stop the engines and delete the temporary directory."""
        self._executor.close()
        shutil.rmtree(self._folder, ignore_errors=True)


class RayExecutor:
    """Runs batch items on the workers of a cluster. Thread-safe.

    If a worker dies, another worker starts and the item is tried again. If no worker can start,
    `run` raises the same error as for an unreachable server, and the batch continues when the
    cluster has machines again. If no item has succeeded before, `run` raises `NoBackendError`
    instead, which ends the batch.

    Args:
        spec: The batch.
        timeout_s: Time limit for one item in seconds; None for the default.
        share: Address of the cluster, and the resources to use.

    Raises:
        InvalidRequestError: The address is invalid.
        MissingDependencyError: Ray is not installed.
        ConnectError: The cluster cannot be reached.
        NoBackendError: The cluster is too small for one worker.

    Attributes:
        workers: Maximum number of workers.
    """

    def __init__(self, spec: BatchSpec, timeout_s: float | None, share: ResourceRequest) -> None:
        self._spec, self._timeout_s = spec, timeout_s
        self._ray = cluster.ray_module()
        self._is_own = cluster.connect(share.address)
        self._lock = threading.Lock()
        self._started: list[Any] = []
        #: Idle workers as (worker, None), workers that failed to start as (worker, error), and
        #: (None, None) after a worker has ended.
        self._free: LifoQueue[tuple[Any, BaseException | None]] = LifoQueue()
        self._has_done = False
        try:
            self.workers = _room(self._ray, share)
        except BaseException:
            self.close()
            raise
        self._kind = self._ray.remote(num_cpus=share.cpus, num_gpus=share.gpus)(BatchWorker)

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Run one item and stage its output files.

        Raises:
            ConnectError: The cluster cannot be reached, or the connection was lost.
            Exception: Any error of the operation.
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
        raise engine_failed(f"{_MAX_TRIES} cluster workers crashed on this item")

    def _worker(self) -> Any:
        """Return an idle worker. Start another one if all are busy and the limit allows it."""
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
        begun.add_done_callback(lambda future: self._free.put((worker, future.exception())))

    def _forget(self, worker: Any) -> None:
        """Discard a worker that has ended or cannot be reached; waiting threads may replace it."""
        with self._lock:
            self._started.remove(worker)
        with suppress(Exception):
            self._ray.kill(worker)
        self._free.put((None, None))

    def _asked(
        self, worker: Any, fields: Mapping[str, Any], item: int, storage: OutputStore
    ) -> list[str]:
        for field in self._spec.files & fields.keys():
            name = os.path.basename(os.fsencode(fields[field]))  # noqa: PTH119 - of any bytes
            begins = True
            for piece in _pieces(fields[field]):
                self._ray.get(worker.bring.remote(field, name, piece, begins=begins))
                begins = False
        # JSON can carry file names of any bytes. Ray's own serialization supports only UTF-8.
        for answer in worker.work.remote(json.dumps(dict(fields))):
            message = self._ray.get(answer)
            if isinstance(message, tuple):
                number, piece, begins = message
                storage.write(item, number, piece, append=not begins)
                continue
            self._has_done = True
            if isinstance(message, Exception):
                raise message
            return list(message)
        raise engine_failed("a cluster worker ended without a result")

    def _lost(self, error: BaseException) -> PolymuxError:
        """Return the error for a lost cluster; before the first success it ends the batch."""
        words = f"Ray cluster failed: {type(error).__name__}: {error}"
        words = shortened(words, _MAX_WORDS)
        return ConnectError(words) if self._has_done else NoBackendError(words)

    def close(self) -> None:
        """Stop the workers. Disconnect from the cluster if this process has connected to it."""
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
    """Return how many workers the cluster can run.

    Raises:
        NoBackendError: It cannot run a single worker.
    """
    there = ray.cluster_resources()
    wanted = {"CPU": share.cpus, "GPU": share.gpus}
    counts = [int(there.get(name, 0.0) / each) for name, each in wanted.items() if each > 0]
    most = min(counts, default=1)
    if most < 1:
        raise NoBackendError(
            f"Ray cluster too small: it has {there.get('CPU', 0):g} CPUs and "
            f"{there.get('GPU', 0):g} GPUs, and each worker needs {share.cpus:g} CPUs and "
            f"{share.gpus:g} GPUs. Lower ray_cpus or ray_gpus (--ray-cpus, --ray-gpus)"
        )
    return min(most, share.workers or most, _MAX_WORKERS)


def _pieces(path: str) -> Iterator[bytes]:
    """Yield the content of a file in chunks, at least one."""
    try:
        with Path(path).open("rb") as file:
            yield file.read(PIECE_BYTES)
            while piece := file.read(PIECE_BYTES):
                yield piece
    except FileNotFoundError:
        raise InputNotFoundError("file not found", input_name=path) from None
    except OSError as error:
        raise InputUnreadableError(
            error.strerror or "read failed", input_name=path, errno=error.errno
        ) from error


def _renamed(error: Exception, names: dict[str, str]) -> Exception:
    """Replace this machine's file names with the caller's; convert foreign errors to text."""
    if not isinstance(error, PolymuxError):
        return InternalError(_with(f"{type(error).__name__}: {error}", names))
    kind, (cls, message, details), state = error.__reduce__()
    made: Exception = kind(cls, _with(message, names), _with(details, names))
    made.__dict__.update(_with(state, names))
    return made


def _with(value: Any, names: dict[str, str]) -> Any:
    """Replace the file names of one machine with those of another in a nested value."""
    if isinstance(value, dict):
        return {name: _with(one, names) for name, one in value.items()}
    if isinstance(value, str):
        for here, there in names.items():
            value = value.replace(here, there)
    return value
