"""Small image files that claim, contain or repeat too much."""

from __future__ import annotations

import io
import struct
import zlib
from functools import cache
from typing import Any

from PIL import Image

_PIECE = bytes(1 << 20)


def chunk(kind: bytes, data: bytes) -> bytes:
    check = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", check)


@cache
def _packed_piece() -> bytes:
    packer = zlib.compressobj(9, wbits=-15)
    return packer.compress(_PIECE) + packer.flush(zlib.Z_FULL_FLUSH)


def zeros(count: int) -> bytes:
    """`count` zero bytes, compressed, from one repeated piece."""
    pieces, rest = divmod(count, len(_PIECE))
    last = zlib.compressobj(9, wbits=-15)
    end = last.compress(bytes(rest)) + last.flush()
    check = (count % 65_521) << 16 | 1  # Adler-32, RFC 1950.
    packed = _packed_piece() * pieces if pieces else b""
    return b"\x78\xda" + packed + end + struct.pack(">I", check)


def png(width: int, height: int, *, depth: int = 8, colour: int = 2, more: bytes = b"") -> bytes:
    """A complete black PNG, with extra chunks before its data."""
    samples = {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    line = 1 + (width * samples * depth + 7) // 8
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0)),
            more,
            chunk(b"IDAT", zeros(line * height)),
            chunk(b"IEND", b""),
        ]
    )


def claimed(width: int, height: int) -> bytes:
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", b"x")


def encoded(picture: Image.Image, form: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return buffer.getvalue()


def plain(mode: str = "RGB", size: tuple[int, int] = (64, 48)) -> Image.Image:
    return Image.effect_mandelbrot(size, (-2, -1.5, 1, 1.5), 50).convert(mode)


def gif(frames: int, size: tuple[int, int] = (2, 2)) -> bytes:
    head = b"GIF89a" + struct.pack("<HHBBB", *size, 0x80, 0, 0) + bytes(6)
    frame = b"\x2c" + struct.pack("<HHHHB", 0, 0, 2, 2, 0) + b"\x02\x03\x84\x8f\x05\x00"
    return head + frame * frames + b"\x3b"


def apng(frames: int) -> bytes:
    """A PNG with many frames of one pixel."""
    control = struct.pack(">IIIIHHBB", 1, 1, 0, 0, 1, 10, 0, 0)
    parts = [chunk(b"acTL", struct.pack(">II", frames, 0))]
    parts.append(chunk(b"fcTL", struct.pack(">I", 0) + control))
    parts.append(chunk(b"IDAT", zeros(4)))
    for number in range(1, frames):
        parts.append(chunk(b"fcTL", struct.pack(">I", 2 * number - 1) + control))
        parts.append(chunk(b"fdAT", struct.pack(">I", 2 * number) + zeros(4)))
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(parts) + chunk(b"IEND", b"")


def tiff(*entries: tuple[int, int, int, int], pages: int = 1, loop: bool = False) -> bytes:
    """A TIFF with gray pages of 2 x 2 pixels; the entries replace each page's own."""
    own = {256: (256, 3, 1, 2), 257: (257, 3, 1, 2), 258: (258, 3, 1, 8), 259: (259, 3, 1, 1),
           262: (262, 3, 1, 1), 273: (273, 4, 1, 8), 277: (277, 3, 1, 1), 278: (278, 3, 1, 2),
           279: (279, 4, 1, 4)}  # fmt: skip
    own |= {entry[0]: entry for entry in entries}
    folder = struct.pack("<H", len(own))
    folder += b"".join(struct.pack("<HHII", *own[tag]) for tag in sorted(own))
    size = len(folder) + 4
    first = 12
    made = [b"II*\x00", struct.pack("<I", first), b"\x00\x40\x80\xff"]
    for number in range(pages):
        last = number == pages - 1
        following = 0 if last and not loop else first if last else first + size * (number + 1)
        made += [folder, struct.pack("<I", following)]
    return b"".join(made)


def scans(count: int, size: tuple[int, int]) -> bytes:
    """A progressive JPEG with one color, whose last scan (a refinement) is repeated."""
    whole = encoded(Image.new("L", size, 77), "JPEG", progressive=True, quality=50)
    starts = [at for at in range(len(whole) - 1) if whole[at : at + 2] == b"\xff\xda"]
    last = whole[starts[-1] : -2]
    return whole[:-2] + last * (count - len(starts)) + whole[-2:]


def resized(jpeg: bytes, width: int, height: int) -> bytes:
    at = next(n for n in range(len(jpeg)) if jpeg[n] == 0xFF and jpeg[n + 1] in (0xC0, 0xC2))
    return jpeg[: at + 5] + struct.pack(">HH", height, width) + jpeg[at + 9 :]


def exif(*entries: tuple[int, int, int, int], following: int = 0) -> bytes:
    folder = struct.pack("<H", len(entries))
    folder += b"".join(struct.pack("<HHII", *entry) for entry in entries)
    return b"II*\x00" + struct.pack("<I", 8) + folder + struct.pack("<I", following)
