"""Conversions on the native pool: started, watched and collected, for all faces alike."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from polymux._util.text import shown
from polymux.errors import OutputRefusedError
from polymux.media.inputs import destination_path, is_path, native_destination, native_source
from polymux.media.media_file import ConversionOutcome, MediaFile
from polymux.media.options import integer
from polymux.media.results import report_from_native
from polymux.progress import Progress, progress_from_native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from polymux._native import _media
    from polymux.media.inputs import Destination, Source

    Names: TypeAlias = Callable[[Source, int], str | os.PathLike[str]]

#: How long a cancelled conversion may take to end. The core needs a few milliseconds.
_CORE_GRACE_S = 5.0
_CALLER_GRACE_S = 0.15
_LOOK_AGAIN_S = 0.002


def start(
    source: Source,
    destination: Destination,
    options: _media.ConvertOptions,
    *,
    overwrite: bool,
    on_done: Callable[[], object] | None = None,
) -> _media.Conversion:
    """Starts one conversion; `on_done` is called on a native thread when it has ended."""
    from polymux._native.media import media

    return media.start_conversion(
        native_source(source), native_destination(destination), options, overwrite, on_done
    )


def media_file(finished: dict[str, Any], destination: Destination) -> MediaFile:
    """The result of a conversion from what the native `wait` returned."""
    return MediaFile(
        report=report_from_native(finished),
        path=destination_path(destination),
        data=finished.get("data"),
    )


@dataclass(frozen=True, slots=True)
class Running:
    """A conversion in flight."""

    source: Source
    destination: Destination
    conversion: _media.Conversion

    @property
    def calls_the_caller(self) -> bool:
        """Whether a file object is read or written, which may block for as long as it likes."""
        return hasattr(self.source, "read") or hasattr(self.destination, "write")

    @property
    def progress(self) -> Progress:
        """How far it is."""
        return progress_from_native(self.conversion.progress)


class JobGroup:
    """Many conversions, a bounded number of them in flight.

    Sources are taken one by one, as places become free. Not thread-safe: whoever owns the group
    calls it from one thread; only `notify` is called from native threads.

    Args:
        tasks: Pairs of source and destination. A destination given as an exception is the
            source's outcome: it could not be named.
        options: Native options, shared by all.
        overwrite: Replace existing files.
        concurrency: How many at a time.
        notify: Told the index of each conversion that has ended.
    """

    def __init__(
        self,
        tasks: Iterable[tuple[Source, Destination | Exception]],
        options: _media.ConvertOptions,
        *,
        overwrite: bool,
        concurrency: int,
        notify: Callable[[int], object],
    ) -> None:
        self._tasks = enumerate(tasks)
        self._options = options
        self._overwrite = overwrite
        self._concurrency = concurrency
        self._notify = notify
        self.running: dict[int, Running] = {}

    def fill(self) -> Iterator[ConversionOutcome]:
        """Starts conversions until every place is taken; yields what failed to start."""
        while len(self.running) < self._concurrency:
            task = next(self._tasks, None)
            if task is None:
                return
            index, (source, destination) = task
            if isinstance(destination, Exception):
                yield ConversionOutcome(index, source, None, destination)
                continue
            try:
                conversion = start(
                    source,
                    destination,
                    self._options,
                    overwrite=self._overwrite,
                    on_done=partial(self._notify, index),
                )
            except Exception as error:
                yield ConversionOutcome(index, source, None, error)
            else:
                self.running[index] = Running(source, destination, conversion)

    def collect(self, index: int) -> ConversionOutcome:
        """The outcome of a conversion that has ended."""
        job = self.running.pop(index)
        try:
            file = media_file(job.conversion.wait(), job.destination)
        except Exception as error:
            return ConversionOutcome(index, job.source, None, error)
        return ConversionOutcome(index, job.source, file, None)

    def cancel(self) -> None:
        """Asks everything in flight to end; `collect` still has to be called for each."""
        for job in self.running.values():
            job.conversion.cancel()

    def close(self) -> None:
        """Ends everything in flight and waits until nothing of it remains.

        What is stuck in a file object of the caller is left behind: no cancellation reaches it.
        """
        self.cancel()
        cancelled = time.monotonic()
        for index, job in list(self.running.items()):
            grace_s = _CALLER_GRACE_S if job.calls_the_caller else _CORE_GRACE_S
            while not job.conversion.done and time.monotonic() - cancelled < grace_s:
                time.sleep(_LOOK_AGAIN_S)
            if job.conversion.done:
                self.collect(index)
        self.running.clear()


def default_concurrency() -> int:
    """Twice the cores: enough that no core waits while results are handed over."""
    from polymux._native.media import media

    return 2 * media.available_cores()


def checked_concurrency(concurrency: int | None) -> int:
    """The caller's number, or the default.

    Raises:
        TypeError: Not an integer.
        InvalidRequestError: Below 1.
    """
    if concurrency is None:
        return default_concurrency()
    from polymux.errors import InvalidRequestError

    number = integer("concurrency", concurrency)
    if number < 1:
        raise InvalidRequestError(f"concurrency={number} is below 1")
    return number


def name_of(source: Source, index: int) -> str:
    """The name of the output by default: that of the input with ``.mp3``, else the index."""
    name = source if is_path(source) else getattr(source, "name", None)
    if isinstance(name, (str, bytes, os.PathLike)):
        stem = Path(os.fsdecode(name)).stem
        if stem:
            return f"{stem}.mp3"
    return f"{index}.mp3"


def named_tasks(
    sources: Iterable[Source], folder: Path | None, names: Names | None
) -> Iterator[tuple[Source, Destination | Exception]]:
    """Gives every source its destination; a name that was given before is an error.

    Renaming silently would make a second run write other files than the first.
    """
    taken: set[str] = set()
    for index, source in enumerate(sources):
        if folder is None:
            yield source, None
            continue
        try:
            path = folder / (names or name_of)(source, index)
        except Exception as error:
            yield source, error
            continue
        key = os.path.normpath(path)
        if key in taken:
            yield (
                source,
                OutputRefusedError(
                    f"cannot write {shown(str(path))}: another input of this call has the same "
                    "output name; give `names` to tell them apart"
                ),
            )
        else:
            taken.add(key)
            yield source, path


def output_folder(path: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None) -> Path | None:
    """The folder for many outputs, created with its parents when it does not exist.

    Raises:
        OutputRefusedError: There is a file of that name.
        OutputFailedError: It cannot be created.
    """
    if path is None:
        return None
    from polymux._util.text import display_name
    from polymux.errors import OutputFailedError
    from polymux.media.inputs import path_bytes

    folder = Path(os.fsdecode(path_bytes(path)))
    quoted = display_name(os.fspath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputRefusedError(
            f"cannot write into '{quoted}': it is not a folder", errno=error.errno
        ) from error
    except OSError as error:
        raise OutputFailedError(
            f"cannot create the folder '{quoted}': {error.strerror}", errno=error.errno
        ) from error
    return folder
