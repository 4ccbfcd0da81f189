"""What is in a file: its description, and its audio as samples."""

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
    """Describes a file from its headers, without decoding it.

    The content decides what it is, never the name. A file without audio is not an error here.

    Args:
        source: A path, a bytes-like object, or a binary file object. A str is always a plain path:
            no scheme or pattern in it is interpreted. A bytes object is always content.
        limits: What the input may cost. Default: `polymux.Limits()`.

    Returns:
        Container, streams, duration, tags, chapters and cover.

    Raises:
        InputNotFoundError: There is no such file.
        InputUnreadableError: A folder, pipe or device, no permission, or a read failed.
        UnsupportedMediaError: Not one of the accepted containers.
        UndecodableError: An accepted container that is broken.
        LimitExceededError: A limit was passed.
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
    """Decodes the audio of any file to 32-bit floats in memory.

    The default, 16 kHz mono, is what speech models take. One minute of it is 3.8 MB.

    Args:
        source: As for `probe`.
        sample_rate: Samples per second of the result, in Hz. Default: 16,000.
        channels: 1 (mixed down) or 2. Default: 1.
        audio_stream: Index of the stream as `probe` numbers. Default: ffmpeg's choice.
        start: From this position: seconds, or ``"[HH:]MM:SS[.mmm]"``. Default: the beginning.
        end: Up to this position, in the same forms. Default: the end.
        strict: Damaged input is an error instead of being skipped and counted. Default: False.
        limits: What the input may cost. Default: `polymux.Limits()`.

    Returns:
        The samples with their rate and channel count.

    Raises:
        InvalidRequestError: An option is out of its range.
        InputNotFoundError: There is no such file.
        InputUnreadableError: A folder, pipe or device, no permission, or a read failed.
        UnsupportedMediaError: Not one of the accepted containers or codecs.
        UndecodableError: Broken, or damaged with `strict`.
        NoAudioError: No audio stream, or not the one asked for.
        EncryptedMediaError: Protected.
        LimitExceededError: A limit was passed.
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
