"""MP3 with ID3v2 tags that lie about their size, nest, or carry too much.

Source: ID3 tag version 2.4.0 and 2.3.0, informal standards at id3.org.
"""

from __future__ import annotations

import struct

from support.hostile import LIMIT, OK, REFUSED, Case, Site, case

MIB = 1024 * 1024


def syncsafe(value: int) -> bytes:
    """Seven bits a byte, as tag sizes are written."""
    return bytes(value >> shift & 0x7F for shift in (21, 14, 7, 0))


def tag(body: bytes, *, claimed: int | None = None, version: int = 4, flags: int = 0) -> bytes:
    """An ID3v2 tag; `claimed` is the size it states when that is not the truth."""
    size = len(body) if claimed is None else claimed
    return b"ID3" + bytes([version, 0, flags]) + syncsafe(size) + body


def frame(identifier: bytes, body: bytes, *, claimed: int | None = None) -> bytes:
    """One ID3v2.4 frame."""
    return identifier + syncsafe(len(body) if claimed is None else claimed) + bytes(2) + body


def picture(data: bytes) -> bytes:
    """An attached picture, the front cover."""
    return frame(b"APIC", b"\0image/jpeg\0\3\0" + data)


def jpeg(width: int, height: int) -> bytes:
    """The start of a JPEG that claims a size, and no more."""
    start = struct.pack(">HHHBHHB", 0xFFD8, 0xFFC0, 17, 8, height, width, 3)
    return start + bytes([1, 0x11, 0, 2, 0x11, 0, 3, 0x11, 0]) + b"\xff\xd9"


def text(identifier: bytes, raw: bytes, encoding: int = 3) -> bytes:
    """A text frame with the bytes as they are."""
    return frame(identifier, bytes([encoding]) + raw)


def _before(tag_bytes: bytes, site: Site) -> bytes:
    return tag_bytes + site.clips.data("mp3")


def _nested_frames(depth: int) -> bytes:
    body = frame(b"TIT2", b"\3inside")
    for level in range(depth):
        body = frame(b"CHAP", b"c%d\0" % level + bytes(16) + body)
    return body


def chapters(count: int) -> bytes:
    """`count` chapter frames, one millisecond each."""
    return b"".join(
        frame(
            b"CHAP", b"c%d\0" % index + struct.pack(">IIII", index, index + 1, 2**32 - 1, 2**32 - 1)
        )
        for index in range(count)
    )


#: Tags whose text no program should print as it is.
DIRTY = tag(
    text(b"TIT2", b"two\nlines\x1b[2J")
    + text(b"TPE1", b"bad \xff\xfe\xc0\xaf utf-8")
    + text(b"TALB", b"nul\0inside")
    + text(b"TCON", b"\xd8\x00\x00", encoding=2)
    + frame(b"TXXX", b"\3key\nwith=sign\0value")
    + frame(b"COMM", b"\3eng\0")
)


def _size_cases() -> list[Case]:
    some = REFUSED | {OK}
    return [
        case("V01", "id3-mark-only", lambda: b"ID3\x04", REFUSED),
        case(
            "V08",
            "claims-256-mib",
            lambda site: tag(b"", claimed=2**28 - 1) + site.clips.data("mp3"),
            LIMIT,
        ),
        case(
            "V08",
            "frame-claims-256-mib",
            lambda site: _before(tag(frame(b"TIT2", b"\3x", claimed=2**28 - 1)), site),
            OK,
            duration_s=2.0,
        ),
        case(
            "V08",
            "1000-tags-in-a-row",
            lambda site: _before(tag(b"") * 1000, site),
            OK,
            duration_s=2.0,
        ),
        case(
            "V08", "frames-1000-deep", lambda site: _before(tag(_nested_frames(1000)), site), some
        ),
        case("V08", "unsynchronised-zlib-frame", _compressed, some),
        case(
            "V08",
            "picture-of-50000-pixels-squared",
            lambda site: _before(tag(picture(jpeg(50_000, 50_000))), site),
            OK,
            duration_s=2.0,
        ),
        case(
            "V08",
            "picture-of-100-mib",
            lambda site: _before(tag(picture(bytes(100 * MIB))), site),
            LIMIT,
            memory_mib=256,
        ),
        case(
            "V08",
            "picture-claims-100-mib",
            lambda site: _before(
                tag(frame(b"APIC", b"\0image/png\0\3\0", claimed=100 * MIB)), site
            ),
            some,
        ),
    ]


def _compressed(site: Site) -> bytes:
    # Version 2.4 with a frame flagged as compressed and unsynchronised that holds neither.
    header = b"TIT2" + syncsafe(64) + bytes([0, 0x0A])
    return _before(tag(header + b"\xff" * 64, flags=0x80), site)


def _content_cases() -> list[Case]:
    long_text = b"x" * MIB
    return [
        case(
            "V16",
            "text-of-1-mib",
            lambda site: _before(tag(text(b"TIT2", long_text)), site),
            OK,
            duration_s=2.0,
        ),
        case(
            "V16",
            "text-of-1-mib-over-the-limit",
            lambda site: _before(tag(text(b"TIT2", long_text)), site),
            LIMIT,
            limits={"tag_bytes": 65_536},
        ),
        case(
            "V16", "text-that-is-not-clean", lambda site: _before(DIRTY, site), OK, duration_s=2.0
        ),
        case(
            "V16",
            "5000-id3-chapters",
            lambda site: _before(tag(chapters(5000)), site),
            OK,
            duration_s=2.0,
        ),
    ]


def cases() -> list[Case]:
    """V08, and the ID3 part of V01 and V16."""
    return [*_size_cases(), *_content_cases()]
