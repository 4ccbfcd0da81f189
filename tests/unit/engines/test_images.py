from __future__ import annotations

import io
import struct
import sys
from typing import TYPE_CHECKING, Any

import cv2
import numpy as np
import polymux
import pytest
from PIL import Image, ImageOps
from polymux.engines.base import Token
from polymux.engines.media.images import load_pictures, measured
from polymux.service.model import Upload
from support.hostile_pictures import chunk
from support.sinks import HeardSink

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

SIZE = (4, 6)
WHITE = 0xFFFF
SIGNATURE_AND_HEADER = 33
KINDS = ["PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM"]


def pages_of(
    folder: Path, data: bytes, mode: str = "any", most: int = 1
) -> tuple[list[NDArray[Any]], list[str]]:
    """The samples of each page, and the warnings."""
    path = folder / "picture"
    path.write_bytes(data)
    sink, wanted = HeardSink(folder), {"pages": most, "mode": mode}
    pages = []
    for one in load_pictures(Upload(path, "p", "", len(data)), wanted, 1_000_000, sink, Token()):
        samples = np.fromfile(one["pixels"].path, np.uint8 if one["bits"] == 8 else np.uint16)
        one["pixels"].path.unlink()
        pages.append(samples.reshape(one["height"], one["width"], one["channels"]))
    return pages, sink.lines


def loaded(folder: Path, data: bytes, mode: str = "any") -> tuple[NDArray[Any], list[str]]:
    (page,), lines = pages_of(folder, data, mode)
    return page, lines


def saved(picture: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    picture.save(buffer, kind, **options)
    return buffer.getvalue()


def is_small(folder: Path, data: bytes, found: NDArray[Any]) -> None:
    """As three channels of 8 bits, `data` has the same samples, rounded."""
    small, _ = loaded(folder, data, "rgb")
    assert small.shape == (*found.shape[:2], 3)
    assert np.abs(small.astype(int) - (found >> 8)).max() <= 1


def slope(channels: int) -> NDArray[np.uint16]:
    """Samples that all differ and that 8 bits cannot represent."""
    count = SIZE[0] * SIZE[1] * channels
    return (np.arange(count, dtype=np.uint16) * 601 + 5003).reshape(*SIZE, channels)


def png(samples: NDArray[np.uint16], *chunks: bytes) -> bytes:
    """A 16-bit PNG with extra chunks."""
    order = {1: None, 3: cv2.COLOR_RGB2BGR}[samples.shape[2]]
    done, made = cv2.imencode(".png", samples if order is None else cv2.cvtColor(samples, order))
    assert done
    data = bytes(made)
    return data[:SIGNATURE_AND_HEADER] + b"".join(chunks) + data[SIGNATURE_AND_HEADER:]


def tiff(samples: NDArray[np.uint16], orientation: int, grey: int = 1) -> bytes:
    """A 16-bit TIFF, gray or RGB (TIFF 6.0, sections 4 and 6)."""
    height, width, channels = samples.shape
    data = samples.astype("<u2").tobytes()
    bits = struct.pack(f"<{channels}H", *[16] * channels)
    by_offset = len(bits) > 4
    entries = [
        (256, 3, 1, width), (257, 3, 1, height),
        (258, 3, channels, 8 + len(data) if by_offset else 16),
        (259, 3, 1, 1), (262, 3, 1, 2 if channels == 3 else grey), (273, 4, 1, 8),
        (274, 3, 1, orientation), (277, 3, 1, channels), (278, 3, 1, height),
        (279, 4, 1, len(data)), (284, 3, 1, 1),
    ]  # fmt: skip
    folder = struct.pack("<H", len(entries))
    folder += b"".join(struct.pack("<HHII", *one) for one in entries)
    place = 8 + len(data) + len(bits)
    return struct.pack("<2sHI", b"II", 42, place) + data + bits + folder + bytes(4)


def turned(orientation: int) -> Image.Exif:
    exif = Image.Exif()
    exif[0x0112] = orientation
    return exif


def upright(samples: NDArray[np.uint16], orientation: int) -> NDArray[np.uint16]:
    """Rotate each channel as Pillow does."""
    planes = [Image.fromarray(samples[:, :, n].astype(np.int32)) for n in range(samples.shape[2])]
    files = [io.BytesIO(saved(one, "TIFF", exif=turned(orientation))) for one in planes]
    made = [np.asarray(ImageOps.exif_transpose(Image.open(one))) for one in files]
    return np.stack(made, axis=2).astype(np.uint16)


@pytest.mark.parametrize("kind", KINDS)
def test_pictures_of_all_kinds(tmp_path: Path, kind: str) -> None:
    found, lines = loaded(tmp_path, saved(Image.new("RGB", (40, 30), (250, 10, 90)), kind))
    assert found.shape == (30, 40, 3)
    assert np.abs(found.astype(int) - (250, 10, 90)).max() <= 3
    assert lines == []


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize(("form", "channels"), [("PNG", 1), ("TIFF", 3)])
def test_pictures_of_16_bits_are_turned_once(
    tmp_path: Path, form: str, channels: int, orientation: int
) -> None:
    samples = slope(channels)
    exif = turned(orientation).tobytes().removeprefix(b"Exif\0\0")
    of_form = {"PNG": png(samples, chunk(b"eXIf", exif)), "TIFF": tiff(samples, orientation)}
    found, lines = loaded(tmp_path, of_form[form])
    assert np.array_equal(found, upright(samples, orientation))
    assert lines == []
    is_small(tmp_path, of_form[form], found)


@pytest.mark.parametrize("compression", ["none", "tiff_lzw"])
@pytest.mark.parametrize("orientation", [1, 6])
def test_grey_of_which_0_is_white(tmp_path: Path, orientation: int, compression: str) -> None:
    """Scanners write such files. Pillow handles 8 bits; 16 bits once came out inverted."""
    samples = slope(1)
    data = tiff(samples, orientation, grey=0)
    if compression != "none":
        tags = {262: 0, 274: orientation}
        plane = Image.fromarray(samples[:, :, 0])
        data = saved(plane, "TIFF", tiffinfo=tags, compression=compression)
    found, _ = loaded(tmp_path, data)
    assert np.array_equal(found, WHITE - upright(samples, orientation))
    is_small(tmp_path, data, found)


@pytest.mark.parametrize("orientation", [1, 4, 6, 7])
def test_grey_of_8_bits_is_turned_once(tmp_path: Path, orientation: int) -> None:
    samples = slope(1)
    plane = Image.fromarray((samples[:, :, 0] >> 8).astype(np.uint8))
    found, _ = loaded(tmp_path, saved(plane, "TIFF", exif=turned(orientation)))
    assert np.array_equal(found, upright(samples, orientation) >> 8)


@pytest.mark.parametrize("channels", [1, 3])
def test_a_colour_that_is_transparent_stays_so(tmp_path: Path, channels: int) -> None:
    samples = slope(channels)
    data = png(samples, chunk(b"tRNS", samples[2, 3].astype(">u2").tobytes()))
    found, lines = loaded(tmp_path, data)
    assert found.dtype == np.uint16
    assert np.array_equal(found[:, :, :3], np.broadcast_to(samples, (*SIZE, 3)))
    assert np.argwhere(found[:, :, 3] != WHITE).tolist() == [[2, 3]]
    assert found[2, 3, 3] == 0
    assert lines == []
    if channels == 1:
        # In 8-bit RGB a transparent color is white.
        small, _ = loaded(tmp_path, data, "rgb")
        assert small[2, 3].tolist() == [255, 255, 255]
        assert small[2, 2].max() < 255


@pytest.mark.parametrize("kind", KINDS)
def test_a_picture_cut_short_is_broken(tmp_path: Path, kind: str) -> None:
    """A file cut anywhere after its signature is undecodable, and not an unsupported type."""
    data = saved(Image.new("RGB", (40, 30), "red"), kind)
    path = tmp_path / "picture"
    refused = 0
    for length in range(12, min(len(data), 400), 7):
        path.write_bytes(data[:length])
        try:
            measured(Upload(path, "p", "", length))  # The part that is left may be enough.
        except polymux.UndecodableError:
            refused += 1
    assert refused > 0 or kind == "PPM"


@pytest.mark.parametrize("data", [b"", b"RIFF\0\0\0\0WAVEfmt ", b"\xff\xd8", b"II", b"<svg/>"])
def test_what_is_no_picture(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(polymux.UnsupportedMediaError):
        loaded(tmp_path, data)


@pytest.mark.parametrize("kind", ["GIF", "WEBP", "PNG"])
def test_of_what_moves_the_first_picture_is_taken(tmp_path: Path, kind: str) -> None:
    first, second = Image.new("RGB", (40, 30), "red"), Image.new("RGB", (40, 30), "blue")
    data = saved(first, kind, save_all=True, append_images=[second])
    (page,), lines = pages_of(tmp_path, data, "rgb", 200)
    assert page[0, 0].argmax() == 0
    assert len(lines) == 1


def test_floats_for_colours_are_named(tmp_path: Path) -> None:
    """Pillow reads float images only if they are gray, and calls others broken."""
    done, made = cv2.imencode(".tiff", np.full((4, 5, 3), 0.5, np.float32))
    assert done
    with pytest.raises(polymux.UndecodableError, match="float"):
        loaded(tmp_path, bytes(made))


def fixed(*numbers: float) -> bytes:
    return b"".join(struct.pack(">i", round(one * 65536)) for one in numbers)


def display_p3() -> bytes:
    """An ICC profile with the primaries of Display P3 and a gamma of 2.2."""
    curve = b"curv\0\0\0\0" + struct.pack(">IH", 1, round(2.2 * 256)) + b"\0\0"
    tags = {
        b"desc": b"desc\0\0\0\0" + struct.pack(">I", 3) + b"P3\0" + bytes(78),
        b"cprt": b"text\0\0\0\0x\0\0\0",
        b"wtpt": b"XYZ \0\0\0\0" + fixed(0.9642, 1, 0.8249),
        b"rXYZ": b"XYZ \0\0\0\0" + fixed(0.51512, 0.2412, -0.00105),
        b"gXYZ": b"XYZ \0\0\0\0" + fixed(0.29198, 0.69225, 0.04189),
        b"bXYZ": b"XYZ \0\0\0\0" + fixed(0.1571, 0.06657, 0.78407),
        b"rTRC": curve, b"gTRC": curve, b"bTRC": curve,
    }  # fmt: skip
    table, data, start = struct.pack(">I", len(tags)), b"", 132 + 12 * len(tags)
    for name, value in tags.items():
        padded = value + bytes(-len(value) % 4)
        table += name + struct.pack(">II", start + len(data), len(padded))
        data += padded
    kinds = (b"\0\0\0\0", 0x02400000, b"mntr", b"RGB ", b"XYZ ")
    head = struct.pack(">I4sI4s4s4s", start + len(data), *kinds)
    head += struct.pack(">6H", 2020, 1, 1, 0, 0, 0) + b"acsp"
    head = head.ljust(68, b"\0") + fixed(0.9642, 1, 0.8249)
    return head.ljust(128, b"\0") + table + data


#: In Display P3. RED is the red of sRGB.
RED, PURE_RED = (234, 51, 35), (255, 0, 0)
FLAT = Image.new("RGB", (16, 16), RED)


@pytest.mark.parametrize("mode", ["any", "rgb"])
@pytest.mark.parametrize("kind", ["PNG", "JPEG", "TIFF", "WEBP"])
def test_colours_of_a_profile(tmp_path: Path, kind: str, mode: str) -> None:
    more = {"quality": 100} if kind == "JPEG" else {}
    data = saved(FLAT, kind, icc_profile=display_p3(), **more)
    samples, lines = loaded(tmp_path, data, mode)
    assert np.abs(samples[8, 8].astype(int) - PURE_RED).max() <= 4
    assert lines == []


def test_colours_of_a_profile_with_transparency_or_a_palette(tmp_path: Path) -> None:
    for picture in (Image.new("RGBA", (16, 16), (*RED, 77)), FLAT.quantize(4)):
        samples, _ = loaded(tmp_path, saved(picture, "PNG", icc_profile=display_p3()))
        assert np.abs(samples[8, 8, :3].astype(int) - PURE_RED).max() <= 4
        assert picture.mode == "P" or samples[8, 8, 3] == 77


def test_without_pillow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(polymux.NoBackendError, match=r"pip install 'polymux\[images\]'"):
        loaded(tmp_path, b"P6")
