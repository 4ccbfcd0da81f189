"""Matroska elements: wrong sizes, too deep, or encrypted (RFC 8794, EBML; RFC 9559, Matroska)."""

from __future__ import annotations

import struct

from support.hostile import ENCRYPTED, LIMIT, NO_AUDIO, OK, PERHAPS, REFUSED, Case, case, group

_SEGMENT, _TRACKS, _ATTACHMENTS = 0x18538067, 0x1654AE6B, 0x1941A469
_HUGE = 2**56 - 2


def element(identifier: int, *payload: bytes | str | int) -> bytes:
    """One element with a correct size of eight bytes; numbers have the shortest form."""
    body = b"".join(_bytes(one) for one in payload)
    return sized(identifier, len(body), body)


def _bytes(value: bytes | str | int) -> bytes:
    if isinstance(value, int):
        return value.to_bytes(max(1, (value.bit_length() + 7) // 8), "big")
    return value.encode() if isinstance(value, str) else value


def sized(identifier: int, size: int, body: bytes = b"") -> bytes:
    """An element that claims `size` bytes; a size with all bits set means "unknown"."""
    return _bytes(identifier) + (1 << 56 | size).to_bytes(8, "big") + body


def track(*extra: bytes, index: int = 1, rate: float = 8000) -> bytes:
    audio = element(
        0xE1, element(0xB5, struct.pack(">d", rate)), element(0x9F, 1), element(0x6264, 16)
    )
    fields = element(0xD7, index), element(0x73C5, index), element(0x83, 2)
    return element(0xAE, *fields, element(0x86, "A_PCM/INT/LIT"), audio, *extra)


def block(time_ms: int, payload: bytes, flags: int = 0x80) -> bytes:
    return element(0xA3, b"\x81" + struct.pack(">hB", time_ms, flags), payload)


def cluster(*blocks: bytes) -> bytes:
    return element(0x1F43B675, element(0xE7, 0), *blocks)


HEAD = element(0x1A45DFA3, element(0x4282, "matroska"), element(0x4287, 4), element(0x4285, 2))
INFORMATION = element(0x1549A966, element(0x2AD7B1, 1_000_000), element(0x4D80, "test"))
#: One second of silence.
SOUND = cluster(*(block(100 * step, bytes(1600)) for step in range(10)))
_BODY = INFORMATION + element(_TRACKS, track()) + SOUND


def file(*parts: bytes, entries: tuple[bytes, ...] = (track(),)) -> bytes:
    """A file with one segment: its tracks, the parts, and one second of sound."""
    return HEAD + element(_SEGMENT, INFORMATION, element(_TRACKS, *entries), *parts, SOUND)


def attachment(name: str, kind: str, content: bytes) -> bytes:
    attached = element(0x61A7, element(0x466E, name), element(0x4660, kind), content)
    return element(_ATTACHMENTS, attached)


def _nested_tags(depth: int) -> bytes:
    body = element(0x45A3, "NAME") + element(0x4487, "value")
    for _ in range(depth):
        body = element(0x67C8, element(0x45A3, "N"), body)
    return element(0x1254C367, element(0x7373, element(0x63C0), body))


def _nested_segments(depth: int) -> bytes:
    return b"".join(sized(_SEGMENT, 12 * (depth - level)) for level in range(depth))


def _encoded(kind: int, *how: bytes) -> bytes:
    """ContentEncodings: compressed or encrypted frames."""
    about = element(0x5031, 0), element(0x5032, 1), element(0x5033, kind)
    return file(entries=(track(element(0x6D80, element(0x6240, *about, *how))),))


def _laced(kind: int, sizes: bytes, payload: bytes) -> bytes:
    """A file whose only block has 256 laced frames; `kind` 1 is Xiph, 2 fixed, 3 EBML."""
    lacing = block(0, b"\xff" + sizes + payload, flags=0x80 | kind << 1)
    return HEAD + element(_SEGMENT, INFORMATION, element(_TRACKS, track()), cluster(lacing))


def _many_chapters(_: object) -> bytes:
    atoms = [
        element(0xB6, element(0x73C4, number + 1), element(0x91, number * 1_000_000),
                element(0x92, (number + 1) * 1_000_000),
                element(0x80, element(0x85, f"Chapter {number}"), element(0x437C, "eng")))
        for number in range(5_000)
    ]  # fmt: skip
    return file(element(0x1043A770, element(0x45B9, *atoms)))


def _many_tracks(_: object) -> bytes:
    return file(entries=tuple(track(index=number) for number in range(1, 10_001)))


def _wrong_cases() -> list[Case]:
    kind, codec = element(0x83, 2), b"A_PCM/INT/LIT"
    long_number = element(0xAE, element(0xD7, bytes(8) + b"\1"), kind, element(0x86, codec))
    long_string = element(0xAE, element(0xD7, 1), kind, sized(0x86, 2**30, codec))
    refused = {
        "tracks-of-64-pib": HEAD + element(_SEGMENT, INFORMATION, sized(_TRACKS, _HUGE, track())),
        "header-of-64-pib": sized(0x1A45DFA3, _HUGE, HEAD),
        "segments-10000-deep": HEAD + _nested_segments(10_000),
    }
    perhaps = {
        "segment-of-64-pib": HEAD + sized(_SEGMENT, _HUGE, _BODY),
        "string-of-1-gib": file(entries=(long_string,)),
        "codec-data-of-1-gib": file(entries=(track(sized(0x63A2, 2**30, bytes(16))),)),
        "size-of-zero-byte": HEAD + b"\x18\x53\x80\x67\x00" + _BODY,
        "number-of-nine-bytes": file(entries=(long_number,)),
        "lacing-256-frames-xiph": _laced(1, b"\2" * 255, bytes(512)),
        "lacing-256-frames-ebml": _laced(3, b"\x82" + b"\xbf" * 254, bytes(512)),
        "lacing-xiph-sizes-lie": _laced(1, b"\xff" * 255, bytes(64)),
        "lacing-ebml-sizes-lie": _laced(3, b"\x08" + b"\xff" * 254, bytes(64)),
        "lacing-without-a-count": _laced(1, b"", b""),
        "zlib-that-is-none": _encoded(0, element(0x5034, element(0x4254, 0))),
        "compression-unknown": _encoded(0, element(0x5034, element(0x4254, 9))),
        "block-of-no-track": file(entries=(track(index=2),)),
        "attachment-of-1-gib": file(attachment("a.ttf", "font/ttf", sized(0x465C, 2**30))),
    }
    beyond = {
        "tags-10000-deep": lambda _: file(_nested_tags(10_000)),
        "rate-nan": file(entries=(track(rate=float("nan")),)),
        "rate-infinite": file(entries=(track(rate=float("inf")),)),
    }
    return [
        *group("V31", REFUSED, refused),
        *group("V31", PERHAPS, perhaps),
        *group("V31", PERHAPS | {LIMIT}, beyond),
    ]


def cases() -> list[Case]:
    """The cases V31, and the Matroska part of V15, V16 and V24."""
    whole = {"whole": file(), "unknown-sizes": HEAD + sized(_SEGMENT, 2**56 - 1, _BODY)}
    font = attachment("a.ttf", "font/ttf", element(0x46AE, 7) + element(0x465C, bytes(256)))
    title = element(0xAE, element(0xD7, 1), element(0x73C5, 1), element(0x83, 17),
                    element(0x86, "S_TEXT/UTF8"))  # fmt: skip
    lines = element(_TRACKS, title), cluster(block(0, b"a line"), block(500, b"a line"))
    cipher = element(0x5035, element(0x47E1, 5), element(0x47E2, bytes(range(16))))
    return [
        *group("V31", OK, whole, duration_s=1.0),
        case("V31", "lacing-256-frames-fixed", _laced(2, b"", bytes(512)), OK),
        *_wrong_cases(),
        case(
            "V15",
            "attachment-only",
            HEAD + element(_SEGMENT, INFORMATION, font),
            REFUSED,
            file_name="font.mkv",
        ),
        case(
            "V15",
            "subtitles-only",
            HEAD + element(_SEGMENT, INFORMATION, *lines),
            NO_AUDIO,
            file_name="titles.mks",
        ),
        case("V16", "10000-streams", _many_tracks, LIMIT, memory_mib=128),
        case("V16", "5000-chapters", _many_chapters, OK, duration_s=1.0),
        case("V16", "5000-chapters-of-1000", _many_chapters, LIMIT, limits={"chapters": 1000}),
        case("V24", "encrypted-mkv", _encoded(1, cipher), ENCRYPTED, file_name="x.mkv"),
    ]
