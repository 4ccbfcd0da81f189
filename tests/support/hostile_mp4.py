"""MP4 and QuickTime files of ffmpeg, truncated or with wrong atoms (ISO/IEC 14496-12)."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from support.hostile import ENCRYPTED, LIMIT, OK, PERHAPS, REFUSED, Case, Site, case, group

if TYPE_CHECKING:
    from support.hostile import Content

#: ffmpeg's arguments for half a second of uncompressed sound.
_PLAIN = ["-f", "lavfi", "-i", "sine=duration=0.5:sample_rate=8000", "-c:a", "pcm_s16le"]
_FRAGMENTS = ["-movflags", "frag_keyframe+empty_moov"]
#: AAC with common encryption and a meaningless key.
_LOCKED = ["-f", "lavfi", "-i", "sine=duration=1", "-c:a", "aac",
           "-encryption_scheme", "cenc-aes-ctr", "-encryption_key", "0123456789abcdef" * 2,
           "-encryption_kid", "fedcba9876543210" * 2]  # fmt: skip
_HEAD = struct.pack(">I4s4sI4s", 20, b"ftyp", b"qt  ", 0, b"qt  ")
_HUGE = b"\xff" * 4


def movie(site: Site) -> bytes:
    return site.clips.make("movie", "mov", _PLAIN).read_bytes()


def _fragmented(site: Site) -> bytes:
    return site.clips.make("movie-in-fragments", "mov", [*_PLAIN, *_FRAGMENTS]).read_bytes()


def _locked(site: Site) -> bytes:
    return site.clips.make("movie-locked", "mp4", _LOCKED).read_bytes()


def _patched(data: bytes, kind: bytes, offset: int, field: bytes) -> bytes:
    """Replace a field of the first atom of `kind` in a file; offsets start after `kind`."""
    at = data.index(kind) + len(kind) + offset
    return data[:at] + field + data[at + len(field) :]


def _lying(kind: bytes, offset: int, field: bytes = _HUGE) -> Content:
    return lambda site: _patched(movie(site), kind, offset, field)


def edited(site: Site, count: int, seconds: int = 0) -> bytes:
    """A movie of half a second, or a sound of `seconds`, with `count` edits that each play it."""
    data = movie(site)
    if seconds:
        source = ["-f", "lavfi", "-i", f"anullsrc=r=8000:cl=mono:d={seconds}", "-c:a", "aac"]
        data = site.clips.make(f"{seconds}-s", "m4a", source).read_bytes()
    data = _patched(data, b"elst", 4, struct.pack(">I", count))
    more = struct.pack(">IiI", max(seconds * 1000, 1), 0, 0x10000) * (count - 1)
    for kind in (b"moov", b"trak", b"edts", b"elst"):
        (size,) = struct.unpack_from(">I", data, data.index(kind) - 4)
        data = _patched(data, kind, -8, struct.pack(">I", size + len(more)))
    end = data.index(b"mdia") - 4
    return data[:end] + more + data[end:]


def _cut_cases() -> list[Case]:
    def cut(percent: int, *placing: str) -> Content:
        def build(site: Site) -> bytes:
            arguments = ["-f", "lavfi", "-i", site.clips.SOURCE, "-c:a", "aac", *placing]
            whole = site.clips.make(f"m4a{''.join(placing)}", "m4a", arguments).read_bytes()
            return whole[: len(whole) * percent // 100]

        return build

    percents = (10, 50, 90, 99)
    last = {f"moov-last-cut-{one}": cut(one) for one in percents}
    first = {f"moov-first-cut-{one}": cut(one, "-movflags", "+faststart") for one in percents}
    return [
        *group("V04", REFUSED, last, file_name="cut.m4a"),
        *group("V04", PERHAPS, first, file_name="cut.m4a"),
    ]


def _atom_cases() -> list[Case]:
    def sized(size: int, *more: bytes) -> bytes:
        return _HEAD + struct.pack(">I4s", size, b"moov") + b"".join(more)

    def large(size: int) -> bytes:
        return sized(1, struct.pack(">Q", size))

    def nested(kind: bytes, more: bytes = b"", depth: int = 10_000) -> bytes:
        each = 8 + len(more)
        sizes = range(each * depth, 0, -each)
        return _HEAD + b"".join(struct.pack(">I4s", size, kind) + more for size in sizes)

    return [
        *group(
            "V05",
            REFUSED,
            {
                "size-0": sized(0, bytes(64)),
                "size-4": sized(4, bytes(64)),
                "size-4-gib": sized(0xFFFFFFFF),
                "size-64-bit-overflow": large(2**64 - 1),
                "size-64-bit-negative": large(2**63),
                "size-64-bit-zero": large(0),
                "ftyp-4-gib": _HUGE + b"ftyp" + b"qt  " * 8,
                "udta-10000-deep": nested(b"udta"),
                "moov-10000-deep": nested(b"moov"),
                "meta-10000-deep": nested(b"meta", bytes(4)),
            },
        ),
        case("V05", "whole-movie", movie, OK, duration_s=0.5),
    ]


def _table_cases() -> list[Case]:
    """The entry counts of tables, which follow four bytes of version and flags."""
    broken = PERHAPS | {LIMIT}
    return [
        *group(
            "V06",
            broken,
            {
                "stts-count": _lying(b"stts", 4),
                "stts-longest-delta": _lying(b"stts", 12, b"\x7f\xff\xff\xff"),
                "stsc-count": _lying(b"stsc", 4),
                "stsz-count": _lying(b"stsz", 4, bytes(4) + _HUGE),
                "stsz-uniform-count": _lying(b"stsz", 8),
                "stco-count": _lying(b"stco", 4),
                "co64-count": _lying(b"stco", -4, b"co64" + bytes(4) + _HUGE),
                "stco-beyond-the-end": _lying(b"stco", 8),
                "stsd-count": _lying(b"stsd", 4),
                "elst-count": _lying(b"elst", 4, struct.pack(">I", 10**9)),
                "timescale-0": _lying(b"mvhd", 12, bytes(4)),
                "media-timescale-0": _lying(b"mdhd", 12, bytes(4)),
                "trun-count": lambda site: _patched(
                    _fragmented(site), b"trun", 0, bytes(4) + _HUGE
                ),
            },
        ),
    ]


def cases() -> list[Case]:
    """The cases V04, V05, V06 and the MP4 part of V24."""
    return [
        *_cut_cases(),
        *_atom_cases(),
        *_table_cases(),
        case("V24", "common-encryption", _locked, ENCRYPTED, file_name="stream.mp4"),
        case(
            "V24",
            "m4p-drms",
            lambda site: _patched(_locked(site), b"enca", -4, b"drms"),
            ENCRYPTED,
            file_name="bought.m4p",
        ),
    ]
