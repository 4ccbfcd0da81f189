"""MP4 and QuickTime: an atom writer, and files whose atoms lie.

Source: ISO/IEC 14496-12 (ISO base media file format), QuickTime File Format for "sowt" sound.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

from support.hostile import ENCRYPTED, LIMIT, OK, REFUSED, Case, Site, case

SAMPLE_RATE = 8000
SILENCE = bytes(2 * SAMPLE_RATE)


def atom(kind: bytes, *payload: bytes) -> bytes:
    """One atom with a correct 32-bit size."""
    body = b"".join(payload)
    return struct.pack(">I4s", 8 + len(body), kind) + body


def sized_atom(kind: bytes, size: int, payload: bytes = b"") -> bytes:
    """An atom that claims `size` bytes, whatever it has."""
    return struct.pack(">I4s", size & 0xFFFFFFFF, kind) + payload


def large_atom(kind: bytes, size: int, payload: bytes = b"") -> bytes:
    """An atom with a 64-bit size field that claims `size` bytes."""
    return struct.pack(">I4sQ", 1, kind, size & 0xFFFFFFFFFFFFFFFF) + payload


def full_atom(kind: bytes, *payload: bytes, version: int = 0, flags: int = 0) -> bytes:
    """An atom with version and flags."""
    return atom(kind, struct.pack(">I", version << 24 | flags), *payload)


def table(kind: bytes, count: int, entries: bytes) -> bytes:
    """A sample table that claims `count` entries, whatever it has."""
    return full_atom(kind, struct.pack(">I", count), entries)


def sample_entry(kind: bytes, *extra: bytes) -> bytes:
    """A sound sample entry: mono, 16 bit, 8 kHz."""
    fields = struct.pack(">6xH8xHHHHI", 1, 1, 16, 0, 0, SAMPLE_RATE << 16)
    return atom(kind, fields, *extra)


@dataclass
class Movie:
    """A sound-only movie of uncompressed samples. Change a field to make it lie."""

    entry: bytes = field(default_factory=lambda: sample_entry(b"sowt"))
    samples: bytes = SILENCE
    timescale: int = SAMPLE_RATE
    media_timescale: int = SAMPLE_RATE
    duration: int = SAMPLE_RATE
    stts: bytes | None = None
    stsc: bytes | None = None
    stsz: bytes | None = None
    chunk_offsets: bytes | None = None
    edits: bytes = b""
    moov_extra: bytes = b""

    def to_bytes(self) -> bytes:
        """ftyp, mdat, moov: the first sample lies at byte 28."""
        head = atom(b"ftyp", b"qt  ", bytes(4), b"qt  ")
        return head + atom(b"mdat", self.samples) + self._moov(len(head) + 8)

    def _moov(self, first_sample: int) -> bytes:
        header = full_atom(
            b"mvhd",
            struct.pack(">IIII", 0, 0, self.timescale, self.duration),
            struct.pack(">IH10x", 0x10000, 0x100),
            _MATRIX,
            struct.pack(">24xI", 2),
        )
        track = full_atom(
            b"tkhd",
            struct.pack(">IIIII", 0, 0, 1, 0, self.duration),
            struct.pack(">8xHHHH", 0, 0, 0x100, 0),
            _MATRIX,
            bytes(8),
            flags=7,
        )
        return atom(
            b"moov",
            header,
            self.moov_extra,
            atom(b"trak", track, self.edits, self._media(first_sample)),
        )

    def _media(self, first_sample: int) -> bytes:
        header = full_atom(
            b"mdhd", struct.pack(">IIIIHH", 0, 0, self.media_timescale, self.duration, 0x55C4, 0)
        )
        handler = full_atom(b"hdlr", bytes(4), b"soun", bytes(12), b"sound\0")
        references = atom(
            b"dinf", full_atom(b"dref", struct.pack(">I", 1), full_atom(b"url ", flags=1))
        )
        tables = self._tables(first_sample)
        information = atom(b"minf", full_atom(b"smhd", bytes(4)), references, tables)
        return atom(b"mdia", header, handler, information)

    def _tables(self, first_sample: int) -> bytes:
        count = len(self.samples) // 2
        chunks = 1 if count else 0
        return atom(
            b"stbl",
            full_atom(b"stsd", struct.pack(">I", 1), self.entry),
            self.stts or table(b"stts", chunks, struct.pack(">II", count, 1) * chunks),
            self.stsc or table(b"stsc", chunks, struct.pack(">III", 1, count, 1) * chunks),
            self.stsz or full_atom(b"stsz", struct.pack(">II", 2, count)),
            self.chunk_offsets or table(b"stco", chunks, struct.pack(">I", first_sample) * chunks),
        )


_MATRIX = struct.pack(">9I", 0x10000, 0, 0, 0, 0x10000, 0, 0, 0, 0x40000000)


def nested(kind: bytes, depth: int) -> bytes:
    """`depth` atoms, each the only content of the one around it."""
    sizes = range(8 * depth, 0, -8)
    return b"".join(struct.pack(">I4s", size, kind) for size in sizes)


def nested_meta(depth: int) -> bytes:
    """The same with full atoms, as `meta` is."""
    sizes = range(12 * depth, 0, -12)
    return b"".join(struct.pack(">I4sI", size, b"meta", 0) for size in sizes)


def fragmented(trun_count: int) -> bytes:
    """A movie whose samples are in a fragment that claims `trun_count` of them."""
    extends = atom(b"mvex", full_atom(b"trex", struct.pack(">IIIII", 1, 1, 1, 2, 0)))
    movie = Movie(samples=b"", duration=0, moov_extra=extends).to_bytes()
    run = full_atom(b"trun", struct.pack(">I", trun_count))
    track = atom(b"traf", full_atom(b"tfhd", struct.pack(">I", 1)), run)
    fragment = atom(b"moof", full_atom(b"mfhd", struct.pack(">I", 1)), track)
    return movie + fragment + atom(b"mdat", SILENCE)


def edit_list(count: int, entries: int) -> bytes:
    """An edit list that claims `count` entries and has `entries`."""
    one = struct.pack(">IiI", 1, 0, 0x10000)
    return atom(b"edts", table(b"elst", count, one * entries))


def protected(entry: bytes, original: bytes, scheme: bytes) -> bytes:
    """A sample entry behind a protection scheme, with key identifiers of no meaning."""
    tenc = full_atom(b"tenc", struct.pack(">BBBB", 0, 0, 1, 8), bytes(range(16)))
    information = atom(
        b"sinf",
        atom(b"frma", original),
        full_atom(b"schm", scheme, struct.pack(">I", 0x10000)),
        atom(b"schi", tenc),
    )
    return sample_entry(entry, information)


def key_system() -> bytes:
    """A protection system's own header (pssh) with an identifier of no meaning."""
    return full_atom(b"pssh", bytes(range(16)), struct.pack(">I", 32), bytes(32))


def cut(site: Site, percent: int, *, moov_first: bool) -> bytes:
    """A real M4A cut after `percent` of its bytes."""
    placing = ["-movflags", "+faststart"] if moov_first else []
    whole = site.clips.make(
        "m4a-moov-first" if moov_first else "m4a-moov-last",
        "m4a",
        ["-f", "lavfi", "-i", site.clips.SOURCE, "-c:a", "aac", *placing],
    ).read_bytes()
    return whole[: len(whole) * percent // 100]


def _cut_cases() -> list[Case]:
    cases = []
    for percent in (10, 50, 90, 99):
        cases.append(
            case(
                "V04",
                f"moov-last-cut-{percent}",
                lambda site, percent=percent: cut(site, percent, moov_first=False),
                REFUSED,
                file_name="cut.m4a",
            )
        )
        cases.append(
            case(
                "V04",
                f"moov-first-cut-{percent}",
                lambda site, percent=percent: cut(site, percent, moov_first=True),
                REFUSED | {OK},
                file_name="cut.m4a",
            )
        )
    return cases


def _atom_cases() -> list[Case]:
    head = atom(b"ftyp", b"qt  ", bytes(4), b"qt  ")
    return [
        case("V05", "size-0", lambda: head + sized_atom(b"moov", 0, bytes(64)), REFUSED),
        case("V05", "size-4", lambda: head + sized_atom(b"moov", 4, bytes(64)), REFUSED),
        case("V05", "size-4-gib", lambda: head + sized_atom(b"moov", 0xFFFFFFFF), REFUSED),
        case("V05", "size-64-bit-overflow", lambda: head + large_atom(b"moov", 2**64 - 1), REFUSED),
        case("V05", "size-64-bit-negative", lambda: head + large_atom(b"moov", 2**63), REFUSED),
        case("V05", "size-64-bit-zero", lambda: head + large_atom(b"moov", 0), REFUSED),
        case("V05", "ftyp-4-gib", lambda: sized_atom(b"ftyp", 0xFFFFFFFF, b"qt  " * 8), REFUSED),
        case("V05", "udta-10000-deep", lambda: head + nested(b"udta", 10_000), REFUSED),
        case("V05", "moov-10000-deep", lambda: head + nested(b"moov", 10_000), REFUSED),
        case(
            "V05", "trak-10000-deep", lambda: head + atom(b"moov", nested(b"trak", 10_000)), REFUSED
        ),
        case("V05", "meta-10000-deep", lambda: head + nested_meta(10_000), REFUSED),
        case("V05", "whole-movie", lambda: Movie().to_bytes(), OK, duration_s=1.0),
    ]


def _table_cases() -> list[Case]:
    huge = 0xFFFFFFFF
    broken = REFUSED | {OK, LIMIT}
    eight = bytes(8)
    return [
        case(
            "V06", "stts-count", lambda: Movie(stts=table(b"stts", huge, eight)).to_bytes(), broken
        ),
        case(
            "V06", "stsc-count", lambda: Movie(stsc=table(b"stsc", huge, eight)).to_bytes(), broken
        ),
        case(
            "V06",
            "stsz-count",
            lambda: Movie(stsz=full_atom(b"stsz", struct.pack(">II", 0, huge), eight)).to_bytes(),
            broken,
        ),
        case(
            "V06",
            "stsz-uniform-count",
            lambda: Movie(stsz=full_atom(b"stsz", struct.pack(">II", 2, huge))).to_bytes(),
            broken,
        ),
        case(
            "V06",
            "co64-count",
            lambda: Movie(chunk_offsets=table(b"co64", huge, eight)).to_bytes(),
            broken,
        ),
        case(
            "V06",
            "co64-beyond-the-end",
            lambda: Movie(chunk_offsets=table(b"co64", 1, struct.pack(">Q", 2**62))).to_bytes(),
            broken,
        ),
        case("V06", "elst-count", lambda: Movie(edits=edit_list(10**9, 1)).to_bytes(), broken),
        case(
            "V06",
            "elst-50000-entries",
            lambda: Movie(edits=edit_list(50_000, 50_000)).to_bytes(),
            broken,
            limits={"duration_s": 600},
        ),
        case("V06", "stts-longest-delta", _max_delta, broken),
        case("V06", "timescale-0", lambda: Movie(timescale=0).to_bytes(), broken),
        case("V06", "media-timescale-0", lambda: Movie(media_timescale=0).to_bytes(), broken),
        case("V06", "trun-count", lambda: fragmented(huge), broken),
        case("V06", "stsd-count", lambda: Movie(entry=b"").to_bytes(), broken),
    ]


def _max_delta() -> bytes:
    return Movie(stts=table(b"stts", 1, struct.pack(">II", SAMPLE_RATE, 0x7FFFFFFF))).to_bytes()


def _protected_cases() -> list[Case]:
    locked = frozenset({ENCRYPTED})
    return [
        case(
            "V24",
            "m4p-drms",
            lambda: Movie(entry=protected(b"drms", b"mp4a", b"itun")).to_bytes(),
            locked,
            file_name="bought.m4p",
        ),
        case(
            "V24",
            "common-encryption",
            lambda: Movie(
                entry=protected(b"enca", b"sowt", b"cenc"), moov_extra=key_system()
            ).to_bytes(),
            locked,
            file_name="stream.mp4",
        ),
        case(
            "V24",
            "common-encryption-aac",
            lambda: Movie(
                entry=protected(b"enca", b"mp4a", b"cbcs"), moov_extra=key_system()
            ).to_bytes(),
            locked,
            file_name="stream.mp4",
        ),
    ]


def cases() -> list[Case]:
    """V04, V05, V06 and the MP4 part of V24."""
    return [*_cut_cases(), *_atom_cases(), *_table_cases(), *_protected_cases()]
