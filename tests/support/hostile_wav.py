"""WAV files: wrong headers, the shortest sounds, and files of two formats at once.

Source: Multimedia Programming Interface and Data Specifications 1.0 (RIFF WAVE), and "New
Multimedia Data Types" for the extensible format.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from dataclasses import dataclass

from support.hostile import LIMIT, OK, PERHAPS, REFUSED, Case, case, group, noise

SAMPLE_RATE = 8000


@dataclass
class Wave:
    """One second of RIFF WAVE. A field changes the header; None means the correct value."""

    samples: bytes = bytes(2 * SAMPLE_RATE)
    format_tag: int = 1
    channels: int = 1
    sample_rate: int = SAMPLE_RATE
    bits: int = 16
    block_align: int | None = None
    byte_rate: int | None = None
    data_size: int | None = None
    riff_size: int | None = None
    extra: bytes = b""

    def to_bytes(self) -> bytes:
        align = self.block_align
        if align is None:
            align = self.channels * self.bits // 8
        rate = self.sample_rate * align if self.byte_rate is None else self.byte_rate
        form = struct.pack(
            "<HHIIHH",
            self.format_tag,
            self.channels,
            self.sample_rate & 0xFFFFFFFF,
            rate & 0xFFFFFFFF,
            align & 0xFFFF,
            self.bits,
        )
        size = len(self.samples) if self.data_size is None else self.data_size
        chunks = chunk(b"fmt ", form) + self.extra
        chunks += struct.pack("<4sI", b"data", size & 0xFFFFFFFF) + self.samples
        total = 4 + len(chunks) if self.riff_size is None else self.riff_size
        return struct.pack("<4sI4s", b"RIFF", total & 0xFFFFFFFF, b"WAVE") + chunks


def chunk(kind: bytes, payload: bytes) -> bytes:
    """One RIFF chunk, padded to an even length."""
    return struct.pack("<4sI", kind, len(payload)) + payload + bytes(len(payload) % 2)


def list_chunk(kind: bytes, *chunks: bytes) -> bytes:
    return chunk(b"LIST", kind + b"".join(chunks))


def _size_cases() -> list[Case]:
    size = 1 << 30
    huge_tag = struct.pack("<4sI4s4sI", b"LIST", size + 12, b"INFO", b"INAM", size) + b"short"
    perhaps = {
        "data-size-0": Wave(data_size=0),
        "chunk-of-4-gib": Wave(extra=struct.pack("<4sI", b"junk", 0xFFFFFFFE)),
        "info-tag-of-1-gib": Wave(extra=huge_tag),
    }
    whole = {
        "data-size-unknown": Wave(data_size=0xFFFFFFFF),
        "data-size-odd": Wave(data_size=15_999),
        "data-size-larger": Wave(data_size=160_000),
        "riff-size-0": Wave(riff_size=0),
        "odd-number-of-bytes": Wave(samples=bytes(2 * SAMPLE_RATE + 1)),
    }
    return [*_waves("V09", PERHAPS, perhaps), *_waves("V09", OK, whole, duration_s=1.0)]


def _waves(
    identifier: str,
    allowed: frozenset[str] | str,
    waves: dict[str, Wave],
    duration_s: float | None = None,
) -> list[Case]:
    contents = {name: one.to_bytes() for name, one in waves.items()}
    return group(identifier, allowed, contents, file_name="sound.wav", duration_s=duration_s)


def _format_cases() -> list[Case]:
    bad = {
        "channels-0": Wave(channels=0),
        "channels-255": Wave(channels=255),
        "channels-65535": Wave(channels=65_535),
        "rate-0": Wave(sample_rate=0),
        "rate-4294967295": Wave(sample_rate=0xFFFFFFFF),
        "bits-0": Wave(bits=0, block_align=2),
        "bits-255": Wave(bits=255),
        "format-tag-unknown": Wave(format_tag=0x4242),
    }
    odd = {
        "rate-1": Wave(sample_rate=1, samples=bytes(8)),
        "block-align-0": Wave(block_align=0),
        "block-align-65535": Wave(block_align=65_535),
        "byte-rate-0": Wave(byte_rate=0),
        "byte-rate-highest": Wave(byte_rate=0xFFFFFFFF),
        "format-tag-extensible-cut": Wave(format_tag=0xFFFE),
        "adpcm-block-align-0": Wave(format_tag=2, bits=4, block_align=0),
    }
    return [
        *_waves("V10", REFUSED | {LIMIT}, bad),
        *_waves("V10", LIMIT, {"rate-2000000": Wave(sample_rate=2_000_000)}),
        *_waves("V10", PERHAPS | {LIMIT}, odd),
    ]


def _float_cases() -> list[Case]:
    """NaN, infinite and huge samples, which must not crash an encoder."""

    def floats(*values: float, tone: tuple[float, ...] = (0.5, -0.5) * 400) -> Wave:
        period = (*tone, *values)
        samples = struct.pack("<8000f", *(period * (8000 // len(period) + 1))[:8000])
        return Wave(format_tag=3, bits=32, samples=samples)

    found = {
        "float-nan": floats(math.nan),
        "float-all-nan": floats(math.nan, tone=()),
        "float-infinite": floats(math.inf, -math.inf),
        "float-largest": floats(3.4e38, -3.4e38),
        "float-denormal": floats(1e-45),
        "float-mixed": floats(math.nan, 1e38, -math.inf, 1e-45),
    }
    return _waves("V10", PERHAPS, found)


def _zip(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.wav", content)
    return out.getvalue()


def _polyglot_cases() -> list[Case]:
    page = b"<!doctype html><html><body><script>alert(1)</script></body></html>"
    wave_and_page = Wave(extra=list_chunk(b"INFO", chunk(b"ICMT", page))).to_bytes()
    page_and_wave = b"<html>" + noise(4096, "page") + Wave().to_bytes()
    inside = _zip(Wave().to_bytes())
    return [
        case("V32", "wav-and-html", wave_and_page, OK, file_name="pwn.html", duration_s=1.0),
        case(
            "V32",
            "mp4-and-zip",
            lambda site: site.clips.data("mov") + _zip(b"nothing"),
            OK,
            file_name="both.zip",
            duration_s=2.0,
        ),
        case("V32", "zip-of-a-wav", inside, REFUSED, file_name="inside.zip"),
        case("V32", "wav-after-a-page", page_and_wave, REFUSED, file_name="pwn.html"),
    ]


def cases() -> list[Case]:
    """The cases V09, V10, V11 and V32."""
    return [
        *_size_cases(),
        *_format_cases(),
        *_float_cases(),
        *_waves("V11", REFUSED, {"header-only": Wave(samples=b"")}),
        *_waves("V11", OK, {"one-sample": Wave(samples=b"\1\0")}, 1 / SAMPLE_RATE),
        *_waves("V11", OK, {"ten-milliseconds": Wave(samples=bytes(160))}, 0.01),
        *_polyglot_cases(),
    ]
