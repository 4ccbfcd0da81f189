"""MP3 with ID3v2 tags that have a wrong size, nest, or are too large.

Source: ID3 tag version 2.4.0 and 2.3.0, informal standards at id3.org.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from support.hostile import LIMIT, OK, PERHAPS, REFUSED, Case, case, group

if TYPE_CHECKING:
    from collections.abc import Mapping

    from support.hostile import Content, Site

MIB = 1024 * 1024


def _syncsafe(value: int) -> bytes:
    """The size in the tag format: seven bits per byte."""
    return bytes(value >> shift & 0x7F for shift in (21, 14, 7, 0))


def _tag(body: bytes, *, claimed: int | None = None, flags: int = 0) -> bytes:
    """An ID3v2 tag; `claimed` replaces the true size."""
    size = len(body) if claimed is None else claimed
    return b"ID3" + bytes([4, 0, flags]) + _syncsafe(size) + body


def _frame(identifier: bytes, body: bytes, *, claimed: int | None = None) -> bytes:
    return identifier + _syncsafe(len(body) if claimed is None else claimed) + bytes(2) + body


def _picture(data: bytes) -> bytes:
    return _frame(b"APIC", b"\0image/jpeg\0\3\0" + data)


def _jpeg(width: int, height: int) -> bytes:
    """The start of a JPEG that claims a size, and nothing else."""
    start = struct.pack(">HHHBHHB", 0xFFD8, 0xFFC0, 17, 8, height, width, 3)
    return start + bytes([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]) + b"\xff\xd9"


def _nested_frames(depth: int) -> bytes:
    body = _frame(b"TIT2", b"\3inside")
    for level in range(depth):
        body = _frame(b"CHAP", b"c%d\0" % level + bytes(16) + body)
    return body


def _chapters(count: int) -> bytes:
    return b"".join(
        _frame(b"CHAP", b"c%d\0" % n + struct.pack(">IIII", n, n + 1, 2**32 - 1, 2**32 - 1))
        for n in range(count)
    )


#: Tags whose text no program should print unchanged.
_DIRTY = (
    _frame(b"TIT2", b"\3two\nlines\x1b[2J")
    + _frame(b"TPE1", b"\3bad \xff\xfe\xc0\xaf utf-8")
    + _frame(b"TALB", b"\3nul\0inside")
    + _frame(b"TCON", b"\2\xd8\x00\x00")
    + _frame(b"TXXX", b"\3key\nwith=sign\0value")
    + _frame(b"COMM", b"\3eng\0")
)


def _before_mp3(tags: Mapping[str, bytes]) -> dict[str, Content]:
    """Each tag, followed by an MP3."""

    def joined(tag: bytes) -> Content:
        def build(site: Site) -> bytes:
            return tag + site.clips.data("mp3")

        return build

    return {name: joined(tag) for name, tag in tags.items()}


def cases() -> list[Case]:
    """The cases V08, and the ID3 part of V01 and V16."""
    # A frame flagged as compressed and unsynchronized that is neither.
    compressed = b"TIT2" + _syncsafe(64) + bytes([0, 0x0A]) + b"\xff" * 64
    claims_picture = _frame(b"APIC", b"\0image/png\0\3\0", claimed=100 * MIB)
    long_text = _tag(_frame(b"TIT2", b"\3" + b"x" * MIB))
    ignored = {
        "frame-claims-256-mib": _tag(_frame(b"TIT2", b"\3x", claimed=2**28 - 1)),
        "1000-tags-in-a-row": _tag(b"") * 1000,
        "picture-of-50000-pixels-squared": _tag(_picture(_jpeg(50_000, 50_000))),
    }
    perhaps = {
        "frames-1000-deep": _tag(_nested_frames(1000)),
        "unsynchronised-zlib-frame": _tag(compressed, flags=0x80),
        "picture-claims-100-mib": _tag(claims_picture),
    }
    taken = {
        "text-of-1-mib": long_text,
        "text-that-is-not-clean": _tag(_DIRTY),
        "5000-id3-chapters": _tag(_chapters(5000)),
    }
    too_long = {"text-of-1-mib-over-the-limit": long_text}
    return [
        case("V01", "id3-mark-only", b"ID3\x04", REFUSED),
        *group("V08", LIMIT, _before_mp3({"claims-256-mib": _tag(b"", claimed=2**28 - 1)})),
        *group("V08", OK, _before_mp3(ignored), duration_s=2.0),
        *group("V08", PERHAPS, _before_mp3(perhaps)),
        case(
            "V08",
            "picture-of-100-mib",
            lambda site: _tag(_picture(bytes(100 * MIB))) + site.clips.data("mp3"),
            LIMIT,
            memory_mib=256,
        ),
        *group("V16", OK, _before_mp3(taken), duration_s=2.0),
        *group("V16", LIMIT, _before_mp3(too_long), limits={"tag_bytes": 65_536}),
    ]
