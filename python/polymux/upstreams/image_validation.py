"""Check whether images from upstreams are complete, without decoding their pixels.

Decoding untrusted images needs a sandboxed process, which a server with only upstreams may not
have. All formats mark their end, and PNG also determines the size of its decompressed pixels.
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

#: Maximum width times height: room for a two-megapixel image upscaled tenfold in each direction.
MAX_PIXELS = 200_000_000
_PIECE_BYTES = 1 << 18
#: Samples per pixel by PNG color type (ISO/IEC 15948, 11.2.2).
_PNG_SAMPLES = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}
_GIF_PICTURE, _GIF_MORE, _GIF_END = 0x2C, 0x21, 0x3B
_GIF_TABLE = 0x80
#: Frame markers of JPEG (ITU-T T.81, B.1.1.3) without the table markers in the same range.
_JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_JPEG_SCAN, _JPEG_FILL = 0xDA, 0xFF
_JPEG_ALONE = frozenset((0x01, *range(0xD0, 0xD8)))


class BrokenPictureError(Exception):
    """The image is truncated, damaged or too large; the message says which."""


def check_file(path: Path, content_type: str) -> None:
    """Check whether the image in a file is complete, with constant memory use.

    Args:
        content_type: By its first bytes.

    Raises:
        BrokenPictureError: It is not complete.
        OSError: It cannot be read.
    """
    with path.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        check(data, content_type)


def check(data: Bytes, content_type: str) -> None:
    r"""Check whether an image is complete.

    Args:
        data: The whole file; ignores bytes after the end of the image.
        content_type: By its first bytes.

    Raises:
        BrokenPictureError: It is not complete.

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
        raise BrokenPictureError("damaged or truncated") from None
    if not width or not height:
        raise BrokenPictureError("the width or height is 0")
    _check_size(width, height)


def _check_size(width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise BrokenPictureError(
            f"too large (got {width} x {height} pixels, allowed {MAX_PIXELS} pixels)"
        )


def _cut_off() -> BrokenPictureError:
    return BrokenPictureError("truncated")


def _png(data: Bytes) -> tuple[int, int]:
    (length, kind) = struct.unpack_from(">I4s", data, 8)
    width, height, depth, colour, _, _, interlaced = struct.unpack_from(">IIBBBBB", data, 16)
    if (length, kind) != (13, b"IHDR") or colour not in _PNG_SAMPLES:
        raise BrokenPictureError("invalid header")
    _check_size(width, height)
    row = 1 + (width * depth * _PNG_SAMPLES[colour] + 7) // 8
    pixels = _Inflated(0 if interlaced else row * height)
    at = 8
    while kind != b"IEND":
        length, kind = struct.unpack_from(">I4s", data, at)
        end = at + 8 + length
        if end + 4 > len(data):
            raise _cut_off()
        if kind[0] & 0x20 == 0:  # Critical chunks only; decoders may ignore the others.
            found = 0
            for start in range(at + 4, end, _PIECE_BYTES):
                found = zlib.crc32(data[start : min(end, start + _PIECE_BYTES)], found)
            if found != struct.unpack_from(">I", data, end)[0]:
                raise BrokenPictureError("wrong checksum")
        if kind == b"IDAT":
            for start in range(at + 8, end, _PIECE_BYTES):
                pixels.take(data[start : min(end, start + _PIECE_BYTES)])
        at = end + 4
    if not pixels.complete:
        raise _cut_off()
    return width, height


class _Inflated:
    """Counts the bytes of decompressed pixels, up to the expected number."""

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
            raise BrokenPictureError("damaged")
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
            # Scan data contains no FF D9; an embedded thumbnail in the header comes before it.
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
            raise BrokenPictureError("damaged")
        while data[at]:
            at += 1 + data[at]
        at += 1
    return (width, height) if pictures else (0, 0)


def _table_bytes(flags: int) -> int:
    return 3 << ((flags & 7) + 1) if flags & _GIF_TABLE else 0


def _webp(data: Bytes) -> tuple[int, int]:
    end = 8 + struct.unpack_from("<I", data, 4)[0]
    if end > len(data) + 1:  # Some writers omit the padding byte of an odd length.
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
