"""Images of unusual shapes, and full disks when a result is written."""

from __future__ import annotations

import queue
import resource
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from PIL import Image, ImageDraw, ImageFont
from polymux.engines.base import Request, Token
from polymux.engines.diffusion import image_files
from polymux.engines.ocr import rapidocr
from polymux.engines.ocr.rapidocr import RapidOcrEngine
from polymux.engines.upscale import UpscaleEngine
from polymux.service.model import Upload
from support.sinks import HeardSink
from support.weights import upscaler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture(scope="module")
def reader() -> RapidOcrEngine:
    made = RapidOcrEngine()
    made.load({})
    return made


def asked(operation: str, folder: Path, page: Image.Image, **values: Any) -> Request:
    path = folder / "page"
    samples = numpy.asarray(page)
    path.write_bytes(samples.tobytes())
    facts = {"width": page.width, "height": page.height, "channels": 3, "bits": 8}
    values |= {"pictures": [facts], "pixels_0": Upload(path, "page", "", samples.nbytes)}
    return Request(operation, "B", "", values, frozenset())


def read(
    reader: RapidOcrEngine, folder: Path, page: Image.Image, sink: HeardSink | None = None
) -> str:
    text = reader.run(asked("read_text", folder, page), sink or HeardSink(folder), Token())
    return str(text.value["text"])


@pytest.mark.parametrize("size", [(1, 3000), (8000, 3), (300_000, 1)])
def test_threads_hold_no_text(
    reader: RapidOcrEngine, tmp_path: Path, size: tuple[int, int]
) -> None:
    assert read(reader, tmp_path, Image.new("RGB", size, "white")) == ""


@pytest.mark.parametrize("size", [(1, 400), (2000, 9)])
def test_models_see_no_page_that_would_take_gigabytes(
    reader: RapidOcrEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: tuple[int, int]
) -> None:
    """The models scale the shorter side to 736 pixels."""
    seen: list[tuple[int, ...]] = []
    monkeypatch.setattr(reader, "_engines", queue.SimpleQueue())
    reader._engines.put(lambda page: seen.append(page.shape))
    page = Image.new("RGB", size, "grey")
    page.putpixel((0, 0), (255, 255, 255))  # A blank page is not read.
    assert read(reader, tmp_path, page) == ""
    assert len(seen) == 4
    for height, width, _ in seen:
        assert height <= 10 * width
        assert width <= 64 * height


def test_a_narrow_page_is_read(
    reader: RapidOcrEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """White on black, above a lowered height limit: models take long for the real one."""
    monkeypatch.setattr(rapidocr, "_HIGHEST", 3)
    page = Image.new("RGB", (150, 660), "black")
    words = ["garden", "river"]
    for number, word in enumerate(words):
        ImageDraw.Draw(page).text((8, 60 + 330 * number), word, "white", ImageFont.load_default(36))
    assert read(reader, tmp_path, page).split() == words


def test_a_long_line_is_read_whole(reader: RapidOcrEngine, tmp_path: Path) -> None:
    """Scaled like other pages, its letters would be unreadable."""
    width, height = 2600, 60
    words = [f"{('station', 'bridge', 'river')[at % 3]} {at}" for at in range(width // 260)]
    page = Image.new("RGB", (width, height), "white")
    for at, one in enumerate(words):
        ImageDraw.Draw(page).text(
            (40 + 255 * at, height // 4), one, "black", ImageFont.load_default(32)
        )
    sink = HeardSink(tmp_path)
    found = read(reader, tmp_path, page, sink).split()
    wanted = " ".join(words).split()
    assert sum(one in found for one in wanted) >= 0.9 * len(wanted), found
    order = [one for one in found if one in ("station", "bridge", "river")]
    assert order[:6] == ["station", "bridge", "river"] * 2
    assert sink.lines == []


def test_a_page_that_is_made_smaller_is_logged(reader: RapidOcrEngine, tmp_path: Path) -> None:
    page = Image.new("RGB", (2600, 700), "white")
    ImageDraw.Draw(page).text((200, 200), "Large letters", "black", ImageFont.load_default(200))
    sink = HeardSink(tmp_path)
    assert read(reader, tmp_path, page, sink) == "Large letters"
    (line,) = sink.lines
    assert "2600x700" in line


@pytest.mark.parametrize("size", [(50_001, 25), (25, 50_001)])
def test_a_strip_that_would_take_gigabytes_is_refused(
    reader: RapidOcrEngine, tmp_path: Path, size: tuple[int, int]
) -> None:
    """Rejected before the image is read. The error has its size and the limit."""
    with pytest.raises(polymux.RequestTooLargeError, match="50000") as refused:
        read(reader, tmp_path, Image.new("RGB", size, "white"))
    assert refused.value.status == 413
    assert f"{size[0]}x{size[1]}" in str(refused.value)


@contextmanager
def full_disk() -> Iterator[None]:
    """Limit files to 16 bytes. Exceeding the limit is reported like a full disk."""
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16, limits[1]))
    try:
        with pytest.raises(polymux.InternalServerError) as failed:
            yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (failed.value.status, failed.value.code) == (507, "storage_full")


def test_a_full_disk_for_what_is_made(tmp_path: Path) -> None:
    engine = UpscaleEngine()
    engine.load({"model": str(upscaler()), "factor": 2})
    request = asked("upscale_image", tmp_path, Image.new("RGB", (8, 8)), scale=2)
    with full_disk():
        engine.run(request, HeardSink(tmp_path), Token())
    picture = Image.effect_noise((64, 64), 90)
    with full_disk():
        image_files.png(picture, {"parameters": "waves"}, HeardSink(tmp_path), "waves.png")


@pytest.mark.parametrize("factor", [4, 0, 2.5, "2", True])
def test_a_factor_that_is_not_the_network_s(factor: object) -> None:
    with pytest.raises(polymux.NoBackendError, match="factor = 2") as refused:
        UpscaleEngine().load({"model": str(upscaler()), "factor": factor})
    assert repr(factor) in str(refused.value)


@pytest.mark.parametrize("factor", [2, 4])
def test_the_factor_is_learned(factor: int) -> None:
    loaded = UpscaleEngine().load({"model": str(upscaler(f"realesr-animevideov3-x{factor}"))})
    assert loaded["factor"] == factor


def test_a_network_that_does_not_enlarge_by_a_whole_number(tmp_path: Path) -> None:
    """The network halves the image: a 1x1 convolution with a stride of 2."""
    weights = numpy.zeros(9 * 9 + 1, numpy.float32)
    (tmp_path / "net.bin").write_bytes(weights.tobytes())
    layers = "Input in 0 1 data", "Convolution half 1 1 data output 0=3 1=1 3=2 5=0 6=9"
    (tmp_path / "net.param").write_text("\n".join(["7767517", "2 2", *layers, ""]))
    with pytest.raises(polymux.NoBackendError, match=r"(?=.*3 x 16 x 16).*3 x 8 x 8"):
        UpscaleEngine().load({"model": str(tmp_path / "net.param")})
