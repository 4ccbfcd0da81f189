from __future__ import annotations

import pytest
from polymux.upstreams.files import is_picture, may_be_media, media_type
from servers import media

PICTURES = {
    "png": media.png(),
    "jpeg": media.jpeg(),
    "gif": b"GIF89a\x01\0",
    "webp": b"RIFF\0\0\0\0WEBPVP8 ",
    "tiff": b"II*\0\x08\0\0\0",
    "bmp": b"BM\x46\0\0\0\0\0\0\0",
    "ppm": b"P6\n2 2\n255\n",
}
SOUNDS = {
    "wav": media.wav(),
    "mp3": media.mp3(),
    "mp4": media.mp4(),
    "m4a": b"\0\0\0\x20ftypM4A \0\0\0\0",
    "flac": b"fLaC\0\0\0\x22",
    "ogg": b"OggS\0\x02",
    "matroska": b"\x1a\x45\xdf\xa3\x9f",
    "adts": b"\xff\xf1\x50\x80\x02\x1f\xfc",
    "aiff": b"FORM\0\0\x10\0AIFF",
    "amr": b"#!AMR\n\x3c\0\x01",
    "wma": b"\x30\x26\xb2\x75\x8e\x66\xcf\x11",
    "avi": b"RIFF\0\x10\0\0AVI LIST",
    "flv": b"FLV\x01\x05\0\0",
}
OTHERS = {
    "nothing": b"",
    "text": b"Hello there.\n",
    "page": b"<!doctype html><p>",
    "pdf": b"%PDF-1.7\n%\xe2\x01",
    "zip": b"PK\x03\x04\x14\0\0\0",
    "list": b"#EXTM3U\n",
    "avif": b"\0\0\0\x20ftypavif\0\0\0\0",
    "program": b"\x7fELF\x02\x01",
    "heic": b"\0\0\0\x20ftypheic\0\0\0\0",
    "gzip": b"\x1f\x8b\x08\0",
}


@pytest.mark.parametrize("name", PICTURES)
def test_pictures(name: str) -> None:
    assert is_picture(PICTURES[name])
    assert not may_be_media(PICTURES[name])


@pytest.mark.parametrize("name", SOUNDS)
def test_sounds(name: str) -> None:
    assert may_be_media(SOUNDS[name])
    assert not is_picture(SOUNDS[name])


@pytest.mark.parametrize("name", OTHERS)
def test_others(name: str) -> None:
    assert not may_be_media(OTHERS[name])
    assert not is_picture(OTHERS[name])


@pytest.mark.parametrize(
    ("start", "found"),
    [
        (b"fLaC\0\0\0\x22", "audio/flac"),
        (b"OggS\0\x02" + bytes(22) + b"\x01\x1e\x01vorbis", "audio/ogg"),
        (b"OggS\0\x02" + bytes(22) + b"\x01\x13OpusHead", "audio/ogg"),
        (b"OggS\0\x02" + bytes(22) + b"\x01\x2a\x80theora", ""),
    ],
)
def test_sounds_that_others_make(start: bytes, found: str) -> None:
    assert media_type(start) == found
