"""Matroska: an EBML writer, and files whose elements lie, nest too deep, or are encrypted.

Source: RFC 8794 (EBML) and RFC 9559 (Matroska).
"""

from __future__ import annotations

import struct

from support.hostile import ENCRYPTED, LIMIT, NO_AUDIO, OK, REFUSED, Case, case

SAMPLE_RATE = 8000
UNKNOWN_SIZE = b"\x01" + b"\xff" * 7
BLOCK_SAMPLES = 800


def element(identifier: int, *payload: bytes) -> bytes:
    """One element with a correct size of eight bytes."""
    body = b"".join(payload)
    return sized(identifier, len(body), body)


def sized(identifier: int, size: int, body: bytes = b"") -> bytes:
    """An element that claims `size` bytes, whatever it has."""
    return _identifier(identifier) + (1 << 56 | size).to_bytes(8, "big") + body


def endless(identifier: int, *payload: bytes) -> bytes:
    """An element of unknown size."""
    return _identifier(identifier) + UNKNOWN_SIZE + b"".join(payload)


def number(identifier: int, value: int) -> bytes:
    """An unsigned integer element."""
    return element(identifier, value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big"))


def text(identifier: int, value: str) -> bytes:
    """A UTF-8 string element."""
    return element(identifier, value.encode())


def _identifier(value: int) -> bytes:
    return value.to_bytes((value.bit_length() + 7) // 8, "big")


def head(kind: str = "matroska") -> bytes:
    """The EBML header."""
    return element(0x1A45DFA3, text(0x4282, kind), number(0x4287, 4), number(0x4285, 2))


def information() -> bytes:
    """Segment information: milliseconds."""
    return element(
        0x1549A966, number(0x2AD7B1, 1_000_000), text(0x4D80, "test"), text(0x5741, "test")
    )


def track(index: int = 1, *extra: bytes, kind: int = 2, codec: str = "A_PCM/INT/LIT") -> bytes:
    """One track entry; by default PCM, 16 bit, mono, 8 kHz."""
    audio = element(
        0xE1, element(0xB5, struct.pack(">d", SAMPLE_RATE)), number(0x9F, 1), number(0x6264, 16)
    )
    sound = audio if kind == 2 else b""
    fields = [number(0xD7, index), number(0x73C5, index), number(0x83, kind), text(0x86, codec)]
    return element(0xAE, *fields, sound, *extra)


def block(time_ms: int, payload: bytes, flags: int = 0x80) -> bytes:
    """A SimpleBlock of track 1."""
    return element(0xA3, b"\x81" + struct.pack(">hB", time_ms, flags), payload)


def cluster(*blocks: bytes, time_ms: int = 0) -> bytes:
    """A cluster of blocks."""
    return element(0x1F43B675, number(0xE7, time_ms), *blocks)


def sound() -> bytes:
    """A cluster of one second of silence."""
    blocks = [block(100 * step, bytes(2 * BLOCK_SAMPLES)) for step in range(10)]
    return cluster(*blocks)


def file(*parts: bytes) -> bytes:
    """A file of one segment."""
    return head() + element(0x18538067, *parts)


def tracks(*entries: bytes) -> bytes:
    """The list of tracks."""
    return element(0x1654AE6B, *entries)


def whole() -> bytes:
    """A correct file of one second."""
    return file(information(), tracks(track()), sound())


def chapters(count: int) -> bytes:
    """`count` chapters of one millisecond."""
    atoms = [
        element(
            0xB6,
            number(0x73C4, index + 1),
            number(0x91, index * 1_000_000),
            number(0x92, (index + 1) * 1_000_000),
            element(0x80, text(0x85, f"Chapter {index}"), text(0x437C, "eng")),
        )
        for index in range(count)
    ]
    return element(0x1043A770, element(0x45B9, *atoms))


def nested_tags(depth: int) -> bytes:
    """A tag in a tag in a tag, `depth` of them."""
    body = text(0x45A3, "NAME") + text(0x4487, "value")
    for _ in range(depth):
        body = element(0x67C8, text(0x45A3, "N"), body)
    return element(0x1254C367, element(0x7373, element(0x63C0), body))


def nested_master(identifier: int, depth: int) -> bytes:
    """`depth` equal elements, each in the one before."""
    return b"".join(sized(identifier, 12 * (depth - level)) for level in range(depth))


def encryption() -> bytes:
    """ContentEncodings: the track's frames are encrypted with AES."""
    cipher = element(0x5035, number(0x47E1, 5), element(0x47E2, bytes(range(16))))
    encoding = element(0x6240, number(0x5031, 0), number(0x5032, 1), number(0x5033, 1), cipher)
    return element(0x6D80, encoding)


def compression(algorithm: int) -> bytes:
    """ContentEncodings: the track's frames are compressed."""
    method = element(0x5034, number(0x4254, algorithm))
    encoding = element(0x6240, number(0x5031, 0), number(0x5032, 1), number(0x5033, 0), method)
    return element(0x6D80, encoding)


def laced(kind: int, count: int, sizes: bytes, payload: bytes) -> bytes:
    """A file whose only block is laced: `kind` 1 Xiph, 2 fixed, 3 EBML."""
    lacing = block(0, bytes([count - 1]) + sizes + payload, flags=0x80 | kind << 1)
    return file(information(), tracks(track()), cluster(lacing))


def _size_cases() -> list[Case]:
    some = REFUSED | {OK}
    segment = information() + tracks(track()) + sound()
    huge = 2**56 - 2
    return [
        case("V31", "whole", whole, OK, duration_s=1.0),
        case(
            "V31",
            "unknown-sizes",
            lambda: head() + endless(0x18538067, segment),
            OK,
            duration_s=1.0,
        ),
        case("V31", "segment-of-64-pib", lambda: head() + sized(0x18538067, huge, segment), some),
        case(
            "V31",
            "tracks-of-64-pib",
            lambda: head() + _segment(sized(0x1654AE6B, huge, track())),
            REFUSED,
        ),
        case("V31", "header-of-64-pib", lambda: sized(0x1A45DFA3, huge, head()), REFUSED),
        case("V31", "string-of-1-gib", _long_string, some),
        case("V31", "codec-data-of-1-gib", _long_codec_data, some),
        case("V31", "size-of-zero-byte", lambda: head() + b"\x18\x53\x80\x67\x00" + segment, some),
        case("V31", "number-of-nine-bytes", _long_number, some),
        case(
            "V31",
            "segments-10000-deep",
            lambda: head() + nested_master(0x18538067, 10_000),
            REFUSED,
        ),
        case(
            "V31",
            "tags-10000-deep",
            lambda: file(information(), tracks(track()), nested_tags(10_000), sound()),
            some | {LIMIT},
        ),
        case("V31", "rate-nan", lambda: _with_rate(float("nan")), some | {LIMIT}),
        case("V31", "rate-infinite", lambda: _with_rate(float("inf")), some | {LIMIT}),
    ]


def _segment(*parts: bytes) -> bytes:
    return element(0x18538067, information(), *parts)


def _long_string() -> bytes:
    entry = element(0xAE, number(0xD7, 1), number(0x83, 2), sized(0x86, 2**30, b"A_PCM/INT/LIT"))
    return file(information(), tracks(entry), sound())


def _long_codec_data() -> bytes:
    entry = track(1, sized(0x63A2, 2**30, bytes(16)))
    return file(information(), tracks(entry), sound())


def _long_number() -> bytes:
    entry = element(
        0xAE, element(0xD7, bytes(8) + b"\1"), number(0x83, 2), text(0x86, "A_PCM/INT/LIT")
    )
    return file(information(), tracks(entry), sound())


def _with_rate(rate: float) -> bytes:
    audio = element(
        0xE1, element(0xB5, struct.pack(">d", rate)), number(0x9F, 1), number(0x6264, 16)
    )
    entry = element(0xAE, number(0xD7, 1), number(0x83, 2), text(0x86, "A_PCM/INT/LIT"), audio)
    return file(information(), tracks(entry), sound())


def _block_cases() -> list[Case]:
    some = REFUSED | {OK}
    short = bytes(64)
    return [
        case("V31", "lacing-256-frames-xiph", lambda: laced(1, 256, b"\2" * 255, bytes(512)), some),
        case("V31", "lacing-256-frames-fixed", lambda: laced(2, 256, b"", bytes(512)), OK),
        case(
            "V31",
            "lacing-256-frames-ebml",
            lambda: laced(3, 256, b"\x82" + b"\xbf" * 254, bytes(512)),
            some,
        ),
        case("V31", "lacing-xiph-sizes-lie", lambda: laced(1, 256, b"\xff" * 255, short), some),
        case(
            "V31",
            "lacing-ebml-sizes-lie",
            lambda: laced(3, 256, b"\x08" + b"\xff" * 254, short),
            some,
        ),
        case("V31", "lacing-without-a-count", lambda: laced(1, 256, b"", b""), some),
        case(
            "V31",
            "zlib-that-is-none",
            lambda: file(information(), tracks(track(1, compression(0))), sound()),
            some,
        ),
        case(
            "V31",
            "compression-unknown",
            lambda: file(information(), tracks(track(1, compression(9))), sound()),
            some,
        ),
        case(
            "V31", "block-of-no-track", lambda: file(information(), tracks(track(2)), sound()), some
        ),
        case("V31", "attachment-of-1-gib", _long_attachment, some),
    ]


def _long_attachment() -> bytes:
    attached = element(
        0x61A7, text(0x466E, "a.ttf"), text(0x4660, "font/ttf"), sized(0x465C, 2**30)
    )
    return file(information(), tracks(track()), element(0x1941A469, attached), sound())


def attachment_only() -> bytes:
    """No track at all: only an attached file."""
    attached = element(
        0x61A7,
        text(0x466E, "a.ttf"),
        text(0x4660, "font/ttf"),
        number(0x46AE, 7),
        element(0x465C, bytes(256)),
    )
    return file(information(), element(0x1941A469, attached))


def subtitles_only() -> bytes:
    """One track of subtitles."""
    entry = track(1, kind=17, codec="S_TEXT/UTF8")
    return file(information(), tracks(entry), cluster(block(0, b"a line"), block(500, b"a line")))


def _many_tracks() -> bytes:
    return file(information(), tracks(*(track(index) for index in range(1, 10_001))), sound())


def _many_chapters() -> bytes:
    return file(information(), tracks(track()), chapters(5_000), sound())


def _content_cases() -> list[Case]:
    silent = frozenset({NO_AUDIO})
    locked = tracks(track(1, encryption()))
    return [
        case("V15", "attachment-only", attachment_only, silent | REFUSED, file_name="font.mkv"),
        case("V15", "subtitles-only", subtitles_only, silent, file_name="titles.mks"),
        case(
            "V16",
            "10000-streams",
            _many_tracks,
            LIMIT,
            memory_mib=128,
        ),
        case("V16", "5000-chapters", _many_chapters, OK, duration_s=1.0),
        case("V16", "5000-chapters-of-1000", _many_chapters, LIMIT, limits={"chapters": 1000}),
        case(
            "V24",
            "encrypted-mkv",
            lambda: file(information(), locked, sound()),
            ENCRYPTED,
            file_name="x.mkv",
        ),
    ]


def cases() -> list[Case]:
    """V31, and the Matroska part of V15, V16 and V24."""
    return [*_size_cases(), *_block_cases(), *_content_cases()]
