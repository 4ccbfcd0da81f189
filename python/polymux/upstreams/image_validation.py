"""Whether pictures that others have made are whole: by their parts, and without their pixels.

What decodes strangers' pictures is a process of its own, which a server that only asks others may
not have. Formats tell by themselves where they end, and PNG also what its pixels must come to.
"""

from __future__ import annotations

import mmap
import struct
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    Bytes = bytes | mmap.mmap

#: Of width and height together: ten times as wide and high as two million, which upscalers make.
MAX_PIXELS = 200_000_000
_PIECE_BYTES = 1 << 18
#: Samples of a pixel by PNG's colour type (ISO/IEC 15948, 11.2.2).
_PNG_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_GIF_PICTURE, _GIF_MORE, _GIF_END = 0x2C, 0x21, 0x3B
_GIF_TABLE = 0x80
#: Frames of JPEG (ITU-T T.81, B.1.1.3): all kinds, without the tables that lie among their codes.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_SCAN, _JPEG_FILL = 0xDA, 0xFF
_JPEG_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))


class BrokenPictureError(Exception):
    """A picture that is cut off, broken or too large; the message says which."""


def check_file(path: Path, content_type: str) -> None:
    """Raises where the picture in a file is not whole; takes no more memory for a large one.

    Args:
        content_type: What its first bytes say.

    Raises:
        BrokenPictureError: It is not.
        OSError: It cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        check(data, content_type)


def check(data: Bytes, content_type: str) -> None:
    r"""Raises where a picture is not whole.

    Args:
        data: All of it; what stands behind its end is nobody's business.
        content_type: What its first bytes say.

    Raises:
        BrokenPictureError: It is not.

    Example:
        >>> from polymux.upstreams.image_validation import check
        >>> check(b"GIF89a\1\0\1\0\0\0\0,\0\0\0\0\1\0\1\0\0\2\2D\1\0;", "image/gif")
    """
    look = _LOOKS.get(content_type)
    if look is None:
        return
    try:
        width, height = look(data)
    except (IndexError, struct.error, zlib.error):
        raise BrokenPictureError("it is broken or cut off") from None
    if not width or not height:
        raise BrokenPictureError("it has no pixels")
    _check_size(width, height)


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise BrokenPictureError(f"{width} x {height} pixels are too many")


def _cut_off() -> BrokenPictureError:
    return BrokenPictureError("it is cut off")


def _png(data: Bytes) -> tuple[int, int]:
    (length, kind) = struct.unpack_from(">I4s", data, 8)
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    if (length, kind) != (13, b"IHDR") or colour not in _PNG_SAMPLES:
        raise BrokenPictureError("its header is broken")
    _check_size(width, height)
    row = 1 + (width * depth * _PNG_SAMPLES[colour] + 7) // 8
    pixels = _Inflated(0 if interlaced else row * height)
    at = 8
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            raise _cut_off()
        if kind[0] & 0x20 == 0:  # Others need nobody to read them.
            found = 0
            for start in range(at + 4, end, _PIECE_BYTES):
                found = zlib.crc32(data[start : min(end, start + _PIECE_BYTES)], found)
            if found != struct.unpack_from(">I", data, end)[0]:
                raise BrokenPictureError("a checksum in it is wrong")
        if kind == b"IDAT":
            for start in range(at + 8, end, _PIECE_BYTES):
                pixels.take(data[start : min(end, start + _PIECE_BYTES)])
        at = end + 4
    if not pixels.complete:
        raise _cut_off()
    return width, height


class _Inflated:
    """Counts what deflated pixels come to, up to what they must."""

    def __init__(self, wanted_bytes: int) -> None:
        self._left_bytes = wanted_bytes
        self._stream = zlib.decompressobj()

    def take(self, data: bytes) -> None:
        while data and self._left_bytes > 0 and not self._stream.eof:
            self._left_bytes -= len(self._stream.decompress(data, _PIECE_BYTES))
            data = self._stream.unconsumed_tail

    @property
    def complete(self) -> bool:
        return self._left_bytes <= 0


def _jpeg(data: Bytes) -> tuple[int, int]:
    size, at = (0, 0), 2
    while True:
        if data[at] != _JPEG_FILL:
            raise BrokenPictureError("it is broken")
        while data[at] == _JPEG_FILL:
            at += 1
        marker = data[at]
        at += 1
        if marker in _JPEG_ALONE:
            continue
        (length,) = struct.unpack_from(">H", data, at)
        if marker in _JPEG_FRAMES:
            height, width = struct.unpack_from(">HH", data, at + 3)
            size = width, height
        at += length
        if marker == _JPEG_SCAN:
            # A scan holds no other FF D9; a small picture within the header lies before it.
            if data.find(b"\xff\xd9", at) < 0:
                raise _cut_off()
            return size


def _gif(data: Bytes) -> tuple[int, int]:
    width, height, flags = struct.unpack_from("<HHB", data, 6)
    at = 13 + _table_bytes(flags)
    pictures = 0
    while data[at] != _GIF_END:
        if data[at] == _GIF_PICTURE:
            pictures += 1
            at += 11 + _table_bytes(data[at + 9])
        elif data[at] == _GIF_MORE:
            at += 2
        else:
            raise BrokenPictureError("it is broken")
        while data[at]:
            at += 1 + data[at]
        at += 1
    return (width, height) if pictures else (0, 0)


def _table_bytes(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & _GIF_TABLE else 0


def _webp(data: Bytes) -> tuple[int, int]:
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    if end > len(data) + 1:  # Of an odd length the last byte is sometimes left out.
        raise _cut_off()
    at, size, canvas = 12, (0, 0), (0, 0)
    while at + 8 <= end:
        kind, length = struct.unpack_from("<4sI", data, at)
        if at + 8 + length > len(data):
            raise _cut_off()
        if kind == b"VP8X":
            canvas = (_three(data, at + 12) + 1, _three(data, at + 15) + 1)
        elif kind == b"ANMF":
            size = canvas
        elif kind == b"VP8 ":
            width, height = struct.unpack_from("<HH", data, at + 14)
            size = width & 0x3FFF, height & 0x3FFF
        elif kind == b"VP8L":
            (bits,) = struct.unpack_from("<I", data, at + 9)
            size = (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
        at += 8 + length + length % 2
    return size


def _three(data: Bytes, at: int) -> int:
    return data[at] | data[at + 1] << 8 | data[at + 2] << 16


_LOOKS: Mapping[str, Callable[[Bytes], tuple[int, int]]] = {
    "image/png": _png,
    "image/jpeg": _jpeg,
    "image/gif": _gif,
    "image/webp": _webp,
}
