"""WAV: headers that lie, the smallest sounds, and files that are two things at once.

Source: Multimedia Programming Interface and Data Specifications 1.0 (RIFF WAVE), and
"New Multimedia Data Types" for the extensible format.
"""

from __future__ import annotations

import io
import math
import struct
import zipfile
from dataclasses import dataclass

from support.hostile import LIMIT, OK, REFUSED, Case, case, noise
from support.hostile_mp4 import Movie

SAMPLE_RATE = 8000


@dataclass
class Wave:
    """A RIFF WAVE of one second. Change a field to make it lie; None is the truth."""

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
        """The file: RIFF, "fmt ", whatever `extra` is, data."""
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
    """A LIST chunk of a kind."""
    return chunk(b"LIST", kind + b"".join(chunks))


def _zip(content: bytes) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("inside.wav", content)
    return out.getvalue()


def _page_in_wave() -> bytes:
    page = b"<!doctype html><html><body><script>alert(1)</script></body></html>"
    return Wave(extra=list_chunk(b"INFO", chunk(b"ICMT", page)), samples=bytes(16_000)).to_bytes()


def _size_cases() -> list[Case]:
    whole = bytes(2 * SAMPLE_RATE)
    some = frozenset({OK}) | REFUSED
    return [
        case("V09", "data-size-0", lambda: Wave(data_size=0).to_bytes(), some),
        case(
            "V09",
            "data-size-unknown",
            lambda: Wave(data_size=0xFFFFFFFF).to_bytes(),
            OK,
            duration_s=1.0,
        ),
        case("V09", "data-size-odd", lambda: Wave(data_size=15_999).to_bytes(), OK, duration_s=1.0),
        case(
            "V09",
            "data-size-larger",
            lambda: Wave(data_size=160_000).to_bytes(),
            OK,
            duration_s=1.0,
        ),
        case("V09", "riff-size-0", lambda: Wave(riff_size=0).to_bytes(), OK, duration_s=1.0),
        case(
            "V09",
            "odd-number-of-bytes",
            lambda: Wave(samples=whole + b"\0").to_bytes(),
            OK,
            duration_s=1.0,
        ),
        case("V09", "chunk-of-4-gib", _huge_chunk, some),
        case("V09", "info-tag-of-1-gib", _huge_tag, some),
    ]


def _huge_chunk() -> bytes:
    return Wave(extra=struct.pack("<4sI", b"junk", 0xFFFFFFFE)).to_bytes()


def _huge_tag() -> bytes:
    size = 1 << 30
    tag = struct.pack("<4sI4s4sI", b"LIST", size + 12, b"INFO", b"INAM", size) + b"short"
    return Wave(extra=tag).to_bytes()


def _format_cases() -> list[Case]:
    bad = REFUSED | {LIMIT}
    some = bad | {OK}

    def wave(name: str, allowed: frozenset[str], content: Wave) -> Case:
        return case("V10", name, content.to_bytes, allowed, file_name="format.wav")

    return [
        wave("channels-0", bad, Wave(channels=0)),
        wave("channels-255", bad, Wave(channels=255)),
        wave("channels-65535", bad, Wave(channels=65_535)),
        wave("rate-0", bad, Wave(sample_rate=0)),
        wave("rate-1", some, Wave(sample_rate=1, samples=bytes(8))),
        wave("rate-4294967295", bad, Wave(sample_rate=0xFFFFFFFF)),
        wave("rate-2000000", frozenset({LIMIT}), Wave(sample_rate=2_000_000)),
        wave("bits-0", bad, Wave(bits=0, block_align=2)),
        wave("bits-255", bad, Wave(bits=255)),
        wave("block-align-0", some, Wave(block_align=0)),
        wave("block-align-65535", some, Wave(block_align=65_535)),
        wave("byte-rate-0", some, Wave(byte_rate=0)),
        wave("byte-rate-highest", some, Wave(byte_rate=0xFFFFFFFF)),
        wave("format-tag-unknown", bad, Wave(format_tag=0x4242)),
        wave("format-tag-extensible-cut", some, Wave(format_tag=0xFFFE)),
        wave("adpcm-block-align-0", some, Wave(format_tag=2, bits=4, block_align=0)),
    ]


def _float_cases() -> list[Case]:
    """Samples that are no numbers, or too large to compute with: an encoder must survive them."""

    def floats(name: str, *values: float) -> Case:
        tone = [0.5, -0.5] * 400
        samples = struct.pack("<8000f", *((*tone, *values) * 8000)[:8000])
        content = Wave(format_tag=3, bits=32, samples=samples)
        some = REFUSED | {OK}
        return case("V10", f"float-{name}", content.to_bytes, some, file_name="float.wav")

    return [
        floats("nan", math.nan),
        floats("infinite", math.inf, -math.inf),
        floats("largest", 3.4e38, -3.4e38),
        floats("large", 1e20, -1e20),
        floats("denormal", 1e-45),
        floats("mixed", math.nan, 1e38, -math.inf, 1e-45),
        case("V10", "float-all-nan", _all_nan, REFUSED | {OK}, file_name="float.wav"),
    ]


def _all_nan() -> bytes:
    return Wave(format_tag=3, bits=32, samples=struct.pack("<f", math.nan) * 8000).to_bytes()


def _short_cases() -> list[Case]:
    return [
        case(
            "V11",
            "header-only",
            lambda: Wave(samples=b"").to_bytes(),
            REFUSED,
            file_name="nothing.wav",
        ),
        case(
            "V11",
            "one-sample",
            lambda: Wave(samples=b"\1\0").to_bytes(),
            OK,
            duration_s=1 / SAMPLE_RATE,
        ),
        case(
            "V11",
            "ten-milliseconds",
            lambda: Wave(samples=bytes(160)).to_bytes(),
            OK,
            duration_s=0.01,
        ),
    ]


def _polyglot_cases() -> list[Case]:
    return [
        case("V32", "wav-and-html", _page_in_wave, OK, file_name="pwn.html", duration_s=1.0),
        case(
            "V32",
            "mp4-and-zip",
            lambda: Movie().to_bytes() + _zip(b"nothing"),
            OK,
            file_name="both.zip",
            duration_s=1.0,
        ),
        case(
            "V32", "zip-of-a-wav", lambda: _zip(Wave().to_bytes()), REFUSED, file_name="inside.zip"
        ),
        case(
            "V32",
            "wav-after-a-page",
            lambda: b"<html>" + noise(4096, "page") + Wave().to_bytes(),
            REFUSED,
            file_name="pwn.html",
        ),
    ]


def cases() -> list[Case]:
    """V09, V10, V11 and V32."""
    return [*_size_cases(), *_format_cases(), *_float_cases(), *_short_cases(), *_polyglot_cases()]
