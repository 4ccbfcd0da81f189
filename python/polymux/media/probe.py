"""Probing of media files, and decoding of their audio."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux._native import media
from polymux.media.inputs import native_source
from polymux.media.options import flag, integer, native_limits, optional_integer, seconds
from polymux.media.results import media_info_from_native, pcm_audio_from_native

if TYPE_CHECKING:
    from polymux.media.inputs import Source
    from polymux.media.options import Limits, Time
    from polymux.media.results import MediaInfo, PcmAudio


def probe(source: Source, *, limits: Limits | None = None) -> MediaInfo:
    """Describe a media file from its headers, without decoding it.

    The type is detected from the content, not from the name. A file without audio is not an error.

    Args:
        source: A path, a bytes-like object, or a binary file object. A str is always a path: URLs
            and patterns are not interpreted. A bytes object is always file content.
        limits: Limits on the input. Default: `polymux.Limits()`.

    Returns:
        Container, streams, duration, tags, chapters and cover.

    Raises:
        InputNotFoundError: The input file does not exist.
        InputUnreadableError: The input is a directory, pipe or device, permission was denied, or
            reading failed.
        UnsupportedMediaError: The container is not supported.
        UndecodableError: The container is supported, but broken.
        LimitExceededError: The input exceeds a limit.
        MissingDependencyError: This installation has no media support.

    Example:
        >>> import polymux
        >>> info = polymux.probe("song.flac")
        >>> info.container, info.audio_streams[0].sample_rate_hz
        ('flac', 44100)
    """
    native = native_source(source)
    checked = native_limits(limits)
    return media_info_from_native(media.probe(native, checked))


def decode_audio(
    source: Source,
    *,
    sample_rate: int = 16_000,
    channels: int = 1,
    audio_stream: int | None = None,
    start: Time | None = None,
    end: Time | None = None,
    strict: bool = False,
    limits: Limits | None = None,
) -> PcmAudio:
    """Decode the audio of a media file to 32-bit floats in memory.

    The default, 16 kHz mono, is the format that speech models need. One minute of it has 3.8 MB.

    Args:
        source: A path, bytes or binary file object, as for `probe`.
        sample_rate: Sample rate of the result in Hz. Default: 16,000.
        channels: 1 (mixed down) or 2. Default: 1.
        audio_stream: Index of the stream, as reported by `probe`. Default: ffmpeg's choice.
        start: Start position in seconds, or as ``"[HH:]MM:SS[.mmm]"``. Default: the beginning.
        end: End position in the same formats. Default: the end.
        strict: Fail on damaged input instead of skipping and counting damaged packets. Default:
            False.
        limits: Limits on the input. Default: `polymux.Limits()`.

    Returns:
        The samples with their sample rate and number of channels.

    Raises:
        InvalidRequestError: An option is out of range.
        InputNotFoundError: The input file does not exist.
        InputUnreadableError: The input is a directory, pipe or device, permission was denied, or
            reading failed.
        UnsupportedMediaError: The container or codec is not supported.
        UndecodableError: The input is broken, or it is damaged and `strict` is set.
        NoAudioError: The input has no audio, or `audio_stream` does not exist.
        EncryptedMediaError: The input is protected by DRM or encryption.
        LimitExceededError: The input exceeds a limit.
        MissingDependencyError: This installation has no media support.

    Example:
        >>> import polymux
        >>> audio = polymux.decode_audio("talk.mp4", start=0.5, end="0:01")
        >>> audio.duration_s, audio.samples.format
        (0.5, 'f')
    """
    native = native_source(source)
    settings = (
        integer("sample_rate", sample_rate),
        integer("channels", channels),
        optional_integer("audio_stream", audio_stream),
        seconds("start", start),
        seconds("end", end),
        flag("strict", strict),
        native_limits(limits),
    )
    return pcm_audio_from_native(media.decode_pcm(native, *settings))
