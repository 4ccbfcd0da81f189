"""Video and audio put into one new file as they are: what a downloader has to do at its end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from polymux._native import media
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

#: Video in one file and audio in the other.
_MAX_INPUTS = 2


class Cancellation(Protocol):
    """Whether somebody has asked for the end of the work, as `polymux.engines.base.Token` says."""

    @property
    def cancelled(self) -> bool:
        """Whether somebody has. Looked at twenty times a second."""


@dataclass(frozen=True, slots=True)
class RemuxedStream:
    """One stream of a remuxed file.

    Attributes:
        input: Number of the input it came from, from 0.
        index: Its number there, as `polymux.probe` numbers.
        type: ``"video"`` or ``"audio"``.
        codec: FFmpeg's short name, such as ``"h264"``.
        packets: How many were written.
    """

    input: int
    index: int
    type: str
    codec: str
    packets: int


@dataclass(frozen=True, slots=True)
class Remuxed:
    """What `remux` has written.

    Attributes:
        container: ``"mp4"``, ``"matroska"`` or ``"webm"``.
        content_type: Such as ``"video/mp4"``.
        extension: The usual one with its dot: ``".mp4"``, ``".m4a"``, ``".mkv"``, ``".mka"``,
            ``".webm"`` or ``".weba"``.
        duration_s: From 0 to the end of the last packet, in seconds.
        bytes: Size of the file.
        streams: In the file's order, video first.
        elapsed_s: Wall-clock time that it took, in seconds.
        warnings: Damage that was met and time stamps that were put right; usually empty.
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
    """Writes the video and the audio of one or two files into one that plays while it loads.

    Nothing is decoded or encoded, and no program is started. Taken are the best video of the first
    input that has one and the best audio of the last input that has one; tags, chapters, language,
    rotation and colours are kept; subtitles, data and pictures are left out. Times begin at 0.
    Ctrl-C ends the work within 200 ms and leaves no partial file; so does an exception out of
    `on_progress`.

    Args:
        inputs: One or two paths: a video file and an audio file, or one file with both. Segments of
            a stream are joined to one file by whoever fetched them. Playlists are refused, and
            nothing that an input refers to is ever opened.
        output: The new file's path. It appears only when it is complete; a symlink, a folder and an
            input itself are refused.
        container: Default: None, which is WebM for VP8, VP9 and AV1 with Opus or Vorbis, else MP4
            where it can hold the codecs, else Matroska.
        on_progress: Called with a `polymux.Progress` about ten times a second and once at the end,
            in this thread. Default: None.
        cancel: Looked at twenty times a second; ends the work when its `cancelled` is true.
            Default: None.
        limits: What the inputs may cost; `duration_s` bounds the output's length. Default:
            `polymux.Limits()`.
        overwrite: Replace an existing file at `output`. Default: True.

    Returns:
        What the file is.

    Raises:
        InvalidRequestError: Not one or two inputs, or no such container.
        InputNotFoundError: There is no such file.
        InputUnreadableError: A folder, pipe or device, no permission, or a read failed.
        UnsupportedMediaError: Not one of the accepted containers, or codecs that the container
            cannot hold.
        UndecodableError: An accepted container that is broken or empty.
        NoAudioError: Neither video nor audio.
        EncryptedMediaError: Protected by DRM or encryption.
        LimitExceededError: A limit was passed.
        OutputExistsError: `output` exists and `overwrite` is False.
        OutputRefusedError: `output` is a symlink, folder, device, or an input itself.
        OutputFailedError: Writing failed: no space, no permission, no such folder.
        OperationCancelledError: `cancel` was set.
        MissingDependencyError: This installation has no media support.

    Example:
        >>> from polymux.media.remux import remux
        >>> remuxed = remux(["talk.mp4"], "talk.mkv", container="matroska")
        >>> remuxed.content_type, [stream.type for stream in remuxed.streams]
        ('video/matroska', ['video', 'audio'])
    """
    if isinstance(inputs, (str, bytes)) or not 1 <= len(inputs) <= _MAX_INPUTS:
        raise InvalidRequestError("inputs is a list of one or two paths")
    sources = [native_source(path) for path in inputs]
    destination = ("path", path_bytes(output))
    checked = native_limits(limits)
    overwriting = flag("overwrite", overwrite)

    def report(progress: dict[str, Any]) -> None:
        if on_progress is not None:
            on_progress(Progress(**progress))

    def check() -> None:
        if cancel is not None and cancel.cancelled:
            raise OperationCancelledError("cancelled while the streams were put into one file")

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
