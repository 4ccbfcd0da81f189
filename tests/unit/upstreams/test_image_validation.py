from __future__ import annotations

import io
import random
from typing import Any

import pytest
from PIL import Image
from polymux.upstreams.files import picture_type
from polymux.upstreams.image_validation import BrokenPictureError, check

PICTURE = Image.frombytes("RGB", (37, 53), random.Random(1).randbytes(37 * 53 * 3))
MORE = {"save_all": True, "append_images": [PICTURE.rotate(90)]}
WAYS: dict[str, tuple[str, dict[str, Any]]] = {
    "png": ("RGB", {"format": "PNG"}),
    "grey png": ("L", {"format": "PNG"}),
    "png of one bit": ("1", {"format": "PNG"}),
    "png of colours": ("P", {"format": "PNG"}),
    "clear png": ("LA", {"format": "PNG"}),
    "moving png": ("RGB", {"format": "PNG", **MORE}),
    "jpeg": ("RGB", {"format": "JPEG"}),
    "jpeg in passes": ("L", {"format": "JPEG", "progressive": True}),
    "jpeg with words": ("RGB", {"format": "JPEG", "comment": b"\xff\xd9 words"}),
    "webp": ("RGB", {"format": "WEBP"}),
    "webp without loss": ("RGBA", {"format": "WEBP", "lossless": True}),
    "moving webp": ("RGB", {"format": "WEBP", **MORE}),
    "gif": ("P", {"format": "GIF"}),
    "moving gif": ("RGB", {"format": "GIF", **MORE}),
}


def made(way: str) -> tuple[bytes, str]:
    mode, options = WAYS[way]
    file = io.BytesIO()
    PICTURE.convert(mode).save(file, **options)
    content_type = picture_type(file.getvalue())
    assert content_type is not None
    return file.getvalue(), content_type


@pytest.mark.parametrize("way", WAYS)
def test_whole_and_cut(way: str) -> None:
    """Every cut is detected; bytes after the end are ignored."""
    data, content_type = made(way)
    check(data, content_type)
    check(data + bytes(100), content_type)
    for end in range(12, len(data) - 2, max(1, len(data) // 100)):
        with pytest.raises(BrokenPictureError):
            check(data[:end], content_type)


def test_a_png_with_a_hole() -> None:
    data, content_type = made("png")
    with pytest.raises(BrokenPictureError):
        check(data[:600] + bytes(50) + data[650:], content_type)


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (b"\x89PNG\r\n\x1a\n", "image/png"),
        (b"\x89PNG\r\n\x1a\n" + bytes(100), "image/png"),
        (b"\xff\xd8\xff\xe0" + bytes(100) + b"\xff\xd9", "image/jpeg"),
        (b"\xff\xd8\xff\xd9", "image/jpeg"),
        (b"\xff\xd8" + b"\xff" * 100, "image/jpeg"),
        (b"GIF89a" + bytes(50), "image/gif"),
        (b"GIF89a\1\0\1\0\0\0\0;", "image/gif"),
        (b"RIFF\x04\0\0\0WEBP", "image/webp"),
        (b"RIFF\xff\xff\xff\xffWEBP" + bytes(50), "image/webp"),
    ],
)
def test_beginnings_of_pictures(data: bytes, content_type: str) -> None:
    with pytest.raises(BrokenPictureError):
        check(data, content_type)


def test_too_many_pixels() -> None:
    """No pixel is decoded."""
    file = io.BytesIO()
    Image.new("1", (20_000, 20_000)).save(file, "PNG")
    with pytest.raises(BrokenPictureError, match="20000 x 20000"):
        check(file.getvalue(), "image/png")


def test_other_files_are_not_looked_at() -> None:
    check(b"RIFF", "audio/wav")
