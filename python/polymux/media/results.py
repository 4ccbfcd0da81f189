"""Immutable results of conversions, probing and decoding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux._util.frozen import Record
from polymux._util.html_repr import (
    MAX_EMBEDDED_BYTES,
    HtmlReprMixin,
    embedded,
    escaped,
    image,
    table,
)
from polymux._util.text import clock, short_repr, size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def _plain(value: object) -> Any:
    """Convert the value to dictionaries, lists and scalars that `json.dumps` supports."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if to_dict is not None else value


class _Described(Record, HtmlReprMixin):
    """Base class of results that can be converted to JSON and shown in notebooks."""

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values. A cover's image bytes are omitted."""
        return {name: _plain(value) for name, value in self._values().items()}


class ConversionWarning(_Described):
    """A warning of a conversion that succeeded.

    Attributes:
        code: Stable code, such as ``"damaged_packet"`` or ``"bitrate_adjusted"``.
        message: Readable description.
        position_s: Position in the input in seconds; None if the warning concerns the whole file.
        count: Number of occurrences combined into this warning.
    """

    code: str
    message: str
    position_s: float | None = None
    count: int = 1


class ConversionReport(_Described):
    """Statistics and warnings of one conversion.

    Attributes:
        duration_s: Encoded audio in seconds.
        samples: Samples per channel, at the sample rate of the output.
        frames: MP3 audio frames, without the Xing/Info frame at the start.
        bytes: Size of the output in bytes, tags included.
        audio_bytes: Size of the audio frames alone.
        sample_rate_hz: Sample rate of the output.
        channels: 1 or 2.
        mode: ``"cbr"``, ``"abr"`` or ``"vbr"``.
        container: FFmpeg's name of the input container, such as ``"flac"``.
        codec: FFmpeg's name of the decoded codec, such as ``"aac"``.
        audio_stream: Index of the converted stream, as reported by `polymux.probe`.
        encoder: Name and version, such as ``"LAME 3.100"``.
        elapsed_s: Wall-clock time of the conversion in seconds.
        damaged_packets: Damaged packets of the input that were skipped.
        seams: Boundaries between segments that were encoded in parallel.
        absorbed_segments: Segments whose parallel encoding was discarded. Their encoder never had
            the same state as the previous segment's encoder, which therefore encoded these segments
            too.
        bumped_frames: Frames that were made larger than LAME makes them, to leave room for a later
            frame. Their sound does not change.
        repairs: Encoders started to encode frames again. The content of these frames depends on the
            fill level of the bit reservoir, which the encoder of a single segment cannot determine.
        inexact_frames: Frames that depend on the bit reservoir and may differ from those of a
            single encoder, and therefore from ffmpeg's.
        identical: Whether it is proven that all audio frames are those of ffmpeg with the same
            libavcodec and LAME. False if frames are inexact, packets are damaged, samples are not
            numbers, or the audio format changes within the input.
        reference: Name of the reference whose audio frames are all equal, such as
            ``"ffmpeg 5.1.6"``; empty without `verify`.
        warnings: Adjusted settings and skipped data; empty for a clean conversion.

    Example:
        >>> import polymux
        >>> report = polymux.convert_to_mp3("talk.mp4", bitrate=128_000).report
        >>> report.mode, report.codec, report.warnings
        ('cbr', 'aac', ())
    """

    duration_s: float
    samples: int
    frames: int
    bytes: int
    audio_bytes: int
    sample_rate_hz: int
    channels: int
    mode: str
    container: str
    codec: str
    audio_stream: int
    encoder: str
    elapsed_s: float
    damaged_packets: int = 0
    seams: int = 0
    absorbed_segments: int = 0
    bumped_frames: int = 0
    repairs: int = 0
    inexact_frames: int = 0
    identical: bool = True
    reference: str = ""
    warnings: tuple[ConversionWarning, ...] = ()

    def __repr__(self) -> str:
        names = ("sample_rate_hz", "channels", "codec", "elapsed_s", "warnings")
        return short_repr(self, *names, duration_s=self.duration_s, bytes=self.bytes)

    @property
    def speed(self) -> float:
        """Seconds of audio per second of conversion; 0.0 if it is not measurable."""
        return self.duration_s / self.elapsed_s if self.elapsed_s > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """Return all fields and `speed` as JSON-compatible values."""
        return super().to_dict() | {"speed": self.speed}

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        rate = f"{self.sample_rate_hz / 1000:g} kHz, {self.channels} ch"
        rows = [
            ("from", f"{escaped(self.codec)} in {escaped(self.container)}"),
            ("to", f"MP3 {escaped(self.mode.upper())}, {rate}, {escaped(self.encoder)}"),
            ("length", f"{clock(self.duration_s)}, {self.frames} frames"),
            ("size", size(self.bytes)),
            ("took", f"{self.elapsed_s:.2f} s, {self.speed:.0f} times real time"),
        ]
        if self.reference:
            rows.append(("verified", f"all frames equal those of {escaped(self.reference)}"))
        for one in self.warnings:
            where = "" if one.position_s is None else f" at {clock(one.position_s)}"
            times = "" if one.count == 1 else f" ({one.count} times)"
            rows.append((f"<b>{escaped(one.code)}</b>", f"{escaped(one.message)}{where}{times}"))
        return table(rows)


class StreamInfo(_Described):
    """One stream of a container, as described by its headers.

    Attributes:
        index: Number among all streams, from 0. Use it for `audio_stream`.
        type: ``"audio"``, ``"video"``, ``"subtitle"``, ``"data"`` or ``"attachment"``.
        codec: FFmpeg's short name, such as ``"aac"``, or ``"unknown"``.
        duration_s: Duration in seconds; None if not stated.
        bitrate_bps: Bits per second; None if not stated.
        sample_rate_hz: Sample rate of audio, else 0.
        channels: Channels of audio, else 0.
        channel_layout: Channel layout of audio, such as ``"stereo"`` or ``"5.1(side)"``, else
            empty.
        sample_format: Such as ``"s16"`` or ``"fltp"``; empty if not known without decoding.
        bits_per_sample: Bits per sample of the source material if stated, else 0.
        width: Width of video and images in pixels, else 0.
        height: Height of video and images in pixels, else 0.
        language: ISO 639 code, or empty.
        is_default: Whether the container marks it as the default stream of its type.
        is_cover: Whether it is an attached image rather than moving video.
        encrypted: Whether it is encrypted. Encrypted streams cannot be converted.
        tags: Tags of the stream.
    """

    index: int
    type: str
    codec: str
    duration_s: float | None
    bitrate_bps: int | None
    sample_rate_hz: int
    channels: int
    channel_layout: str
    sample_format: str
    bits_per_sample: int
    width: int
    height: int
    language: str
    is_default: bool
    is_cover: bool
    encrypted: bool
    tags: dict[str, str]

    def __repr__(self) -> str:
        names = ("duration_s", "sample_rate_hz", "channels", "width", "height", "language")
        return short_repr(self, *names, index=self.index, type=self.type, codec=self.codec)


class Chapter(_Described):
    """One chapter of a media file.

    Attributes:
        start_ms: Start in milliseconds.
        end_ms: End in milliseconds.
        tags: Tags of the chapter; usually only ``"title"``.
    """

    start_ms: int
    end_ms: int
    tags: dict[str, str]

    @property
    def title(self) -> str:
        """The chapter's title, or an empty string."""
        return self.tags.get("title", "")


class Cover(Record):
    """An embedded cover image with its unchanged bytes.

    Attributes:
        mime_type: Such as ``"image/jpeg"``.
        description: Description from the file, often empty.
        picture_type: ID3v2 APIC type (ID3v2.3, section 4.15); 3 is the front cover.
        data: The image file's bytes.
    """

    mime_type: str
    description: str
    picture_type: int
    data: bytes

    def __repr__(self) -> str:
        return short_repr(self, "mime_type", "description", "picture_type", size=len(self.data))

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as JSON-compatible values, with ``size_bytes`` instead of the bytes."""
        plain = self._values()
        del plain["data"]
        return plain | {"size_bytes": len(self.data)}

    def _repr_html_(self) -> str:
        """Return the image for notebooks."""
        return image(self.mime_type, self.data)


class MediaInfo(_Described):
    """Description of a media file, read from its headers.

    Attributes:
        container: FFmpeg's demuxer name, such as ``"mov,mp4,m4a,3gp,3g2,mj2"``.
        container_long_name: Readable name, such as ``"QuickTime / MOV"``.
        duration_s: Duration in seconds; None if not stated.
        start_s: Time of the first sample or image in seconds; None if not stated.
        bitrate_bps: Bits per second of the whole file; None if not known.
        size_bytes: Size of the input in bytes; None if unknown, for example for pipes.
        streams: All streams in the order of the container.
        best_audio_stream: Index of the stream that a conversion uses by default, selected by
            ffmpeg's rule; None if the file has no audio.
        tags: Tags of the container.
        chapters: Chapters in the order of the file.
        cover: The first attached image, or None.

    Example:
        >>> import polymux
        >>> info = polymux.probe("talk.mp4")
        >>> [stream.type for stream in info.streams], info.best_audio_stream
        (['video', 'audio'], 1)
    """

    container: str
    container_long_name: str
    duration_s: float | None
    start_s: float | None
    bitrate_bps: int | None
    size_bytes: int | None
    streams: tuple[StreamInfo, ...]
    best_audio_stream: int | None
    tags: dict[str, str]
    chapters: tuple[Chapter, ...]
    cover: Cover | None

    def __repr__(self) -> str:
        streams = tuple(f"{one.type} {one.codec}" for one in self.streams)
        facts = {"container": self.container, "streams": streams}
        return short_repr(self, "size_bytes", duration_s=self.duration_s, **facts)

    @property
    def audio_streams(self) -> tuple[StreamInfo, ...]:
        """The streams of type ``"audio"``."""
        return tuple(stream for stream in self.streams if stream.type == "audio")

    def _repr_html_(self) -> str:
        """Return a table for notebooks."""
        facts = [escaped(self.container_long_name)]
        if self.duration_s is not None:
            facts.append(clock(self.duration_s))
        if self.size_bytes is not None:
            facts.append(size(self.size_bytes))
        if self.bitrate_bps is not None:
            facts.append(f"{self.bitrate_bps / 1000:.0f} kbit/s")
        rows = [
            (*map(escaped, (one.index, one.type, one.codec)), _form(one), escaped(one.language))
            for one in self.streams
        ]
        streams = table(rows, ("stream", "type", "codec", "form", "language"))
        tags = table([(escaped(name), escaped(text)) for name, text in self.tags.items()])
        picture = "" if self.cover is None else image(self.cover.mime_type, self.cover.data)
        return f"<div><b>{', '.join(facts)}</b>{streams}{tags if self.tags else ''}{picture}</div>"


class PcmAudio(Record):
    """Decoded audio: 32-bit floats, interleaved, nominally in [-1, 1].

    Attributes:
        samples: A memoryview of format ``"f"`` with `channels` values per sample position.
        sample_rate_hz: Samples per second and channel.
        channels: 1 or 2.
        damaged_packets: Damaged packets of the input that were skipped.

    Example:
        >>> import polymux
        >>> audio = polymux.decode_audio("song.flac", sample_rate=16_000)
        >>> audio.samples.format, audio.channels
        ('f', 1)
    """

    samples: memoryview[float]
    sample_rate_hz: int
    channels: int
    damaged_packets: int = 0

    def __repr__(self) -> str:
        names = ("sample_rate_hz", "channels", "damaged_packets")
        return short_repr(self, *names, duration_s=self.duration_s)

    @property
    def duration_s(self) -> float:
        """Duration in seconds."""
        return len(self) / self.sample_rate_hz

    def __len__(self) -> int:
        return len(self.samples) // self.channels

    def to_numpy(self) -> NDArray[np.float32]:
        """Return the samples as a NumPy array that shares their memory.

        Returns:
            A read-only float32 array of shape ``(samples,)`` for mono or ``(samples, channels)``
                for stereo.

        Raises:
            MissingDependencyError: NumPy is not installed.
        """
        try:
            import numpy
        except ImportError as error:
            from polymux.errors import MissingDependencyError

            raise MissingDependencyError(
                "to_numpy: NumPy is not installed. Install it with 'pip install numpy', or use the "
                "memoryview in `samples`"
            ) from error
        array = numpy.frombuffer(self.samples.cast("B"), dtype=numpy.float32)
        return array if self.channels == 1 else array.reshape(-1, self.channels)

    def _repr_html_(self) -> str:
        """Return an audio player for notebooks if the audio is short; samples stay floats."""
        data = self.samples.cast("B")
        facts = f"{clock(self.duration_s)}, {self.sample_rate_hz} Hz, {self.channels} ch"
        if not len(data) or len(data) > MAX_EMBEDDED_BYTES:
            return f"<div>{facts}</div>"
        player = embedded("audio", "audio/wav", _wave(self, data))
        return f"<div>{player}<div>{facts}</div></div>"


def report_from_native(native: dict[str, Any]) -> ConversionReport:
    """Convert the native module's dictionary to a report, ignoring unknown keys."""
    values = {name: native[name] for name in ConversionReport.names()}
    values["warnings"] = tuple(ConversionWarning(**warning) for warning in native["warnings"])
    return ConversionReport(**values)


def _tags(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Return tags by name. Repeated tags are joined with ";", as FFmpeg does."""
    tags: dict[str, str] = {}
    for key, value in pairs:
        tags[key] = f"{tags[key]};{value}" if key in tags else value
    return tags


def media_info_from_native(native: dict[str, Any]) -> MediaInfo:
    """Convert the native module's dictionary to a `MediaInfo`."""
    return MediaInfo(
        **native
        | {
            "tags": _tags(native["tags"]),
            "streams": tuple(
                StreamInfo(**stream | {"tags": _tags(stream["tags"])})
                for stream in native["streams"]
            ),
            "chapters": tuple(
                Chapter(**chapter | {"tags": _tags(chapter["tags"])})
                for chapter in native["chapters"]
            ),
            "cover": Cover(**native["cover"]) if native["cover"] is not None else None,
        }
    )


def pcm_audio_from_native(native: dict[str, Any]) -> PcmAudio:
    """Convert the native module's dictionary to a `PcmAudio`."""
    from array import array

    data: bytes = native["samples"]
    return PcmAudio(
        # An empty view cannot be cast.
        samples=memoryview(data).cast("f") if data else memoryview(array("f")),
        sample_rate_hz=native["sample_rate_hz"],
        channels=native["channels"],
        damaged_packets=native["damaged_packets"],
    )


class Progress(Record, HtmlReprMixin):
    """Progress of a conversion at one moment.

    Attributes:
        position_s: Audio encoded so far, in seconds.
        duration_s: Expected total in seconds; None if the container does not state it.
        bytes_written: Size of the output so far, in bytes.
        elapsed_s: Wall-clock time since the start, in seconds.

    Example:
        >>> Progress(position_s=30.0, duration_s=120.0, bytes_written=480_000, elapsed_s=0.5)
        Progress(position_s=30.0, duration_s=120.0, bytes_written=480000, elapsed_s=0.5)
        >>> _.fraction, _.speed, _.eta_s
        (0.25, 60.0, 1.5)
    """

    position_s: float
    duration_s: float | None
    bytes_written: int
    elapsed_s: float

    @property
    def fraction(self) -> float | None:
        """Completed fraction, 0 to 1; None if the duration is unknown."""
        if not self.duration_s:
            return None
        return min(1.0, self.position_s / self.duration_s)

    @property
    def speed(self) -> float | None:
        """Seconds of audio per second of elapsed time; None before time is measurable."""
        return self.position_s / self.elapsed_s if self.elapsed_s > 0 else None

    @property
    def eta_s(self) -> float | None:
        """Expected remaining time in seconds at the current speed; None if unknown."""
        if not self.duration_s or not self.speed:
            return None
        return max(0.0, self.duration_s - self.position_s) / self.speed


def _form(one: StreamInfo) -> str:
    if one.type == "audio":
        return f"{one.sample_rate_hz} Hz, {escaped(one.channel_layout or one.channels)}"
    return f"{one.width}x{one.height}" if one.width else ""


def _wave(audio: PcmAudio, data: memoryview[int]) -> bytes:
    """WAV file of floats (Multimedia Programming Interface and Data Specifications 1.0)."""
    from struct import pack

    frame_bytes = 4 * audio.channels
    rate = audio.sample_rate_hz
    form = pack("<HHIIHHH", 3, audio.channels, rate, rate * frame_bytes, frame_bytes, 32, 0)
    fact = pack("<I", len(audio))
    chunks = b"".join(
        name + pack("<I", len(part)) + part
        for name, part in ((b"fmt ", form), (b"fact", fact), (b"data", bytes(data)))
    )
    return b"RIFF" + pack("<I", 4 + len(chunks)) + b"WAVE" + chunks
