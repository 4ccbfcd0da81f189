"""Remuxing: combine video and audio into one file without encoding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from polymux._native import media
from polymux._util.text import shown
from polymux.errors import InvalidRequestError, OperationCancelledError
from polymux.media.inputs import native_source, path_bytes
from polymux.media.options import flag, native_limits
from polymux.media.results import ConversionWarning, Progress

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Sequence
    from typing import Any

    from polymux.media.options import Limits

    FilePath: TypeAlias = str | os.PathLike[str]

Container: TypeAlias = Literal["mp4", "matroska", "webm"]

#: One video file and one audio file.
_MAX_INPUTS = 2


class Cancellation(Protocol):
    """Whether the operation was canceled; `polymux.engines.base.Token` implements it."""

    @property
    def cancelled(self) -> bool:
        """Whether it was canceled. `remux` checks this twenty times a second."""


@dataclass(frozen=True, slots=True)
class RemuxedStream:
    """One stream of a remuxed file.

    Attributes:
        input: Index of the input that it comes from, from 0.
        index: Index of the stream in that input, as reported by `polymux.probe`.
        type: ``"video"`` or ``"audio"``.
        codec: FFmpeg's short name, such as ``"h264"``.
        packets: Number of packets written.
    """

    input: int
    index: int
    type: str
    codec: str
    packets: int


@dataclass(frozen=True, slots=True)
class Remuxed:
    """Description of a file that `remux` has written.

    Attributes:
        container: ``"mp4"``, ``"matroska"`` or ``"webm"``.
        content_type: MIME type, such as ``"video/mp4"``.
        extension: The usual extension with its dot: ``".mp4"``, ``".m4a"``, ``".mkv"``, ``".mka"``,
            ``".webm"`` or ``".weba"``.
        duration_s: Time from 0 to the end of the last packet, in seconds.
        bytes: Size of the file in bytes.
        streams: The streams in the order of the file, video first.
        elapsed_s: Elapsed wall-clock time in seconds.
        warnings: Damage found and timestamps corrected; usually empty.
    """

    container: str
    content_type: str
    extension: str
    duration_s: float
    bytes: int
    streams: tuple[RemuxedStream, ...]
    elapsed_s: float
    warnings: tuple[ConversionWarning, ...] = ()


def remux(
    inputs: Sequence[FilePath],
    output: FilePath,
    *,
    container: Container | None = None,
    on_progress: Callable[[Progress], object] | None = None,
    cancel: Cancellation | None = None,
    limits: Limits | None = None,
    overwrite: bool = True,
) -> Remuxed:
    """Combine the video and audio of one or two files into one file that plays while it loads.

    Streams are copied without decoding or encoding, and no program is started. The output has the
    best video of the first input with video, and the best audio of the last input with audio. Tags,
    chapters, languages, rotation and colors are copied; subtitles, data streams and images are
    omitted. Timestamps start at 0. Ctrl-C, or an exception in `on_progress`, cancels the operation
    within 200 ms and leaves no partial file.

    Args:
        inputs: One or two paths: a video file and an audio file, or one file with both. If a stream
            was downloaded in segments, join them to one file first. Playlists are rejected, and
            files that an input refers to are never opened.
        output: Path of the new file. It appears only when it is complete. It must not be a symlink,
            a directory or an input.
        container: Output container. Default: None, which selects WebM for VP8, VP9 or AV1 with Opus
            or Vorbis, else MP4 if it supports the codecs, else Matroska.
        on_progress: Called with a `polymux.Progress` about ten times a second and once at the end,
            in the calling thread. Default: None.
        cancel: Cancels the operation when its `cancelled` becomes true. It is checked twenty times
            a second. Default: None.
        limits: Limits on the inputs; `duration_s` limits the length of the output. Default:
            `polymux.Limits()`.
        overwrite: Replace an existing file at `output`. Default: True.

    Returns:
        A description of the new file.

    Raises:
        InvalidRequestError: The number of inputs is not 1 or 2, or the container is unknown.
        InputNotFoundError: An input file does not exist.
        InputUnreadableError: An input is a directory, pipe or device, permission was denied, or
            reading failed.
        UnsupportedMediaError: A container is not supported, or the output container does not
            support the codecs.
        UndecodableError: An input is broken or empty.
        NoAudioError: The inputs have neither video nor audio.
        EncryptedMediaError: An input is protected by DRM or encryption.
        LimitExceededError: An input exceeds a limit.
        OutputExistsError: `output` exists and `overwrite` is False.
        OutputRefusedError: `output` is a symlink, a directory, a device, or an input.
        OutputFailedError: Writing failed: no space, permission denied, or no such directory.
        OperationCancelledError: `cancel` was set.
        MissingDependencyError: This installation has no media support.

    Example:
        >>> from polymux.media.remux import remux
        >>> remuxed = remux(["talk.mp4"], "talk.mkv", container="matroska")
        >>> remuxed.content_type, [stream.type for stream in remuxed.streams]
        ('video/matroska', ['video', 'audio'])
    """
    if isinstance(inputs, (str, bytes)) or not 1 <= len(inputs) <= _MAX_INPUTS:
        raise InvalidRequestError(
            f"inputs: must be a list of one or two paths (got {shown(inputs)})"
        )
    sources = [native_source(path) for path in inputs]
    destination = ("path", path_bytes(output))
    checked = native_limits(limits)
    overwriting = flag("overwrite", overwrite)

    def report(progress: dict[str, Any]) -> None:
        if on_progress is not None:
            on_progress(Progress(**progress))

    def check() -> None:
        if cancel is not None and cancel.cancelled:
            raise OperationCancelledError("the operation was canceled")

    check()
    finished = media.remux(
        sources,
        destination,
        container,
        checked,
        overwriting,
        None if on_progress is None else report,
        None if cancel is None else check,
    )
    lists = {
        "streams": tuple(RemuxedStream(**one) for one in finished["streams"]),
        "warnings": tuple(ConversionWarning(**one) for one in finished["warnings"]),
    }
    return Remuxed(**finished | lists | {"extension": f".{finished['extension']}"})
