"""Conversion of audio and video files to MP3."""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from polymux._native import media
from polymux._util.frozen import Record
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

#: Maximum time that a canceled conversion has to end. The native core needs a few milliseconds.
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
    """Start a conversion. A native thread calls `on_done` when it has ended."""
    return media.start_conversion(
        native_source(source), native_destination(destination), options, overwrite, on_done
    )


def media_file(finished: dict[str, Any], destination: Destination) -> MediaFile:
    """Build the `MediaFile` from the dictionary that the native `wait` returned."""
    return MediaFile(
        report=report_from_native(finished),
        path=destination_path(destination),
        data=finished.get("data"),
    )


class Running(Record):
    """A conversion that has started and was not collected yet."""

    source: Source
    destination: Destination
    conversion: _media.Conversion

    @property
    def calls_the_caller(self) -> bool:
        """Whether a Python file object is read or written; its methods may block indefinitely."""
        return hasattr(self.source, "read") or hasattr(self.destination, "write")

    @property
    def progress(self) -> Progress:
        """The current progress."""
        return Progress(**self.conversion.progress)


class JobGroup:
    """Many conversions, of which a limited number run at the same time.

    The group reads the next task only when a conversion has ended. The group is not thread-safe:
    use it from one thread. Native threads call only `notify`.

    Args:
        tasks: Pairs of source and destination. If naming an output failed, its destination is the
            exception, which becomes the outcome.
        options: Native options for all conversions.
        overwrite: Replace existing files.
        concurrency: Maximum number of conversions at the same time.
        notify: Called with the index of each conversion that has ended, on a native thread.
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
        """Start conversions up to the limit, and yield the outcomes of those that did not start."""
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
        """Return the outcome of a conversion that has ended."""
        job = self.running.pop(index)
        try:
            file = media_file(job.conversion.wait(), job.destination)
        except Exception as error:
            return ConversionOutcome(index, job.source, None, error)
        return ConversionOutcome(index, job.source, file, None)

    def cancel(self) -> None:
        """Cancel all running conversions. Call `collect` for each of them afterwards."""
        for job in self.running.values():
            job.conversion.cancel()

    def close(self) -> None:
        """Cancel all running conversions and wait for them to end.

        A conversion that is blocked in a caller's file object cannot be canceled. It is left
        running after a short wait.
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
    """Validate `concurrency`; None means the default.

    Raises:
        TypeError: The value is not an integer.
        InvalidRequestError: The value is below 1.
    """
    if concurrency is None:
        # Two conversions per core keep every core busy while results are collected.
        return 2 * media.available_cores()
    number = integer("concurrency", concurrency)
    if number < 1:
        raise InvalidRequestError(f"concurrency: out of range (got {number}, allowed 1 or more)")
    return number


def name_of(source: Source, index: int) -> str:
    """Return the default output name: the input's stem with ``.mp3``, or ``<index>.mp3``."""
    name = source if is_path(source) else getattr(source, "name", None)
    if isinstance(name, (str, bytes, os.PathLike)):
        stem = Path(os.fsdecode(name)).stem
        if stem:
            return f"{stem}.mp3"
    return f"{index}.mp3"


def named_tasks(
    sources: Iterable[Source], folder: Path | None, names: Names | None
) -> Iterator[tuple[Source, Destination | Exception]]:
    """Pair every source with its destination; a duplicate output name is an error.

    Duplicates are not renamed: a second run with other inputs would then write other file names.
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
                    f"cannot write {shown(str(path))}: two inputs have the same "
                    "output name. Use `names` to give each output a different name"
                ),
            )
        else:
            taken.add(key)
            yield source, path


def output_folder(path: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None) -> Path | None:
    """Create the output directory, with its parents, unless it exists.

    Raises:
        OutputRefusedError: A file with this name exists.
        OutputFailedError: The directory cannot be created.
    """
    if path is None:
        return None

    folder = Path(os.fsdecode(path_bytes(path)))
    quoted = display_name(os.fspath(folder))
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError as error:
        raise OutputRefusedError(
            f"cannot write into '{quoted}': not a directory", errno=error.errno
        ) from error
    except OSError as error:
        raise OutputFailedError(
            f"cannot create directory '{quoted}': {error.strerror}", errno=error.errno
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
    """Convert an audio or video file to MP3.

    The audio frames are the same as those of the ffmpeg command line program. The type of the input
    is detected from its content, not from its name. Ctrl-C, or an exception in `on_progress`,
    cancels the conversion within 200 ms and leaves no partial file.

    Args:
        source: A path, a bytes-like object, or a binary file object. A str is always a path: URLs
            and patterns are not interpreted. A bytes object is always file content; decode a path
            in bytes with `os.fsdecode`.
        destination: A path, a binary file object (seeking is not needed), or None to return the MP3
            in memory. The file appears at its path only when it is complete. The path must not be a
            symlink, a directory or the input itself. Default: None.
        bitrate: Constant bitrate in bit/s, or text such as ``"128k"``; 8,000 to 320,000. Default:
            None, which uses a variable bitrate.
        vbr_quality: LAME's variable bitrate quality, at least 0 (best, about 245 kbit/s) and below
            10. Default: 0 if `bitrate` is None.
        abr: Use `bitrate` as an average instead of a constant. Default: False.
        preset: ``"ffmpeg"`` encodes exactly like the ffmpeg program; ``"best"`` sounds better at
            constant bitrates; ``"fast"`` needs about half the time. Default: ``"ffmpeg"``.
        sample_rate: Sample rate of the output in Hz: one of MPEG's nine rates from 8,000 to 48,000.
            Default: the rate nearest to the input's.
        channels: Channels of the output, 1 or 2. Default: 1 for mono input, else 2.
        audio_stream: Index of the stream to convert, as reported by `polymux.probe`. Default:
            ffmpeg's choice.
        start: Start position in seconds, or as ``"[HH:]MM:SS[.mmm]"``. Default: the beginning.
        end: End position in the same formats. Default: the end.
        tags: ``"copy"`` copies text tags, comments and chapters; ``"none"`` omits them; a mapping
            of names (``"title"``, ``"artist"``, ...) to text replaces the text tags. Default:
            ``"copy"``.
        cover: ``"copy"`` copies the cover image unchanged; ``"none"`` omits it; the bytes of a JPEG
            or PNG image replace it. Default: ``"copy"``.
        id3v2_version: 3 (ID3v2.3, supported by all players) or 4 (ID3v2.4). Default: 3; with
            `identical_file` always 4, as in ffmpeg.
        identical_file: Write the complete file as ``ffmpeg -vn`` does, including tags, instead of
            identical audio frames only. At average or variable bitrate this implies `exact`.
            Default: False.
        threads: Maximum number of threads for this file. More than one helps only if the audio is
            longer than 15 s. The number of threads does not change the output. Default: the number
            of cores.
        exact: At average and variable bitrate, encode the file with one encoder, which makes every
            frame equal to ffmpeg's. Without it, segments of files longer than 15 s are encoded in
            parallel. A few frames may then differ, mostly at LAME's maximum bitrate:
            ``.report.identical`` is False then, and ``.report.inexact_frames`` counts them. It has
            no effect at a constant bitrate, where all frames are always equal. Default: False.
        verify: Compare every audio frame with a reference; if one differs, the conversion fails.
            ``"sequential"`` is one encoder that encodes the whole file, ``"ffmpeg"`` the ffmpeg
            program in PATH, which reads the file `source`. Both cost the time of a conversion with
            one thread. ``.report.reference`` names the reference. Default: None.
        strict: Fail on damaged input instead of adding a warning. Default: False.
        overwrite: Replace an existing file at `destination`. Default: True.
        limits: Limits on the input. Default: `polymux.Limits()`.
        on_progress: Called with a `polymux.Progress` about ten times a second and once at the end,
            in the calling thread. Default: None.

    Returns:
        The MP3, with a report in ``.report``.

    Raises:
        InvalidRequestError: Options are out of range; the message names all of them.
        InputNotFoundError: The input file does not exist.
        InputUnreadableError: The input is a directory, pipe or device, permission was denied, or
            reading failed.
        UnsupportedMediaError: The container or codec is not supported.
        UndecodableError: The input is broken, or it is damaged and `strict` is set.
        NoAudioError: The input has no audio, or `audio_stream` does not exist.
        EncryptedMediaError: The input is protected by DRM or encryption.
        LimitExceededError: The input exceeds a limit.
        EncoderError: The encoder rejected the settings or failed, or `verify` found a difference.
        OutputExistsError: The destination exists and `overwrite` is False.
        OutputRefusedError: The destination is a symlink, a directory, a device, or the input
            itself.
        OutputFailedError: Writing failed: no space, permission denied, or no such directory.
        MissingDependencyError: This installation has no media support, or `verify` needs ffmpeg,
            which is not installed.
        TypeError: An argument has the wrong type.

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
    """Convert many files at once, and yield each outcome once it is ready.

    A failed file does not stop the other files: its outcome has the error. `sources` is read only
    as conversions end, so it may be endless. If you leave the loop early (``break``, an exception
    or Ctrl-C), the running conversions are canceled and leave no partial files.

    Args:
        sources: Paths, bytes-like objects or binary file objects, as for `convert_to_mp3`.
        destination_folder: Output directory; created if it does not exist. Default: None, which
            returns each MP3 in memory.
        names: Function that returns the output's name in the directory. It is called with the
            source and its index. Default: the input's name with ``.mp3``, or ``"<index>.mp3"`` for
            a source without a name. If two sources have the same output name, the second outcome
            has an `OutputRefusedError`.
        concurrency: Maximum number of conversions at the same time. Default: twice the number of
            cores.
        overwrite: Replace existing files. Default: True.
        **options: `bitrate`, `vbr_quality`, `abr`, `preset`, `sample_rate`, `channels`,
            `audio_stream`, `start`, `end`, `tags`, `cover`, `id3v2_version`, `identical_file`,
            `threads`, `exact`, `verify`, `strict` and `limits`, as for `convert_to_mp3`. A file
            gets more than one thread only while cores are idle.

    Returns:
        An iterator of outcomes in the order of completion.

    Raises:
        InvalidRequestError: An option is out of range. Raised before any conversion starts.
        OutputRefusedError: `destination_folder` is not a directory.
        OutputFailedError: `destination_folder` cannot be created.
        MissingDependencyError: This installation has no media support.
        TypeError: An option is unknown or has the wrong type.

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
