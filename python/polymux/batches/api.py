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
#: Each worker needs one thread here, even if a cluster does the work.
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
    """Run one operation on many inputs and store the outputs in a directory.

    A manifest (an SQLite file) records all progress. If a run ends early, by Ctrl-C, a power
    failure or ``kill -9``, no finished work is lost, and a run with `resume` skips finished items.
    Items are identified by operation, fields and content: identical inputs are processed once, and
    the result is copied. A failed input does not stop the others.

    The first Ctrl-C finishes the running items, the second one stops at once.

    Args:
        operation: A method's name, a command, a path or its last segment.
        inputs: For an operation on files: paths of files, of directories (searched recursively for
            files that the operation supports), or glob patterns such as ``"music/**/*.flac"``. For
            an operation on texts: texts, and `pathlib.Path` objects of files with one text per
            line, or with one JSON object of fields per line if the name ends with ``.jsonl``. For
            both: mappings of fields. Inputs are read during the run and not kept in memory.
        output_dir: Directory for the outputs, which are named after their inputs. It is created if
            necessary.
        workers: Number of parallel items, at most 1,000. Default: twice the CPU cores for local
            conversions, else 4. With `ray`, the maximum number of workers in the cluster; default:
            as many as fit.
        client: A `Client` or `Local` that runs the operation. Default: this computer.
        ray: Ray cluster that runs the operation instead of `client`: ``"HOST:PORT"``, ``"auto"``
            for the cluster of this computer, or ``"local"`` for a new local Ray instance. Requires
            ``polymux[ray]``. Inputs and results are sent over the network; models must be installed
            on every machine. Default: none.
        ray_cpus: CPUs per worker of the cluster. Default: 1.
        ray_gpus: GPUs per worker of the cluster; may be a fraction such as 0.25. Default: 0.
        resume: Continue with the items in the manifest. Finished items are skipped unless their
            input has changed or an output is missing or changed. Missing `fields` are those of the
            earlier run. Default: False, which rejects a manifest with items.
        retry_failed: Like `resume`, and also retry failed items. Default: False.
        fail_fast: Start no more items after a failure. Default: False.
        overwrite: Replace files in `output_dir` that are not from this batch, but never an input.
            Processing then starts after all inputs are listed. Default: False, which makes such an
            item fail.
        manifest: Path of the manifest. Default: ``polymux-batch.db`` in `output_dir`.
        report: Path of a table of all items to write at the end: ``.csv``, ``.jsonl`` or
            ``.parquet``. Default: None.
        timeout: Timeout of one item in seconds. Default: the client's timeouts.
        on_progress: Called a few times per second, in this thread. Default: None.
        on_item: Called with each item that has ended, in this thread. Default: None.
        **fields: Fields of all items, named as in the operation's method, including `model` and
            `extra_body`.

    Returns:
        The result. Failed items are reported in it and do not raise.

    Raises:
        InvalidRequestError: The operation or a field is unknown, or the manifest has items or
            belongs to another batch.
        OutputError: The manifest is in use (code ``batch_busy``), damaged, or cannot be written;
            the report cannot be written; or the disk is full. In the last case, free some space and
            call again with `resume`.
        InputNotFoundError: There is no manifest to resume and no input.
        AuthenticationError: The server rejected the API key, so no item could be processed.
        NoBackendError: No engine or upstream is configured for this operation.
        MissingDependencyError: A required package is not installed.
        ConnectError: The Ray cluster is not reachable.
        KeyboardInterrupt: Ctrl-C was pressed; the progress is recorded.
        TypeError: An argument has the wrong type.

    Example:
        >>> import polymux
        >>> report = polymux.batch("convert_to_mp3", ["song.flac", "talk.mp4"], output_dir="mp3")
        >>> report.done, report.failed, [item.outputs[0].name for item in report.items()]
        (2, 0, ['song.mp3', 'talk.mp3'])
        >>> polymux.batch("convert_to_mp3", ["song.flac"], output_dir="mp3", resume=True).kept
        2
    """
    if client is not None and not isinstance(client, Operations):
        raise TypeError(
            f"client: invalid type (got {type(client).__name__}, allowed Client or Local)"
        )
    if workers is not None and not 1 <= integer("workers", workers) <= _MAX_WORKERS:
        raise InvalidRequestError(
            f"workers: out of range (got {workers}, allowed 1 to {_MAX_WORKERS:,})"
        )
    if not os.fspath(output_dir):
        raise InvalidRequestError("output_dir: missing. Pass the output directory")
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
        raise InputNotFoundError(
            f"manifest '{name}': not found, so there is no batch to resume. Pass inputs to start "
            "one, or check output_dir and manifest",
            input_name=name,
        )
    with closing(Manifest(path, place)) as book:
        if resumes and (earlier := book.described()) is not None:
            spec = spec.completed(*earlier)
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
    """Return the resources that the batch requests from a cluster; None without `ray`.

    Raises:
        InvalidRequestError: The arguments are invalid.
    """
    if ray is None:
        if (cpus, gpus) != (1.0, 0.0):
            raise InvalidRequestError("ray_cpus and ray_gpus require ray")
        return None
    from polymux.ray.batch_executor import ResourceRequest
    from polymux.ray.cluster import check_address

    if client is not None:
        raise InvalidRequestError("client and ray cannot be used together")
    for name, value in (("ray_cpus", cpus), ("ray_gpus", gpus)):
        if not 0 <= value < math.inf:
            raise InvalidRequestError(f"{name}: out of range (got {value:g}, allowed 0 or more)")
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
