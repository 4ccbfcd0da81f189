"""Any audio or video to MP3."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from polymux._native import media
from polymux._util.text import display_name, shown
from polymux.errors import InvalidRequestError, OutputFailedError, OutputRefusedError
from polymux.media.inputs import (
    destination_path,
    is_path,
    native_destination,
    native_source,
    path_bytes,
)
from polymux.media.media_file import ConversionOutcome, MediaFile
from polymux.media.options import EncodingOptions, flag, integer, native_options
from polymux.media.results import Progress, report_from_native

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Unpack

    from polymux._native import _media
    from polymux.media.inputs import Destination, Source
    from polymux.media.options import CoverPicture, Limits, Preset, Tags, Time, Verify

    Names: TypeAlias = Callable[[Source, int], str | os.PathLike[str]]

#: How long a cancelled conversion may take to end. The core needs a few milliseconds.
_CORE_GRACE_S = 5.0
_CALLER_GRACE_S = 0.15
_LOOK_AGAIN_S = 0.002


def start_conversion(
    source: Source,
    destination: Destination,
    options: _media.ConvertOptions,
    *,
    overwrite: bool,
    on_done: Callable[[], object] | None = None,
) -> _media.Conversion:
    """Starts one conversion; `on_done` is called on a native thread when it has ended."""
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
        return Progress(**self.conversion.progress)


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
                conversion = start_conversion(
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


def checked_concurrency(concurrency: int | None) -> int:
    """The caller's number, or the default.

    Raises:
        TypeError: Not an integer.
        InvalidRequestError: Below 1.
    """
    if concurrency is None:
        # Twice the cores: enough that no core waits while results are handed over.
        return 2 * media.available_cores()
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


def convert_to_mp3(
    source: Source,
    destination: Destination = None,
    *,
    bitrate: int | str | None = None,
    vbr_quality: float | None = None,
    abr: bool = False,
    preset: Preset = "ffmpeg",
    sample_rate: int | None = None,
    channels: int | None = None,
    audio_stream: int | None = None,
    start: Time | None = None,
    end: Time | None = None,
    tags: Tags = "copy",
    cover: CoverPicture = "copy",
    id3v2_version: Literal[3, 4] = 3,
    identical_file: bool = False,
    threads: int | None = None,
    exact: bool = False,
    verify: Verify | None = None,
    strict: bool = False,
    overwrite: bool = True,
    limits: Limits | None = None,
    on_progress: Callable[[Progress], object] | None = None,
) -> MediaFile:
    """Converts any audio or video file to MP3, with the frames of the ffmpeg command line.

    The content decides what the input is, never its name. Ctrl-C ends the conversion within 200 ms
    and leaves no partial file; so does an exception out of `on_progress`.

    Args:
        source: A path, a bytes-like object, or a binary file object. A str is always a plain path:
            no scheme or pattern in it is interpreted. A bytes object is always content (for a path
            held in bytes use `os.fsdecode`).
        destination: A path, a binary file object (it need not be able to seek), or None to keep
            the MP3 in memory. A path appears only when the file is complete; a symlink, a folder
            and the input itself are refused. Default: None.
        bitrate: Constant bitrate in bit/s, or text such as ``"128k"``; 8,000 to 320,000. Default:
            none, which means variable bitrate.
        vbr_quality: LAME's variable bitrate quality, 0 (best, about 245 kbit/s) to below 10.
            Default: 0 when there is no `bitrate`.
        abr: Make `bitrate` an average instead of a constant. Default: False.
        preset: ``"ffmpeg"`` encodes exactly as the ffmpeg program; ``"best"`` sounds better at
            constant bitrates; ``"fast"`` takes about half the time. Default: ``"ffmpeg"``.
        sample_rate: Of the output in Hz, one of MPEG's nine, 8,000 to 48,000. Default: the one
            nearest to the input's.
        channels: Of the output, 1 or 2. Default: 1 for mono input, else 2.
        audio_stream: Index of the stream to convert, as `polymux.probe` numbers. Default:
            ffmpeg's choice.
        start: From this position: seconds, or ``"[HH:]MM:SS[.mmm]"``. Default: the beginning.
        end: Up to this position, in the same forms. Default: the end.
        tags: ``"copy"`` carries text tags, comments and chapters over, ``"none"`` leaves them out,
            a mapping of names (``"title"``, ``"artist"``, ...) to text replaces the text tags.
            Default: ``"copy"``.
        cover: ``"copy"`` carries the picture over, bit for bit; ``"none"`` leaves it out; the bytes
            of a JPEG or PNG picture take its place. Default: ``"copy"``.
        id3v2_version: 3 (ID3v2.3, read by everything) or 4 (ID3v2.4). Default: 3; with
            `identical_file` always 4, as ffmpeg.
        identical_file: Write the whole file as ``ffmpeg -vn`` does, tags included, and not only
            its audio frames. At average or variable bitrate this means `exact` too; at a constant
            bitrate, use ``threads=1`` with it. Default: False.
        threads: Maximum number of threads for this file; they help if it lasts over 15 s. At a
            constant bitrate the frames equal ffmpeg's in nearly all files; in a rare file they
            differ after a segment boundary. With 1 every frame is ffmpeg's. At average and
            variable bitrate the number changes no byte. Default: as many as there are cores.
        exact: At average and variable bitrate, use one encoder from beginning to end, so that every
            frame is ffmpeg's. Without it a file over 15 s is encoded in parts side by side, and
            that is so but for rare frames, mostly at LAME's upper bit limit;
            ``.report.inexact_frames`` counts those that are known. At a constant bitrate it changes
            nothing: see `threads`. Default: False.
        verify: Check the seams, where parts were joined, further than the 24 frames that always
            must agree: the encoder before a seam goes on through the whole next part, and every
            frame is compared. A seam moves behind a frame that differs, and
            ``.report.parted_frames`` counts it. ``"first-seam"`` checks one seam, ``"all"`` each,
            at the cost of that encoder's time. Default: None.
        strict: Damaged input is an error instead of a warning. Default: False.
        overwrite: Replace an existing file at `destination`. Default: True.
        limits: What the input may cost. Default: `polymux.Limits()`.
        on_progress: Called with a `polymux.Progress` about ten times a second and once at the
            end, in this thread. Default: None.

    Returns:
        The MP3, with a report in ``.report``.

    Raises:
        InvalidRequestError: An option is out of its range; every such option is named.
        InputNotFoundError: There is no such file.
        InputUnreadableError: A folder, pipe or device, no permission, or a read failed.
        UnsupportedMediaError: Not one of the accepted containers or codecs.
        UndecodableError: Broken, or damaged with `strict`.
        NoAudioError: No audio stream, or not the one asked for.
        EncryptedMediaError: Protected by DRM or encryption.
        LimitExceededError: A limit was passed.
        EncoderError: The encoder refused the settings or failed.
        OutputExistsError: The destination exists and `overwrite` is False.
        OutputRefusedError: The destination is a symlink, folder, device, or the input itself.
        OutputFailedError: Writing failed: no space, no permission, no such folder.
        MissingDependencyError: This installation has no media support.
        TypeError: An argument of the wrong type.

    Example:
        >>> import polymux
        >>> converted = polymux.convert_to_mp3("talk.mp4", "talk.mp3", bitrate="128k")
        >>> converted.path.name, converted.report.mode
        ('talk.mp3', 'cbr')
        >>> clip = polymux.convert_to_mp3("song.flac", start=0.5, end="0:01", tags={"title": "Bit"})
        >>> clip.read()[:3]
        b'ID3'
    """
    options = native_options(
        EncodingOptions(
            bitrate=bitrate,
            vbr_quality=vbr_quality,
            abr=abr,
            preset=preset,
            sample_rate=sample_rate,
            channels=channels,
            audio_stream=audio_stream,
            start=start,
            end=end,
            tags=tags,
            cover=cover,
            id3v2_version=id3v2_version,
            identical_file=identical_file,
            threads=threads,
            exact=exact,
            verify=verify,
            strict=strict,
            limits=limits,
        )
    )
    conversion = start_conversion(
        source, destination, options, overwrite=flag("overwrite", overwrite)
    )
    return media_file(conversion.wait(_progress_adapter(on_progress)), destination)


def _progress_adapter(
    on_progress: Callable[[Progress], object] | None,
) -> Callable[[dict[str, Any]], object] | None:
    if on_progress is None:
        return None
    return lambda native: on_progress(Progress(**native))


def convert_many(
    sources: Iterable[Source],
    destination_folder: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None = None,
    *,
    names: Names | None = None,
    concurrency: int | None = None,
    overwrite: bool = True,
    **options: Unpack[EncodingOptions],
) -> Iterator[ConversionOutcome]:
    """Converts many files at once, and yields each outcome as soon as it is there.

    One bad file never stops the others: its outcome carries the error. The sources are taken from
    the iterable as places become free, so it may be endless. Leaving the loop early, by ``break``,
    an exception or Ctrl-C, cancels what is in flight and leaves no partial file.

    Args:
        sources: Paths, bytes-like objects or binary file objects, as for `convert_to_mp3`.
        destination_folder: Where to write; created when it does not exist. Default: None, which
            keeps each MP3 in memory.
        names: Called with source and index for the output's name in the folder. Default: the
            input's name with ``.mp3``, or ``"<index>.mp3"`` for a source without a name. Two
            sources with the same output name: the second has `OutputRefusedError` as its outcome.
        concurrency: Conversions in flight. Default: twice the cores.
        overwrite: Replace existing files. Default: True.
        **options: `bitrate`, `vbr_quality`, `abr`, `preset`, `sample_rate`, `channels`,
            `audio_stream`, `start`, `end`, `tags`, `cover`, `id3v2_version`, `identical_file`,
            `threads`, `exact`, `verify`, `strict` and `limits`, as for `convert_to_mp3`. Whole
            files come first: a file gets more than one thread only where cores are idle.

    Returns:
        An iterator of outcomes, in the order in which they are ready.

    Raises:
        InvalidRequestError: An option is out of its range; raised before anything is converted.
        OutputRefusedError: `destination_folder` is not a folder.
        OutputFailedError: `destination_folder` cannot be created.
        MissingDependencyError: This installation has no media support.
        TypeError: An option of the wrong type, or one that does not exist.

    Example:
        >>> import polymux
        >>> outcomes = polymux.convert_many(["song.flac", "missing.wav"], "out", bitrate=128_000)
        >>> for outcome in sorted(outcomes, key=lambda outcome: outcome.index):
        ...     print(outcome.file.path.name if outcome.ok else outcome.error.code)
        song.mp3
        input_not_found
    """
    native = native_options(options)
    places = checked_concurrency(concurrency)
    overwriting = flag("overwrite", overwrite)
    tasks = named_tasks(sources, output_folder(destination_folder), names)
    ended: SimpleQueue[int] = SimpleQueue()
    group = JobGroup(tasks, native, overwrite=overwriting, concurrency=places, notify=ended.put)
    return _outcomes(group, ended)


def _outcomes(group: JobGroup, ended: SimpleQueue[int]) -> Iterator[ConversionOutcome]:
    try:
        while True:
            yield from group.fill()
            if not group.running:
                return
            yield group.collect(ended.get())
    finally:
        group.close()
