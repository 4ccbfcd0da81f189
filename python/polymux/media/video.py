"""Frames into an MP4, and frames of a stranger's video: what generation of videos begins and ends.

Frames are bytes: rows from the top, three bytes a pixel (red, green, blue), nothing between rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, TypeAlias

from polymux._native import media
from polymux.errors import InvalidRequestError, OperationCancelledError
from polymux.media.inputs import native_source, path_bytes
from polymux.media.options import flag, native_limits

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from polymux.media.options import Limits
    from polymux.media.remux import Cancellation

    FilePath: TypeAlias = str | os.PathLike[str]

#: Or anything else whose memory is one piece, such as an array's ``data``.
Frame: TypeAlias = bytes | bytearray | memoryview
Codec: TypeAlias = Literal["auto", "h264", "vp9"]

#: Of the finest rate that there is, as numerator and denominator.
_MAX_NUMERATOR, _MAX_DENOMINATOR = 1_000_000, 100_000
_FRAME_PIXELS = 40_000_000


@dataclass(frozen=True, slots=True)
class WrittenVideo:
    """What `write_video` has written.

    Attributes:
        codec: ``"h264"`` or ``"vp9"``.
        encoder: FFmpeg's name of it, such as ``"libvpx-vp9"``.
        width: In pixels, even.
        height: In pixels, even.
        fps: Frames a second, exactly.
        frames: How many.
        duration_s: In seconds.
        bytes: Size of the file.
    """

    codec: str
    encoder: str
    width: int
    height: int
    fps: Fraction
    frames: int
    duration_s: float
    bytes: int


@dataclass(frozen=True, slots=True)
class ReadFrames:
    """What `read_frames` has found.

    Attributes:
        frames: How many were written; fewer than asked for where the video is shorter.
        width: Of each, in pixels.
        height: Of each, in pixels.
        fps: Frames a second, exactly.
        container: Of the input, by FFmpeg's name.
        codec: Of the input, such as ``"h264"``.
        input_width: As the input is coded, before turning, in pixels.
        input_height: The same.
        damaged_packets: That were skipped.
    """

    frames: int
    width: int
    height: int
    fps: Fraction
    container: str
    codec: str
    input_width: int
    input_height: int
    damaged_packets: int


def write_video(
    output: FilePath,
    frames: Iterable[Frame],
    *,
    width: int,
    height: int,
    fps: int | Fraction,
    codec: Codec = "auto",
    quality: int = 75,
    threads: int = 0,
    cancel: Cancellation | None = None,
    overwrite: bool = True,
) -> WrittenVideo:
    """Writes frames of one size into an MP4 that plays everywhere and while it loads.

    8-bit 4:2:0, BT.709 in limited range and tagged so; each frame is shown as long as every other.
    Odd sizes are made even: the last column or row stands there twice. Ctrl-C, and whatever
    `frames` raises, ends the work and leaves no partial file.

    Args:
        output: The new file's path. It appears only when it is complete.
        frames: Of `width` x `height` x 3 bytes each; one is asked for when the one before it is
            encoded.
        width: In pixels, 1 to 8192.
        height: In pixels, 1 to 8192.
        fps: Frames a second, 0.01 to 1000.
        codec: Default: ``"auto"``, which is H.264 where FFmpeg has an encoder for it that starts,
            else VP9, which is there always.
        quality: 1 (smallest file) to 100 (best picture). Default: 75, which looks as the frames do.
        threads: Of the encoder, at most. Default: 0, all cores.
        cancel: Looked at before each frame. Default: None.
        overwrite: Replace an existing file at `output`. Default: True.

    Returns:
        What the file is.

    Raises:
        InvalidRequestError: An argument is out of its range, there is no frame, or one has another
            size.
        EncoderError: This FFmpeg has no encoder of that codec.
        OutputExistsError: `output` exists and `overwrite` is False.
        OutputRefusedError: `output` is a symlink, a folder or a device.
        OutputFailedError: Writing failed: no space, no permission, no such folder.
        OperationCancelledError: `cancel` was set.
        MissingDependencyError: This installation has no media support.

    Example:
        >>> from polymux.media.video import write_video
        >>> grey = [bytes([level]) * (64 * 48 * 3) for level in range(0, 250, 10)]
        >>> written = write_video("grey.mp4", grey, width=64, height=48, fps=10, codec="vp9")
        >>> written.frames, written.duration_s, written.encoder
        (25, 2.5, 'libvpx-vp9')
    """
    rate = _rate(fps)
    path = path_bytes(output)
    overwriting = flag("overwrite", overwrite)
    writer = media.VideoWriter(path, width, height, rate, codec, quality, threads, overwriting)
    try:
        for frame in frames:
            _check(cancel)
            writer.write(frame)
        _check(cancel)
        finished = writer.finish()
    finally:
        # Not left to the collector: whoever keeps an exception keeps what its frames name.
        writer.close()
    return WrittenVideo(**finished | {"fps": Fraction(*finished["fps"])})


def read_frames(
    source: FilePath,
    output: FilePath,
    *,
    width: int,
    height: int,
    fps: int | Fraction,
    max_frames: int,
    cancel: Cancellation | None = None,
    limits: Limits | None = None,
    frame_pixels: int = _FRAME_PIXELS,
    overwrite: bool = True,
) -> ReadFrames:
    """Writes what is seen at 0, 1/fps, 2/fps, ... of a stranger's video, one frame after the other.

    A frame is turned as the file says that it is to be shown, made larger or smaller until it
    covers the wanted size, its proportions kept, and cut on both sides alike. MP4, Matroska, WebM,
    AVI, MPEG and GIF are opened, H.264, HEVC, VP8, VP9, AV1 (where FFmpeg has dav1d), MPEG-1,
    -2 and -4, Motion JPEG and GIF are decoded; nothing that the file refers to is.

    Args:
        source: The video.
        output: The new file's path: samples and nothing else.
        width: Of the frames, in pixels, 1 to 8192.
        height: Of the frames, in pixels, 1 to 8192.
        fps: Frames a second, 0.01 to 1000.
        max_frames: How many to write at most, 1 to 100,000.
        cancel: Looked at twenty times a second. Default: None.
        limits: What the input may cost; `duration_s` bounds how far it is read. Default:
            `polymux.Limits()`.
        frame_pixels: Most that a frame of the input may have. Default: 40 million.
        overwrite: Replace an existing file at `output`. Default: True.

    Returns:
        How many there are, and what the input was.

    Raises:
        InvalidRequestError: An argument is out of its range.
        InputNotFoundError: There is no such file.
        InputUnreadableError: A folder, pipe or device, no permission, or a read failed.
        UnsupportedMediaError: Not one of the accepted containers or codecs, or no video.
        UndecodableError: Broken or empty.
        EncryptedMediaError: Protected by DRM or encryption.
        LimitExceededError: A limit was passed.
        OutputExistsError: `output` exists and `overwrite` is False.
        OutputRefusedError: `output` is a symlink, a folder or a device.
        OutputFailedError: Writing failed.
        OperationCancelledError: `cancel` was set.
        MissingDependencyError: This installation has no media support.

    Example:
        >>> from polymux.media.video import read_frames
        >>> read = read_frames("talk.mp4", "f.rgb", width=64, height=48, fps=5, max_frames=3)
        >>> import pathlib
        >>> read.frames, pathlib.Path("f.rgb").stat().st_size
        (3, 27648)
    """
    sources = native_source(source)
    destination = ("path", path_bytes(output))
    rate, checked, overwriting = _rate(fps), native_limits(limits), flag("overwrite", overwrite)
    _check(cancel)
    found = media.read_frames(
        sources,
        destination,
        width,
        height,
        rate,
        max_frames,
        frame_pixels,
        checked,
        overwriting,
        None if cancel is None else lambda: _check(cancel),
    )
    return ReadFrames(**found | {"fps": Fraction(*found["fps"])})


def _check(cancel: Cancellation | None) -> None:
    if cancel is not None and cancel.cancelled:
        raise OperationCancelledError("cancelled while a video was worked on")


def _rate(fps: int | Fraction) -> tuple[int, int]:
    if isinstance(fps, bool) or not isinstance(fps, (int, Fraction)):
        raise InvalidRequestError(f"fps is {fps!r}; use a whole number or a fractions.Fraction")
    fraction = Fraction(fps)
    if not 0 < fraction.numerator <= _MAX_NUMERATOR or fraction.denominator > _MAX_DENOMINATOR:
        raise InvalidRequestError(
            f"fps is {fps}; it must be from 0.01 to 1000, and no finer a fraction than "
            f"{_MAX_NUMERATOR}/{_MAX_DENOMINATOR}"
        )
    return fraction.numerator, fraction.denominator
