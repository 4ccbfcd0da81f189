"""What conversions and probes report, as plain frozen values."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from polymux._util.html_repr import (
    MAX_EMBEDDED_BYTES,
    HtmlReprMixin,
    embedded,
    escaped,
    image,
    table,
)
from polymux._util.text import clock, size

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def _plain(value: object) -> Any:
    """The value as dictionaries, lists and scalars that `json.dumps` takes."""
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    to_dict = getattr(value, "to_dict", None)
    return to_dict() if to_dict is not None else value


def _fields_of(value: Any) -> dict[str, Any]:
    return {item.name: _plain(getattr(value, item.name)) for item in fields(value)}


class _Described(HtmlReprMixin):
    """What a file or a conversion is. Base class."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-able values; a cover without its bytes."""
        return _fields_of(self)


@dataclass(frozen=True, slots=True)
class ConversionWarning(_Described):
    """Something worth knowing about a conversion that succeeded.

    Attributes:
        code: Stable name, such as ``"damaged_packet"`` or ``"bitrate_adjusted"``.
        message: The same for people.
        position_s: Where in the input, in seconds; None when it concerns the whole.
        count: Repetitions folded into this one.
    """

    code: str
    message: str
    position_s: float | None = None
    count: int = 1


@dataclass(frozen=True, slots=True)
class ConversionReport:
    """What one conversion did.

    Attributes:
        duration_s: Audio encoded, in seconds.
        samples: Samples per channel, at the output's rate.
        frames: MP3 audio frames, without the Xing/Info frame in front.
        bytes: Size of the whole output in bytes, tags included.
        audio_bytes: Bytes of the audio frames alone.
        sample_rate_hz: Sample rate of the output.
        channels: 1 or 2.
        mode: ``"cbr"``, ``"abr"`` or ``"vbr"``.
        container: FFmpeg's name of the input's container, such as ``"flac"``.
        codec: FFmpeg's name of the codec that was decoded, such as ``"aac"``.
        audio_stream: Index of the stream that was converted, as `polymux.probe` numbers.
        encoder: Name and version, such as ``"LAME 3.100"``.
        elapsed_s: Wall-clock time of the conversion in seconds.
        damaged_packets: Packets of the input that were skipped because they were damaged.
        seams: Places where segments that were encoded in parallel were joined.
        absorbed_segments: Segments that were encoded in parallel for nothing: the encoder before
            never came to agree with theirs, went on through them, and its frames were taken.
        bumped_frames: Frames that had to be made larger than LAME would make them, so that a later
            frame found room. Their sound is the same.
        repairs: Encoders begun to code frames anew whose content depends on how full the bit
            reservoir is, which a segment's own encoder cannot know.
        inexact_frames: Such frames that are known to be doubtful: they may differ from those of one
            encoder, and so from ffmpeg's.
        parted_frames: Frames at which two encoders differed again after they had agreed, which is
            what `verify` looks for.
        sequential_fallback: True when segments could not be joined because the loaded LAME lays
            its frames out in an unknown way, so that one encoder made the whole file.
        warnings: What was adjusted or skipped; empty for a clean conversion.

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
    parted_frames: int = 0
    sequential_fallback: bool = False
    warnings: tuple[ConversionWarning, ...] = ()

    @property
    def speed(self) -> float:
        """Times real time: seconds of audio per second of conversion; 0.0 when not measurable."""
        return self.duration_s / self.elapsed_s if self.elapsed_s > 0 else 0.0

    def to_dict(self) -> dict[str, Any]:
        """All fields and `speed` as JSON-able values."""
        return _fields_of(self) | {"speed": self.speed}

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        rate = f"{self.sample_rate_hz / 1000:g} kHz, {self.channels} ch"
        rows = [
            ("from", f"{escaped(self.codec)} in {escaped(self.container)}"),
            ("to", f"MP3 {escaped(self.mode.upper())}, {rate}, {escaped(self.encoder)}"),
            ("length", f"{clock(self.duration_s)}, {self.frames} frames"),
            ("size", size(self.bytes)),
            ("took", f"{self.elapsed_s:.2f} s, {self.speed:.0f} times real time"),
        ]
        for one in self.warnings:
            where = "" if one.position_s is None else f" at {clock(one.position_s)}"
            times = "" if one.count == 1 else f" ({one.count} times)"
            rows.append((f"<b>{escaped(one.code)}</b>", f"{escaped(one.message)}{where}{times}"))
        return table(rows)


@dataclass(frozen=True, slots=True)
class StreamInfo(_Described):
    """One stream of a container, as its headers describe it.

    Attributes:
        index: Number among all streams, from 0; what `audio_stream` options mean.
        type: ``"audio"``, ``"video"``, ``"subtitle"``, ``"data"`` or ``"attachment"``.
        codec: FFmpeg's short name, such as ``"aac"``; ``"unknown"`` if none.
        duration_s: In seconds; None when not stated.
        bitrate_bps: Bits per second; None when not stated.
        sample_rate_hz: Audio only, else 0.
        channels: Audio only, else 0.
        channel_layout: Such as ``"stereo"`` or ``"5.1(side)"``; audio only, else empty.
        sample_format: Such as ``"s16"`` or ``"fltp"``; empty when not known without decoding.
        bits_per_sample: Of the source material when stated, else 0.
        width: Pixels, of video and pictures, else 0.
        height: Pixels, of video and pictures, else 0.
        language: ISO 639 code, or empty.
        is_default: The container marks it as the default of its type.
        is_cover: An attached picture rather than moving video.
        encrypted: Protected; it cannot be converted.
        tags: The stream's own tags.
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


@dataclass(frozen=True, slots=True)
class Chapter(_Described):
    """One chapter mark.

    Attributes:
        start_ms: Start in milliseconds.
        end_ms: End in milliseconds.
        tags: Usually one, ``"title"``.
    """

    start_ms: int
    end_ms: int
    tags: dict[str, str]

    @property
    def title(self) -> str:
        """The chapter's title; empty when it has none."""
        return self.tags.get("title", "")


@dataclass(frozen=True, slots=True)
class Cover:
    """An embedded picture, bit for bit as it lies in the file.

    Attributes:
        mime_type: Such as ``"image/jpeg"``.
        description: The file's text for it, often empty.
        picture_type: ID3v2 APIC type (ID3v2.3, section 4.15); 3 is the front cover.
        data: The picture's bytes.
    """

    mime_type: str
    description: str
    picture_type: int
    data: bytes = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        """All fields as JSON-able values, with ``size_bytes`` in the place of the bytes."""
        plain = {item.name: getattr(self, item.name) for item in fields(self)}
        del plain["data"]
        return plain | {"size_bytes": len(self.data)}

    def _repr_html_(self) -> str:
        """The picture, for notebooks."""
        return image(self.mime_type, self.data)


@dataclass(frozen=True, slots=True)
class MediaInfo(_Described):
    """What a file is, as read from its headers.

    Attributes:
        container: FFmpeg's demuxer name, such as ``"mov,mp4,m4a,3gp,3g2,mj2"``.
        container_long_name: The same for people, such as ``"QuickTime / MOV"``.
        duration_s: In seconds; None when not stated.
        start_s: Time of the first sample or picture, in seconds; None when not stated.
        bitrate_bps: Of the whole file, bits per second; None when not known.
        size_bytes: Of the whole input; None when it cannot be told, as with pipes.
        streams: All streams in the order of the container.
        best_audio_stream: Index of the stream that a conversion takes, by ffmpeg's rule; None
            when there is no audio.
        tags: Tags of the container.
        chapters: Chapter marks in the order of the file.
        cover: The first attached picture; None when there is none.

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

    @property
    def audio_streams(self) -> tuple[StreamInfo, ...]:
        """The audio streams alone."""
        return tuple(stream for stream in self.streams if stream.type == "audio")

    def _repr_html_(self) -> str:
        """A table for notebooks."""
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


@dataclass(frozen=True, slots=True)
class PcmAudio:
    """Decoded audio: 32-bit floats, interleaved, nominally in [-1, 1].

    Attributes:
        samples: A memoryview of format ``"f"``, `channels` values per sample position.
        sample_rate_hz: Samples per second and channel.
        channels: 1 or 2.
        damaged_packets: Packets of the input that were skipped because they were damaged.

    Example:
        >>> import polymux
        >>> audio = polymux.decode_audio("song.flac", sample_rate=16_000)
        >>> audio.samples.format, audio.channels
        ('f', 1)
    """

    samples: memoryview[float] = field(repr=False)
    sample_rate_hz: int
    channels: int
    damaged_packets: int = 0

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return len(self) / self.sample_rate_hz

    def __len__(self) -> int:
        return len(self.samples) // self.channels

    def to_numpy(self) -> NDArray[np.float32]:
        """The samples as an array over the same memory, without a copy.

        Returns:
            Shape ``(samples,)`` for mono, ``(samples, channels)`` for stereo; dtype float32;
            read-only.

        Raises:
            MissingDependencyError: NumPy is not installed.
        """
        try:
            import numpy
        except ImportError as error:
            from polymux.errors import MissingDependencyError

            raise MissingDependencyError(
                "to_numpy needs NumPy: install it with 'pip install numpy', or use the memoryview "
                "in `samples`"
            ) from error
        array = numpy.frombuffer(self.samples.cast("B"), dtype=numpy.float32)
        return array if self.channels == 1 else array.reshape(-1, self.channels)

    def _repr_html_(self) -> str:
        """A player for notebooks, where it is not too long; the samples stay floats."""
        data = self.samples.cast("B")
        facts = f"{clock(self.duration_s)}, {self.sample_rate_hz} Hz, {self.channels} ch"
        if not len(data) or len(data) > MAX_EMBEDDED_BYTES:
            return f"<div>{facts}</div>"
        player = embedded("audio", "audio/wav", _wave(self, data))
        return f"<div>{player}<div>{facts}</div></div>"


def report_from_native(native: dict[str, Any]) -> ConversionReport:
    """The native module's dictionary as a report; keys that are not of the report are left out."""
    values = {item.name: native[item.name] for item in fields(ConversionReport)}
    values["warnings"] = tuple(ConversionWarning(**warning) for warning in native["warnings"])
    return ConversionReport(**values)


def _tags(pairs: list[tuple[str, str]]) -> dict[str, str]:
    """Tags by name; what comes several times is joined by ";", as FFmpeg joins it."""
    tags: dict[str, str] = {}
    for key, value in pairs:
        tags[key] = f"{tags[key]};{value}" if key in tags else value
    return tags


def media_info_from_native(native: dict[str, Any]) -> MediaInfo:
    """The native module's dictionary as a `MediaInfo`."""
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
    """The native module's dictionary as a `PcmAudio`."""
    from array import array

    data: bytes = native["samples"]
    return PcmAudio(
        # A view of nothing cannot be cast.
        samples=memoryview(data).cast("f") if data else memoryview(array("f")),
        sample_rate_hz=native["sample_rate_hz"],
        channels=native["channels"],
        damaged_packets=native["damaged_packets"],
    )


@dataclass(frozen=True, slots=True)
class Progress(HtmlReprMixin):
    """One moment of a conversion.

    Attributes:
        position_s: Audio encoded so far, in seconds.
        duration_s: Expected total in seconds; None when the container does not say.
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
        """Part that is done, 0 to 1; None when the duration is not known."""
        if not self.duration_s:
            return None
        return min(1.0, self.position_s / self.duration_s)

    @property
    def speed(self) -> float | None:
        """Seconds of audio per second of waiting; None before the first measurable moment."""
        return self.position_s / self.elapsed_s if self.elapsed_s > 0 else None

    @property
    def eta_s(self) -> float | None:
        """Expected rest in seconds at the speed so far; None when it cannot be told."""
        if not self.duration_s or not self.speed:
            return None
        return max(0.0, self.duration_s - self.position_s) / self.speed


def _form(one: StreamInfo) -> str:
    if one.type == "audio":
        return f"{one.sample_rate_hz} Hz, {escaped(one.channel_layout or one.channels)}"
    return f"{one.width}x{one.height}" if one.width else ""


def _wave(audio: PcmAudio, data: memoryview[int]) -> bytes:
    """A WAV file of floats (Multimedia Programming Interface and Data Specifications 1.0, 1991)."""
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
