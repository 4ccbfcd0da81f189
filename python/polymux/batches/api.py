"""`polymux.batch`."""

from __future__ import annotations

import math
import os
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.deprecation import renamed_arguments
from polymux._util.text import display_name
from polymux.batches.executors import executor_for
from polymux.batches.inputs import Inputs
from polymux.batches.manifest import Manifest, recover
from polymux.batches.output_store import OutputStore
from polymux.batches.reports import check_place, check_report
from polymux.batches.results import BatchItem, BatchProgress, BatchReport
from polymux.batches.runner import Runner
from polymux.batches.spec import BatchSpec
from polymux.client.methods.synchronous import Operations
from polymux.errors import InputNotFoundError, InvalidRequestError
from polymux.media.options import integer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from polymux.batches.executors import Executor
    from polymux.ray.batch_executor import ResourceRequest

__all__ = ["batch"]

MANIFEST = "polymux-batch.db"
#: Each is a thread here, also where a machine of the cluster does the work.
_MAX_WORKERS = 1000


@renamed_arguments(out="output_dir")
def batch(
    operation: str,
    inputs: Iterable[Any] | str | bytes | os.PathLike[Any] = (),
    *,
    output_dir: str | os.PathLike[str],
    workers: int | None = None,
    client: Operations | None = None,
    ray: str | None = None,
    ray_cpus: float = 1.0,
    ray_gpus: float = 0.0,
    resume: bool = False,
    retry_failed: bool = False,
    fail_fast: bool = False,
    overwrite: bool = False,
    manifest: str | os.PathLike[str] | None = None,
    report: str | os.PathLike[str] | None = None,
    timeout: float | None = None,
    on_progress: Callable[[BatchProgress], object] | None = None,
    on_item: Callable[[BatchItem], object] | None = None,
    **fields: Any,
) -> BatchReport:
    """Runs one operation on many inputs, and stores what it makes in a folder.

    Everything is written down in a manifest, a SQLite file. A run that ends early, by Ctrl-C, a
    power cut or ``kill -9``, loses nothing that was done, and with `resume` the next one does
    nothing twice. Items are known by operation, fields and content: inputs that are alike are
    worked on once, and the result is copied. One bad input never stops the others.

    Ctrl-C lets what has begun come to its end; a second one does not.

    Args:
        operation: A method's name, a command, a path or its last segment.
        inputs: For an operation on files: paths of files, of folders (with all below them that the
            operation reads, by their names), or patterns such as ``"music/**/*.flac"``. For one on
            texts: texts, and `pathlib.Path` objects of files with one text a line, or one JSON
            object of fields a line where they are named ``.jsonl``. For both also mappings of
            fields. Read while the work goes on, and never held in memory.
        output_dir: The folder of the outputs, named as their inputs; made where there is none.
        workers: Items at a time. Default: twice the cores for conversions that are done here,
            else 4; at most 1,000. With `ray`, workers of the cluster at most; default: all that
            it has room for.
        client: A `Client` or `Local` that does it. Default: this machine.
        ray: The Ray cluster that does it, in the place of `client`: ``"HOST:PORT"``, ``"auto"`` for
            the one that this machine is part of, ``"local"`` for a Ray that is started for this
            batch. Needs ``polymux[ray]``. Inputs and results go over the network; models must lie
            on every machine. Default: none.
        ray_cpus: Processors that each worker of the cluster is given. Default: 1.
        ray_gpus: GPUs that it is given, or a part of one, such as 0.25. Default: none.
        resume: Go on with what the manifest has. Items that are done stay so, unless their input
            has changed, or an output is not there as it was made. Default: False, which refuses a
            manifest that has items.
        retry_failed: Like `resume`, and try again what has failed. Default: False.
        fail_fast: Take nothing more up once an item has failed. Default: False.
        overwrite: Replace files in `output_dir` that this batch has not made, but no input: the
            work begins when all inputs are found. Default: False, which makes such an item fail.
        manifest: Path of the manifest. Default: ``polymux-batch.db`` in `output_dir`.
        report: Write a table of all items there at the end: ``.csv``, ``.jsonl`` or ``.parquet``.
            Default: None.
        timeout: Seconds that one item may take. Default: the client's own deadlines.
        on_progress: Told a few times a second, in this thread. Default: None.
        on_item: Told of each item that has ended, in this thread. Default: None.
        **fields: Fields that all items have, named as in the operation's method; `model` and
            `extra_body` as there.

    Returns:
        What became of it. Failures of items are told there, and not raised.

    Raises:
        InvalidRequestError: No such operation or field, a manifest that has items, or one of
            another batch.
        OutputError: The manifest is in use (code ``batch_busy``), damaged, or cannot be written;
            the report has no place; or the disk is full: the same call with `resume` goes on when
            there is room.
        InputNotFoundError: There is no manifest to go on with, and no input.
        AuthenticationError: The server does not take the key: nothing could be done.
        NoBackendError: There is nothing that could do this operation.
        MissingDependencyError: A part that is needed is not installed.
        ConnectError: There is no such Ray cluster.
        KeyboardInterrupt: Ctrl-C; everything that had begun is written down.
        TypeError: An argument of the wrong type.

    Example:
        >>> import polymux
        >>> report = polymux.batch("convert_to_mp3", ["song.flac", "talk.mp4"], output_dir="mp3")
        >>> report.done, report.failed, [item.outputs[0].name for item in report.items()]
        (2, 0, ['song.mp3', 'talk.mp3'])
        >>> polymux.batch("convert_to_mp3", ["song.flac"], output_dir="mp3", resume=True).kept
        2
    """
    if client is not None and not isinstance(client, Operations):
        raise TypeError(f"client: a Client or a Local, not {type(client).__name__}")
    if workers is not None and not 1 <= integer("workers", workers) <= _MAX_WORKERS:
        raise InvalidRequestError(f"workers={workers} must be 1 to {_MAX_WORKERS:,}")
    if not os.fspath(output_dir):
        raise InvalidRequestError("output_dir is an empty name: name the folder of the outputs")
    share = _share(ray, ray_cpus, ray_gpus, workers, client)
    if isinstance(inputs, (str, bytes, os.PathLike)):
        inputs = [inputs]
    spec = BatchSpec(operation, fields)
    place = Path(os.fsdecode(output_dir)).absolute()
    target = None if report is None else Path(report)
    if target is not None:
        check_report(target)
    resumes = resume or retry_failed
    path = Path(manifest or place / MANIFEST).absolute()
    if resumes and isinstance(inputs, (list, tuple)) and not inputs and not path.exists():
        name = display_name(path.as_posix())
        raise InputNotFoundError(f"there is no manifest '{name}' to go on with", input_name=name)
    with closing(Manifest(path, place)) as book:
        own = book.begin(*spec.described, resumes=resumes)
        storage = OutputStore(place, own)
        if target is not None:
            check_place(target)
        recover(book, storage)
        if retry_failed:
            book.retry_failed()
        started = time.monotonic()
        executor = _executor(spec, client, timeout, storage, share)
        runner = Runner(
            book,
            storage,
            spec,
            executor,
            workers=executor.workers if workers is None or share is not None else workers,
            fail_fast=fail_fast,
            overwrite=overwrite,
        )
        finds = Inputs(spec, os.fsencode(place), book.is_output)
        try:
            runner.run(
                finds,
                inputs,
                checks_done=resumes,
                on_ended=lambda number: on_item and on_item(book.item(number)),
                on_progress=on_progress or (lambda _: None),
            )
            if runner.error is not None:
                raise runner.error
        finally:
            executor.close()
            if not runner.is_abandoned:
                storage.leave()
        counts = book.counts()
    made = BatchReport(
        path, counts.total, counts.done, counts.failed, counts.waiting,
        kept=runner.kept, copied=runner.copied, repeated=runner.repeated, remade=runner.remade,
        ignored=finds.ignored, unread=tuple(finds.unread), elapsed_s=time.monotonic() - started,
    )  # fmt: skip
    if target is not None:
        made.write(target)
    return made


def _share(
    ray: str | None, cpus: float, gpus: float, workers: int | None, client: Operations | None
) -> ResourceRequest | None:
    """What the batch takes of a cluster; None where it asks for none.

    Raises:
        InvalidRequestError: It makes no sense.
    """
    if ray is None:
        if (cpus, gpus) != (1.0, 0.0):
            raise InvalidRequestError("ray_cpus and ray_gpus are of a cluster: give ray")
        return None
    from polymux.ray.batch_executor import ResourceRequest
    from polymux.ray.cluster import check_address

    if client is not None:
        raise InvalidRequestError("give client or ray, not both")
    for name, value in (("ray_cpus", cpus), ("ray_gpus", gpus)):
        if not 0 <= value < math.inf:
            raise InvalidRequestError(f"{name}={value:g} must be 0 or above")
    return ResourceRequest(check_address(ray), cpus, gpus, workers)


def _executor(
    spec: BatchSpec,
    client: Operations | None,
    timeout_s: float | None,
    storage: OutputStore,
    share: ResourceRequest | None,
) -> Executor:
    if share is None:
        return executor_for(spec, client, timeout_s, storage)
    from polymux.ray.batch_executor import RayExecutor

    return RayExecutor(spec, timeout_s, share)
