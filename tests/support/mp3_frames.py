"""An MP3 parser that shares no code with polymux, to check what polymux writes.

It reads ID3v2, frame headers, side information, the bit reservoir (ISO/IEC 11172-3 and 13818-3,
with the MPEG-2.5 extension) and the Xing/Info frame with LAME's extension. Unknown bytes between
frames are an error, because an encoder writes only frames.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from pathlib import Path

BITRATES_KBPS = {
    1: (0, 32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320),
    2: (0, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160),
}
SAMPLE_RATES_HZ = {
    3: (44100, 48000, 32000),
    2: (22050, 24000, 16000),
    0: (11025, 12000, 8000),
}


class Mp3Error(Exception):
    """The bytes are not a well-formed MP3 stream; the message gives place and reason."""


@dataclass(frozen=True, slots=True)
class Frame:
    offset: int
    header: int
    data: bytes
    lsf: bool
    sample_rate_hz: int
    bitrate_bps: int
    channels: int
    side_bytes: int
    main_data_begin: int
    main_data_bits: int

    @property
    def samples(self) -> int:
        """Samples per channel in this frame."""
        return 576 if self.lsf else 1152

    @property
    def overhead_bytes(self) -> int:
        """Header, optional CRC and side information."""
        return 4 + (0 if self.header & 0x10000 else 2) + self.side_bytes


@dataclass(frozen=True, slots=True)
class XingTag:
    """Contents of a Xing/Info frame with LAME's extension."""

    identifier: str
    frame: Frame
    frames: int
    bytes: int
    toc: tuple[int, ...]
    delay: int
    padding: int
    music_length: int
    music_crc: int
    tag_crc_valid: bool
    encoding_flags: int
    noise_shaping: int


@dataclass(frozen=True, slots=True)
class Mp3File:
    """A parsed file. `frames` excludes the Xing/Info frame."""

    id3v2: bytes
    xing: XingTag | None
    frames: list[Frame]
    id3v1: bytes
    size: int

    @property
    def audio(self) -> list[bytes]:
        return [frame.data for frame in self.frames]

    @property
    def samples(self) -> int:
        """Samples per channel without delay and padding, as gapless players count them."""
        total = sum(frame.samples for frame in self.frames)
        return total if self.xing is None else total - self.xing.delay - self.xing.padding


def _crc16(data: bytes) -> int:
    """CRC-16 with the reflected polynomial 0x8005."""
    crc = 0
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = (crc >> 1) ^ 0xA001 if crc & 1 else crc >> 1
    return crc


def id3v2_size(data: bytes) -> int:
    """Bytes of the ID3v2 tag, 0 if it is missing."""
    if data[:3] != b"ID3" or len(data) < 10:
        return 0
    size = 0
    for byte in data[6:10]:
        if byte & 0x80:
            raise Mp3Error("the size of the ID3v2 tag is not syncsafe")
        size = size << 7 | byte
    return 10 + size + (10 if data[5] & 0x10 else 0)


def _main_data_bits(side: int, side_bytes: int, *, lsf: bool, channels: int) -> tuple[int, int]:
    """main_data_begin and the sum of the part2_3 lengths."""
    total_bits = 8 * side_bytes
    if lsf:
        begin = side >> (total_bits - 8)
        position = 8 + (1 if channels == 1 else 2)
        granules, length = 1, 63
    else:
        begin = side >> (total_bits - 9)
        position = 9 + (5 if channels == 1 else 3) + 4 * channels
        granules, length = 2, 59
    bits = 0
    for _ in range(granules * channels):
        word = side >> (total_bits - position - 21)
        bits += word >> 9 & 0xFFF
        if word & 0x1FF > 288:
            raise Mp3Error(f"big_values of {word & 0x1FF} is above 288")
        position += length
    return begin, bits


def parse_frame(data: bytes, offset: int) -> Frame:
    """Reads the frame at `offset`."""
    header = int.from_bytes(data[offset : offset + 4], "big")
    version, layer = header >> 19 & 3, header >> 17 & 3
    bitrate_index, rate_index = header >> 12 & 15, header >> 10 & 3
    if header >> 21 != 0x7FF or len(data) < offset + 4:
        raise Mp3Error(f"no frame sync at byte {offset}: {data[offset : offset + 8].hex()}")
    if layer != 1 or version == 1 or bitrate_index in (0, 15) or rate_index == 3:
        raise Mp3Error(f"illegal frame header {header:08x} at byte {offset}")
    lsf = version != 3
    rate = SAMPLE_RATES_HZ[version][rate_index]
    bitrate = 1000 * BITRATES_KBPS[2 if lsf else 1][bitrate_index]
    size = (72 if lsf else 144) * bitrate // rate + (header >> 9 & 1)
    channels = 1 if header >> 6 & 3 == 3 else 2
    side_bytes = (9 if channels == 1 else 17) if lsf else (17 if channels == 1 else 32)
    frame = data[offset : offset + size]
    if len(frame) != size:
        raise Mp3Error(f"the frame at byte {offset} is cut: {len(frame)} of {size} bytes")
    start = 4 + (0 if header & 0x10000 else 2)
    side = int.from_bytes(frame[start : start + side_bytes], "big")
    try:
        begin, bits = _main_data_bits(side, side_bytes, lsf=lsf, channels=channels)
    except Mp3Error as error:
        raise Mp3Error(f"frame at byte {offset}: {error}") from None
    return Frame(offset, header, frame, lsf, rate, bitrate, channels, side_bytes, begin, bits)


def parse_xing(frame: Frame) -> XingTag | None:
    """Read `frame` as a Xing/Info frame; return None if it is an audio frame."""
    data = frame.data
    start = frame.overhead_bytes
    identifier = data[start : start + 4]
    if identifier not in (b"Xing", b"Info"):
        return None
    if data[start + 4 : start + 8] != b"\0\0\0\x0f":
        raise Mp3Error("the Xing/Info frame lacks a field")
    # Frames, bytes, the seek table of a hundred entries, the quality, and LAME's extension.
    frames, size, places, lame = struct.unpack_from(
        ">II100s4x36s", data.ljust(start + 152), start + 8
    )
    gaps = int.from_bytes(lame[21:24], "big")
    # LAME's checksum covers the bytes before the field. FFmpeg's always covers 190 bytes, with a
    # zero in the field.
    crc_at = start + 8 + 112 + 34
    blank = (data[:crc_at] + b"\0\0" + data[crc_at + 2 :]).ljust(190, b"\0")[:190]
    tag_crc = int.from_bytes(lame[34:36], "big")
    return XingTag(
        identifier=identifier.decode(),
        frame=frame,
        frames=frames,
        bytes=size,
        toc=tuple(places),
        delay=gaps >> 12,
        padding=gaps & 0xFFF,
        music_length=int.from_bytes(lame[28:32], "big"),
        music_crc=int.from_bytes(lame[32:34], "big"),
        tag_crc_valid=tag_crc in (_crc16(data[:crc_at]), _crc16(blank)),
        encoding_flags=lame[19],
        noise_shaping=lame[24] & 3,
    )


def parse(source: Path | str | bytes) -> Mp3File:
    data = source if isinstance(source, bytes) else Path(source).read_bytes()
    offset = id3v2_size(data)
    id3v2 = data[:offset]
    end = len(data)
    id3v1 = data[-128:] if end >= offset + 128 and data[-128:-125] == b"TAG" else b""
    end -= len(id3v1)
    frames: list[Frame] = []
    xing = None
    while offset < end:
        frame = parse_frame(data, offset)
        offset += len(frame.data)
        if not frames and xing is None:
            xing = parse_xing(frame)
            if xing is not None:
                continue
        frames.append(frame)
    return Mp3File(id3v2, xing, frames, id3v1, len(data))


def audio_frames(source: Path | str | bytes) -> list[bytes]:
    return parse(source).audio


def check_decodable(mp3: Mp3File) -> None:
    """Check that a decoder finds the whole main data of every frame.

    Follows the bit reservoir through the file: `main_data_begin` must point at existing bytes that
    no earlier frame uses, the data must end inside its own frame, and rate and version must not
    change.
    """
    filled = 0  # bytes of main data in all frames so far
    used = 0  # end of the previous frame's data in this stream
    for number, frame in enumerate(mp3.frames):
        limit = 255 if frame.lsf else 511
        begin = filled - frame.main_data_begin
        if frame.main_data_begin > limit or begin < 0:
            raise Mp3Error(f"frame {number}: main_data_begin {frame.main_data_begin} of {filled}")
        if begin < used:
            raise Mp3Error(f"frame {number} starts {used - begin} bytes inside its predecessor")
        filled += len(frame.data) - frame.overhead_bytes
        used = begin + (frame.main_data_bits + 7) // 8
        if used > filled:
            raise Mp3Error(f"frame {number}: {used - filled} bytes of main data are missing")
        if (frame.header ^ mp3.frames[0].header) & 0xFFFE0C00:
            raise Mp3Error(f"frame {number}: version or sample rate changes")


def check_xing(mp3: Mp3File) -> XingTag:
    """Check the Xing/Info frame against the file."""
    xing = mp3.xing
    if xing is None:
        raise Mp3Error("missing Xing/Info frame")
    audio = sum(len(frame.data) for frame in mp3.frames)
    whole = audio + len(xing.frame.data)
    varies = len({frame.bitrate_bps for frame in mp3.frames}) > 1
    expected = {
        # A variable bitrate may happen to be constant, but not the reverse.
        "identifier": (xing.identifier, "Xing" if varies else xing.identifier),
        "frames": (xing.frames, len(mp3.frames)),
        "bytes": (xing.bytes, whole),
        "music_length": (xing.music_length, whole),
        "tag_crc_valid": (xing.tag_crc_valid, True),
        "toc": (list(xing.toc), sorted(xing.toc)),
        "toc start": (xing.toc[0], 0),
        "version and rate": (xing.frame.header & 0xFFFE0C00, mp3.frames[0].header & 0xFFFE0C00),
    }
    wrong = [
        f"{name} is {found!r}, should be {right!r}"
        for name, (found, right) in expected.items()
        if found != right
    ]
    if wrong:
        raise Mp3Error("Xing/Info frame: " + "; ".join(wrong))
    return xing
