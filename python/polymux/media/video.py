"""Writing of frames to MP4 files, and reading of frames from untrusted videos.

A frame is bytes: rows from the top, 3 bytes per pixel (red, green, blue), without padding.
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

#: Or any other contiguous buffer, such as an array's ``data``.
Frame: TypeAlias = bytes | bytearray | memoryview
Codec: TypeAlias = Literal["auto", "h264", "vp9"]

#: Limits on the numerator and denominator of a frame rate.
_MAX_NUMERATOR, _MAX_DENOMINATOR = 1_000_000, 100_000
_FRAME_PIXELS = 40_000_000


@dataclass(frozen=True, slots=True)
class WrittenVideo:
    """Description of a file that `write_video` has written.

    Attributes:
        codec: ``"h264"`` or ``"vp9"``.
        encoder: FFmpeg's name of the encoder, such as ``"libvpx-vp9"``.
        width: Width in pixels, even.
        height: Height in pixels, even.
        fps: Exact frames per second.
        frames: Number of frames.
        duration_s: Duration in seconds.
        bytes: Size of the file in bytes.
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
    """Description of the frames that `read_frames` has written.

    Attributes:
        frames: Number of frames written; fewer than `max_frames` if the video is shorter.
        width: Width of each frame in pixels.
        height: Height of each frame in pixels.
        fps: Exact frames per second.
        container: FFmpeg's name of the input container.
        codec: Codec of the input, such as ``"h264"``.
        input_width: Encoded width of the input in pixels, before rotation.
        input_height: Encoded height of the input in pixels, before rotation.
        damaged_packets: Damaged packets that were skipped.
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
    """Write frames of one size to an MP4 file, which plays while it loads.

    The video is 8-bit 4:2:0 in BT.709, limited range, and tagged accordingly. All frames have the
    same duration. Odd sizes are made even by repeating the last column or row. VP9 in MP4 plays in
    current browsers, VLC and mpv, but not on every TV. Ctrl-C, or an exception in `frames`, stops
    the operation and leaves no partial file.

    Args:
        output: Path of the new file. It appears only when it is complete.
        frames: Frames of `width` x `height` x 3 bytes each. The next frame is requested after the
            previous frame was encoded.
        width: Width in pixels, 1 to 8192.
        height: Height in pixels, 1 to 8192.
        fps: Frames per second, 0.01 to 1000.
        codec: Default: ``"auto"``, which selects H.264 if FFmpeg has a working encoder for it, else
            VP9, which is always available.
        quality: 1 (smallest file) to 100 (best quality). Default: 75, without visible differences.
        threads: Maximum number of encoder threads. Default: 0, the number of cores.
        cancel: Cancels the operation; checked before each frame. Default: None.
        overwrite: Replace an existing file at `output`. Default: True.

    Returns:
        A description of the new file.

    Raises:
        InvalidRequestError: An argument is out of range, there are no frames, or a frame has the
            wrong size.
        EncoderError: This FFmpeg has no encoder for the codec.
        OutputExistsError: `output` exists and `overwrite` is False.
        OutputRefusedError: `output` is a symlink, a directory or a device.
        OutputFailedError: Writing failed: no space, permission denied, or no such directory.
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
        # Close explicitly: a stored exception would keep the writer alive through its traceback.
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
    """Write the frames of an untrusted video at 0, 1/fps, 2/fps, ... seconds to a file.

    Each frame is rotated as the file specifies, scaled to cover the requested size, and cropped
    equally on both sides. Supported containers: MP4, Matroska, WebM, AVI, MPEG and GIF. Supported
    codecs: H.264, HEVC, VP8, VP9, AV1 (if FFmpeg has dav1d), MPEG-1, -2 and -4, Motion JPEG and
    GIF. Files that the video refers to are never opened.

    Args:
        source: Path of the video.
        output: Path of the new file, which has only the raw frames.
        width: Width of the frames in pixels, 1 to 8192.
        height: Height of the frames in pixels, 1 to 8192.
        fps: Frames per second, 0.01 to 1000.
        max_frames: Maximum number of frames to write, 1 to 100,000.
        cancel: Cancels the operation; checked twenty times a second. Default: None.
        limits: Limits on the input; `duration_s` limits how much of it is read. Default:
            `polymux.Limits()`.
        frame_pixels: Maximum pixels of a frame of the input. Default: 40 million.
        overwrite: Replace an existing file at `output`. Default: True.

    Returns:
        The number of frames, and a description of the input.

    Raises:
        InvalidRequestError: An argument is out of range.
        InputNotFoundError: The input file does not exist.
        InputUnreadableError: The input is a directory, pipe or device, permission was denied, or
            reading failed.
        UnsupportedMediaError: The container or codec is not supported, or the input has no video.
        UndecodableError: The input is broken or empty.
        EncryptedMediaError: The input is protected by DRM or encryption.
        LimitExceededError: The input exceeds a limit.
        OutputExistsError: `output` exists and `overwrite` is False.
        OutputRefusedError: `output` is a symlink, a directory or a device.
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
        raise OperationCancelledError("the operation was canceled")


def _rate(fps: int | Fraction) -> tuple[int, int]:
    if isinstance(fps, bool) or not isinstance(fps, (int, Fraction)):
        raise InvalidRequestError(f"fps: must be an integer or a fractions.Fraction (got {fps!r})")
    fraction = Fraction(fps)
    if not 0 < fraction.numerator <= _MAX_NUMERATOR or fraction.denominator > _MAX_DENOMINATOR:
        raise InvalidRequestError(
            f"fps={fps}: out of range (allowed: 0.01 to 1000, as a fraction with a numerator of at "
            f"most {_MAX_NUMERATOR} and a denominator of at most {_MAX_DENOMINATOR})"
        )
    return fraction.numerator, fraction.denominator
