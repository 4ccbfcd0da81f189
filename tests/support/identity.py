"""Comparison of polymux's MP3 with the ffmpeg program's, frame by frame."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import polymux

from support import mp3_frames

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from support.corpus import Corpus


@dataclass(frozen=True)
class Mode:
    """One setting: polymux's options and the ffmpeg program's arguments."""

    name: str
    ours: dict[str, Any]
    theirs: tuple[str, ...]

    def __str__(self) -> str:
        return self.name


def cbr(kbps: int) -> Mode:
    return Mode(f"cbr{kbps}", {"bitrate": kbps * 1000}, ("-b:a", f"{kbps}k"))


def abr(kbps: int) -> Mode:
    return Mode(f"abr{kbps}", {"bitrate": kbps * 1000, "abr": True},
                ("-abr", "1", "-b:a", f"{kbps}k"))  # fmt: skip


def vbr(quality: float) -> Mode:
    return Mode(f"v{quality:g}", {"vbr_quality": quality}, ("-q:a", f"{quality:g}"))


CBR_128 = cbr(128)
LARGEST_PADDING_OF_FFMPEG = 1152 + 529
V0 = vbr(0)
V2 = vbr(2)


@dataclass(frozen=True)
class Compared:
    """Both files, after the comparison."""

    converted: polymux.MediaFile
    data: bytes
    ours: mp3_frames.Mp3File
    theirs: mp3_frames.Mp3File


def coded(mp3: mp3_frames.Mp3File) -> list[tuple[int, int, bytes]]:
    """The data that LAME coded for each frame, independent of its place in the file.

    This is the header without bitrate and padding, the side information without the pointer into
    the bit reservoir, and the main data.
    """
    stream = b"".join(frame.data[frame.overhead_bytes :] for frame in mp3.frames)
    filled = 0
    found = []
    for frame in mp3.frames:
        begin = filled - frame.main_data_begin
        filled += len(frame.data) - frame.overhead_bytes
        data = bytearray(stream[begin : begin + (frame.main_data_bits + 7) // 8])
        if data:
            data[-1] &= 0xFF << -frame.main_data_bits % 8 & 0xFF
        side_data = frame.data[frame.overhead_bytes - frame.side_bytes : frame.overhead_bytes]
        pointer_bits = 8 if frame.lsf else 9
        side = int.from_bytes(side_data, "big") & (1 << 8 * frame.side_bytes - pointer_bits) - 1
        found.append((frame.header & 0xFFFF0DFF, side, bytes(data)))
    return found


def first_difference(ours: list[bytes], theirs: list[bytes]) -> str:
    """A description of the first difference between two lists of frames, or an empty text."""
    if ours == theirs:
        return ""
    pairs = zip(ours, theirs, strict=False)
    differing = [number for number, (mine, other) in enumerate(pairs) if mine != other]
    counts = f"{len(ours)} frames, ffmpeg has {len(theirs)}"
    if not differing:
        return counts
    where = differing[0]
    headers = f"{ours[where][:4].hex()} and {theirs[where][:4].hex()}"
    return f"{counts}; {len(differing)} differ, the first is {where} (headers {headers})"


def check_report(report: polymux.ConversionReport, data: bytes, mp3: mp3_frames.Mp3File) -> None:
    """Check the report against the file."""
    first = mp3.frames[0]
    assert report.bytes == len(data)
    assert report.frames == len(mp3.frames)
    assert report.audio_bytes == sum(map(len, mp3.audio))
    assert report.samples == mp3.samples
    assert report.sample_rate_hz == first.sample_rate_hz
    assert report.channels == first.channels
    assert abs(report.duration_s - mp3.samples / first.sample_rate_hz) < 1e-6
    assert report.damaged_packets == 0


def assert_identical(
    corpus: Corpus,
    source: Path,
    mode: Mode = CBR_128,
    *,
    more_ours: dict[str, Any] | None = None,
    more_theirs: Sequence[str] = (),
    input_arguments: Sequence[str] = (),
) -> Compared:
    """Convert `source` with both programs and check that the audio frames are identical.

    Also checks that polymux's file is decodable, that its Xing/Info frame has ffmpeg's delay and
    padding, and that the report is correct.
    """
    reference = corpus.reference(
        source, (*mode.theirs, *more_theirs), input_arguments=input_arguments
    )
    theirs = mp3_frames.parse(reference)
    converted = polymux.convert_to_mp3(source, **(mode.ours | (more_ours or {})))
    data = converted.read()
    ours = mp3_frames.parse(data)
    difference = first_difference(ours.audio, theirs.audio)
    assert not difference, f"{source.name}, {mode}: {difference}"
    assert converted.report.identical
    mp3_frames.check_decodable(ours)
    xing = mp3_frames.check_xing(ours)
    assert theirs.xing is not None
    assert xing.delay == theirs.xing.delay
    assert xing.music_crc == theirs.xing.music_crc
    # ffmpeg states at most one frame of padding. The end may need more, which polymux states.
    assert min(xing.padding, LARGEST_PADDING_OF_FFMPEG) == theirs.xing.padding
    check_report(converted.report, data, ours)
    return Compared(converted, data, ours, theirs)
