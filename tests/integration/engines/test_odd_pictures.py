"""Pictures of odd shapes to engines, and disks that are full when one has been made."""

from __future__ import annotations

import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from PIL import Image, ImageDraw, ImageFont
from polymux.engines.base import Request, Token
from polymux.engines.diffusion import image_files
from polymux.engines.ocr.rapidocr import RapidOcrEngine
from polymux.engines.upscale import UpscaleEngine
from polymux.service.model import Upload
from support.weights import upscaler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Sink:
    """Where drafts come from, and what is told."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.told: list[str] = []

    def draft(self, expected_bytes: int = 0) -> Path:
        return self._folder / f"draft of {expected_bytes}"

    def report(self, fraction: float) -> None:
        pass

    def log(self, line: str) -> None:
        self.told.append(line)


@pytest.fixture(scope="module")
def reader() -> RapidOcrEngine:
    made = RapidOcrEngine()
    made.load({})
    return made


def read(reader: RapidOcrEngine, folder: Path, page: Image.Image, sink: Sink | None = None) -> str:
    samples = numpy.asarray(page)
    path = folder / "page"
    path.write_bytes(samples.tobytes())
    facts = {"width": page.width, "height": page.height, "channels": 3, "bits": 8}
    upload = Upload(path, "page", "", samples.nbytes)
    values: dict[str, Any] = {"pictures": [facts], "pixels_0": upload}
    request = Request("read_text", "B", "", values, frozenset())
    text = reader.run(request, sink or Sink(folder), Token()).value["text"]
    assert isinstance(text, str)
    return text


@pytest.mark.parametrize(
    ("width", "height", "colour"),
    [(1, 3000, "white"), (8000, 3, "black"), (1, 400, "grey"), (300_000, 1, "white")],
)
def test_narrow_pages_hold_no_text(
    reader: RapidOcrEngine, tmp_path: Path, width: int, height: int, colour: str
) -> None:
    """The models failed at some, and took many gigabytes for others."""
    before_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert read(reader, tmp_path, Image.new("RGB", (width, height), colour)) == ""
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before_kib < 2 << 20


def test_a_narrow_page_is_read(reader: RapidOcrEngine, tmp_path: Path) -> None:
    """White on black, and fourteen times as high as wide."""
    page = Image.new("RGB", (150, 2100), "black")
    draw = ImageDraw.Draw(page)
    words = ["garden", "river", "stone", "cloud", "bridge", "winter"]
    for number, word in enumerate(words):
        draw.text((8, 60 + 330 * number), word, "white", ImageFont.load_default(36))
    assert read(reader, tmp_path, page).split() == words


@pytest.mark.parametrize("turned", [False, True])
def test_a_long_line_is_read_whole(reader: RapidOcrEngine, tmp_path: Path, turned: bool) -> None:
    """Made as small as other pages, it would have no letters left."""
    said = [f"{word} {number}" for number in range(12) for word in ("station", "bridge", "river")]
    page = Image.new("RGB", (12_000, 120), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(48)
    for number, words in enumerate(said):
        draw.text((40 + 330 * number, 30), words, "black", font)
    sink = Sink(tmp_path)
    text = read(reader, tmp_path, page.rotate(90, expand=True) if turned else page, sink)
    found = text.split()
    wanted = " ".join(said).split()
    assert sum(one in found for one in wanted) >= 0.95 * len(wanted), text
    order = [one for one in found if one in ("station", "bridge", "river")]
    assert order[:6] == ["station", "bridge", "river"] * 2
    assert sink.told == []


def test_a_receipt_is_read_line_by_line(reader: RapidOcrEngine, tmp_path: Path) -> None:
    page = Image.new("RGB", (600, 9_000), "white")
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(30)
    for number in range(140):
        draw.text((40, 20 + 64 * number), f"article {1000 + number}", "black", font)
    lines = read(reader, tmp_path, page).splitlines()
    assert len(lines) == 140
    right = sum(str(1000 + number) in line for number, line in enumerate(lines))
    assert right >= 137


def test_a_page_that_is_made_smaller_is_told(reader: RapidOcrEngine, tmp_path: Path) -> None:
    page = Image.new("RGB", (3200, 2400), "white")
    ImageDraw.Draw(page).text((200, 200), "Large letters", "black", ImageFont.load_default(200))
    sink = Sink(tmp_path)
    assert read(reader, tmp_path, page, sink) == "Large letters"
    (told,) = sink.told
    assert "page 1: 3200x2400 pixels are made smaller" in told


@pytest.mark.parametrize("turned", [False, True])
def test_a_strip_that_would_take_gigabytes_is_refused(
    reader: RapidOcrEngine, tmp_path: Path, turned: bool
) -> None:
    """Before anything of it is read; it names the sides, and how long strips may be."""
    page = Image.new("RGB", (50_001, 25), "white")
    width, height = (25, 50_001) if turned else (50_001, 25)
    with pytest.raises(polymux.RequestTooLargeError) as refused:
        read(reader, tmp_path, page.rotate(90, expand=True) if turned else page)
    assert refused.value.status == 413
    words = str(refused.value)
    assert f"page 1: {width}x{height} pixels" in words
    assert "50,000" in words


@contextmanager
def full_disk() -> Iterator[None]:
    """Files take 16 bytes; a limit is told as a full disk is."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)


def test_a_full_disk_for_what_is_upscaled(tmp_path: Path) -> None:
    engine = UpscaleEngine()
    engine.load({"model": str(upscaler()), "factor": 2})
    path = tmp_path / "pixels"
    path.write_bytes(bytes(range(192)))
    facts = {"width": 8, "height": 8, "channels": 3, "bits": 8}
    values = {"pictures": [facts], "pixels_0": Upload(path, "p", "", 192), "scale": 2}
    request = Request("upscale_image", "B", "", values, frozenset())
    with full_disk(), pytest.raises(polymux.InternalServerError, match="disk is full") as failed:
        engine.run(request, Sink(tmp_path), Token())
    assert (failed.value.status, failed.value.code) == (507, "storage_full")


@pytest.mark.parametrize("factor", [4, 1, 0, -2, 2.5, "2", "two", True])
def test_a_factor_that_is_not_the_network_s(factor: object) -> None:
    with pytest.raises(polymux.NoBackendError, match="enlarges 2 times") as refused:
        UpscaleEngine().load({"model": str(upscaler()), "factor": factor})
    words = str(refused.value)
    assert f"factor={factor!r}" in words
    assert "`factor = 2`" in words


def test_the_factor_is_learned() -> None:
    for name, factor in {"realesr-animevideov3-x2": 2, "realesr-animevideov3-x4": 4}.items():
        told = UpscaleEngine().load({"model": str(upscaler(name))})
        assert told["factor"] == factor


def test_a_network_that_does_not_enlarge_by_a_whole_number(tmp_path: Path) -> None:
    """Half as wide and high, by a convolution of one sample with a stride of 2."""
    weights = numpy.zeros(9 * 9 + 1, numpy.float32)
    (tmp_path / "net.bin").write_bytes(weights.tobytes())
    layers = "Input in 0 1 data", "Convolution half 1 1 data output 0=3 1=1 3=2 5=0 6=9"
    (tmp_path / "net.param").write_text("\n".join(["7767517", "2 2", *layers, ""]))
    with pytest.raises(polymux.NoBackendError, match="3 x 8 x 8 of 3 x 16 x 16"):
        UpscaleEngine().load({"model": str(tmp_path / "net.param")})


def test_a_full_disk_for_what_is_painted(tmp_path: Path) -> None:
    picture = Image.effect_noise((64, 64), 90)
    with full_disk(), pytest.raises(polymux.InternalServerError, match="disk is full") as failed:
        image_files.png(picture, {"parameters": "waves"}, Sink(tmp_path), "waves.png")
    assert (failed.value.status, failed.value.code) == (507, "storage_full")
