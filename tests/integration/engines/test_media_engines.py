"""OCR and upscaling with real models through the media engine. Case IDs: testing.md."""

from __future__ import annotations

import io
import struct
import zlib
from typing import TYPE_CHECKING, Any

import cv2
import numpy
import polymux
import pytest
from PIL import Image, ImageDraw, ImageFont
from polymux.runtime.settings import EngineSettings
from support.polymux_server import PolymuxServer, form
from support.weights import upscaler

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGE = ("The quick brown", "fox jumps over", "the lazy dog", "river bank 1924")
ESRGAN = "nightmareai/real-esrgan"
LANCZOS = Image.Resampling.LANCZOS
NETWORK, LARGER = "realesr-animevideov3-x2", "realesr-animevideov3-x4"
LEFT = ("The left column has", "several lines of text", "that belong together",
        "and are read first", "before the other one")  # fmt: skip
RIGHT = ("On the right stands", "what comes after it", "when a person reads",
         "the page as people", "do read their pages")  # fmt: skip
HEADING = "A heading over both of them as wide"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    network = {"model": str(upscaler()), "factor": 2, "input": "data", "output": "output"}
    engines = {
        "media": EngineSettings("media", threads=1),
        "ocr": EngineSettings("rapidocr", threads=1),
        "upscale": EngineSettings("upscale", network, threads=1),
    }
    with PolymuxServer(tmp_path_factory.mktemp("engines") / "s", engines=engines) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key) as made:
        yield made


@pytest.fixture(scope="module")
def tesseract() -> Iterator[polymux.Local]:
    with polymux.Local(engines={"ocr": EngineSettings("tesseract", threads=1)}) as local:
        yield local


def words_of(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.lower()).split()


def page(lines: tuple[str, ...] = PAGE, width: int = 480) -> Image.Image:
    picture = Image.new("RGB", (width, 60 + 80 * len(lines)), "white")
    draw = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        draw.text((40, 40 + 80 * number), line, "black", ImageFont.load_default(44))
    return picture


def encoded(picture: Image.Image, form: str = "PNG", **options: Any) -> tuple[str, bytes]:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return f"page.{form.lower()}", buffer.getvalue()


@pytest.mark.parametrize("turn", [90, 180])
def test_pages_are_read_whichever_way_they_lie(client: polymux.Client, turn: int) -> None:
    text = client.read_text(encoded(page().rotate(turn, expand=True), "JPEG")).text
    assert words_of(text) == words_of(" ".join(PAGE)), text


def test_pages_and_transparency(client: polymux.Client) -> None:
    second = page(("Second page", "begins here"))
    text = client.read_text(encoded(page(), "TIFF", save_all=True, append_images=[second])).text
    first, _, rest = text.partition("\n\n")
    assert words_of(first) == words_of(" ".join(PAGE))
    assert words_of(rest) == words_of("Second page begins here")
    clear = Image.new("RGBA", (480, 330), (0, 0, 0, 0))
    ImageDraw.Draw(clear).text((40, 50), PAGE[0], "black", ImageFont.load_default(44))
    assert words_of(client.read_text(encoded(clear)).text) == words_of(PAGE[0])


def test_a_large_blank_page_is_not_read(client: polymux.Client, tesseract: polymux.Local) -> None:
    """A kilobyte of WebP is 40 megapixels, which OCR would read for minutes."""
    black = encoded(Image.new("RGB", (16_383, 2_441)), "WEBP", lossless=True)
    assert len(black[1]) < 2000
    assert client.read_text(black).text == tesseract.read_text(black).text == ""


#: Formats that other programs treat as images, as complete files or as their first bytes.
OTHER_FORMATS = {
    **{kind: encoded(Image.new("RGB", (64, 64), "white"), kind)[1]
       for kind in ("JPEG2000", "AVIF", "ICO", "EPS", "PDF", "TGA")},
    "HEIC": b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + bytes(400),
    "PSD": b"8BPS" + struct.pack(">H6xHIIHHIIIH", 1, 3, 8, 8, 8, 3, 0, 0, 0, 0) + b"\xff" * 192,
    "MVG": b"push graphic-context\nimage over 0,0 0,0 'file:///etc/passwd'\n",
    "MSL": b'<?xml version="1.0"?><image><read filename="/etc/passwd"/></image>',
    "SVG": b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    "DICOM": bytes(128) + b"DICM\2\0\0\0UL\4\0" + bytes(400),
    "short": b"x",
}  # fmt: skip


@pytest.mark.parametrize("kind", OTHER_FORMATS)
def test_formats_that_are_not_taken(kind: str, client: polymux.Client) -> None:
    """Under any file name (I10)."""
    with pytest.raises(polymux.APIStatusError) as refused:
        client.read_text(("page.png", OTHER_FORMATS[kind]))
    assert (refused.value.status, refused.value.code) == (415, "unsupported_media"), kind


def upscaled(client: polymux.Client, picture: Any, scale: float = 2) -> Image.Image:
    made = client.upscale_image(picture, model=ESRGAN, scale=scale)
    return Image.open(io.BytesIO(made.images[0].read()))


def test_a_bitmap_in_runs_is_a_bitmap(client: polymux.Client) -> None:
    """Run-length encoded BMP is accepted: 64 rows of one white run (I10)."""
    rows = (b"\x40\0" + b"\0\0") * 64 + b"\0\1"
    palette = b"\xff\xff\xff\0" * 256
    size = struct.pack("<IiiHHIIiiII", 40, 64, 64, 1, 8, 1, len(rows), 2835, 2835, 256, 0)
    offset = 14 + len(size) + len(palette)
    head = struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset)
    made = upscaled(client, ("page.bmp", head + size + palette + rows))
    assert made.size == (128, 128)
    assert numpy.asarray(made.convert("L")).min() > 240


def test_what_is_no_picture(client: polymux.Client) -> None:
    """Cases I01, I02 and I06."""
    whole = encoded(page())[1]
    claimed = bytearray(whole)
    claimed[16:24] = (100_000).to_bytes(4, "big") * 2
    claimed[29:33] = zlib.crc32(claimed[12:29]).to_bytes(4, "big")
    for data, statuses, words in (
        (b"", (400, 415), None),
        (b"\n%PDF-1.7\n" + b"x" * 5000, (415,), "PDF"),
        (whole[:600], (422,), None),
        (bytes(claimed), (413,), None),
    ):
        with pytest.raises(polymux.APIStatusError, match=words) as refused:
            client.read_text(("page.png", data))
        assert refused.value.status in statuses, data[:20]
    blank = client.read_text(encoded(Image.new("RGB", (90, 90), "white")))
    assert (blank.text, blank.engine_model) == ("", "rapidocr")
    with pytest.raises(polymux.APIStatusError) as refused:
        client.read_text(encoded(page()), lang="xyz")
    assert (refused.value.status, refused.value.param) == (400, "lang")


def test_columns_are_read_one_after_the_other(tesseract: polymux.Local, tmp_path: Path) -> None:
    """Includes columns so close that tesseract joins their lines."""
    picture = Image.new("RGB", (760, 420), "white")
    draw, font = ImageDraw.Draw(picture), ImageFont.load_default(28)
    draw.text((150, 20), HEADING, "black", font)
    for number, (left, right) in enumerate(zip(LEFT, RIGHT, strict=True)):
        draw.text((40, 120 + number * 50), left, "black", font)
        draw.text((420, 120 + number * 50), right, "black", font)
    picture.save(tmp_path / "page.png")
    text = tesseract.read_text(tmp_path / "page.png").text
    # "osd" detects the page orientation and is not a language.
    with pytest.raises(polymux.BadRequestError) as refused:
        tesseract.read_text(tmp_path / "page.png", lang="osd")
    assert [line for line in text.splitlines() if line] == [HEADING, *LEFT, *RIGHT]
    assert refused.value.param == "lang"
    assert str(refused.value).count("osd") <= 2


def test_tesseract_reads_pages_that_lie_on_their_side(tesseract: polymux.Local) -> None:
    lines = (*PAGE, *PAGE, "and several more words", "so the way is clear")
    text = tesseract.read_text(encoded(page(lines, 600).rotate(90, expand=True))).text
    assert len(set(words_of(" ".join(lines))) - set(words_of(text))) <= 1, text


def test_tesseract_s_languages(tesseract: polymux.Local) -> None:
    german = ("Der Hund liegt im Garten", "und wartet auf den Abend")
    text = tesseract.read_text(encoded(page(german, 700)), lang="deu+eng").text
    assert words_of(text) == words_of(" ".join(german))
    with pytest.raises(polymux.BadRequestError, match="xyz"):
        tesseract.read_text(encoded(page()), lang="eng+xyz")


def sharpness(picture: Image.Image) -> float:
    grey = numpy.asarray(picture.convert("L"), numpy.float32)
    return float(numpy.percentile(numpy.abs(numpy.diff(grey, axis=1)), 99.5))


def test_a_picture_is_upscaled(client: polymux.Client) -> None:
    """Has sharper edges than bicubic scaling and the same colors."""
    picture = page().resize((200, 160), Image.Resampling.BICUBIC)
    ImageDraw.Draw(picture).rectangle((10, 140, 60, 155), (200, 40, 30))
    larger = upscaled(client, encoded(picture)).convert("RGB")
    bicubic = picture.resize((400, 320), Image.Resampling.BICUBIC)
    assert larger.size == bicubic.size
    assert sharpness(larger) > sharpness(bicubic)
    means = [numpy.asarray(one, numpy.float32).mean(axis=(0, 1)) for one in (larger, bicubic)]
    assert numpy.abs(means[0] - means[1]).max() < 4
    red = numpy.asarray(larger)[295, 70].astype(int)
    assert abs(red - (200, 40, 30)).max() < 12


@pytest.mark.parametrize(
    ("mode", "size", "scale", "expected"),
    [("RGBA", (40, 30), 2, (80, 60)), ("L", (33, 17), 3, (99, 51)), ("RGB", (1, 1), 4, (4, 4)),
     ("RGB", (300, 7), 1.5, (450, 10))],
)  # fmt: skip
def test_modes_sizes_and_factors(
    client: polymux.Client,
    mode: str,
    size: tuple[int, int],
    scale: float,
    expected: tuple[int, int],
) -> None:
    picture = Image.effect_mandelbrot(size, (-2, -1.5, 1, 1.5), 50).convert(mode)
    larger = upscaled(client, encoded(picture), scale)
    assert larger.size == expected
    assert ("A" in larger.mode) == ("A" in mode)


def test_a_network_runs_again_until_the_factor_is_reached(client: polymux.Client) -> None:
    """By 4 it runs twice, and by 3 its result is reduced. The logs and the result name it."""
    picture = page().resize((120, 95), Image.Resampling.BICUBIC).convert("RGB")
    once = upscaled(client, encoded(picture))
    twice = upscaled(client, encoded(once))
    for scale in (4, 3):
        made = client.upscale_image(encoded(picture), model=ESRGAN, scale=scale)
        larger = Image.open(io.BytesIO(made.images[0].read()))
        assert larger.size == (120 * scale, 95 * scale)
        to_once, to_twice = (
            numpy.abs(numpy.asarray(larger, numpy.int32) - one.resize(larger.size, LANCZOS)).mean()
            for one in (once, twice)
        )
        assert to_twice < to_once / 4
        assert (made.engine_model, made.model) == (NETWORK, ESRGAN)
        assert NETWORK in made.logs
        assert made.warnings is None
        assert "polymux-warnings" not in made.headers
    assert "Lanczos" in made.logs


def test_passes_that_would_be_too_large_are_reported() -> None:
    """The second pass would have 4 times the pixels of the result."""
    options = {"model": str(upscaler()), "max_pixels": 30_000}
    picture = encoded(Image.new("RGB", (60, 40), "white"))
    with polymux.Local(engines={"up": EngineSettings("upscale", options, threads=1)}) as local:
        made = local.upscale_image(picture, model=ESRGAN, scale=2.5)
        assert Image.open(io.BytesIO(made.images[0].read())).size == (150, 100)
        [warning] = made.warnings or ()
        assert warning in made.logs
        assert made.headers["polymux-warnings"] == f'"{warning}"'


def test_requests_select_a_network_by_its_name(tmp_path: Path) -> None:
    """By the name in the models directory, or that of its file, on a server and locally."""
    engines = {
        name: EngineSettings("upscale", {"model": str(upscaler(name))}, threads=1)
        for name in (NETWORK, LARGER)
    }
    picture = encoded(Image.new("RGB", (20, 16), "white"))

    def check(session: polymux.Client | polymux.Local) -> None:
        for name, factor in ((LARGER, 4), (NETWORK, 2)):
            made = session.upscale_image(picture, model=name, scale=factor)
            assert made.images[0].read()
            assert (made.engine_model, made.model) == (name, ESRGAN)
            assert made.logs.count(name) == 1
        with pytest.raises((polymux.APIStatusError, polymux.InvalidRequestError)) as unknown:
            session.upscale_image(picture, model="realesr-animevideov3")
        for name in (NETWORK, LARGER, ESRGAN):
            assert name in str(unknown.value)

    with polymux.Local(engines=engines) as local:
        check(local)
    with (
        PolymuxServer(tmp_path / "s", engines=engines) as server,
        polymux.Client(server.url, server.key) as client,
    ):
        check(client)
        document = server.ask("GET", "/openapi.json").json()
        parameters = document["paths"]["/api/v1/modelhost/imageupscale"]["post"]["parameters"]
        (model,) = [one["schema"]["enum"] for one in parameters if one["name"] == "model"]
        assert {NETWORK, LARGER, ESRGAN} < set(model)


def test_colours_of_16_bits_keep_them(client: polymux.Client) -> None:
    """A gradient whose steps are smaller than an 8-bit level."""
    channels = 4
    slope = numpy.linspace(20_000, 22_000, 64).astype(numpy.uint16)
    picture = numpy.stack([numpy.tile(slope + 9000 * n, (48, 1)) for n in range(channels)], axis=2)
    done, data = cv2.imencode(".png", picture)
    assert done
    made = client.upscale_image(bytes(data), model=ESRGAN, scale=2)
    larger = cv2.imdecode(numpy.frombuffer(made.images[0].read(), "u1"), cv2.IMREAD_UNCHANGED)
    assert larger.dtype == numpy.uint16
    assert larger.shape == (96, 128, channels)
    for channel in range(channels):
        middle = larger[20:-20, 20:-20, channel]
        assert len(numpy.unique(middle)) > 64
        wanted = picture[20, 32, channel]
        assert abs(float(middle.mean()) - float(wanted)) < 2000  # 8 of 255 levels


def test_tiles_leave_no_trace() -> None:
    """Equals the result without tiles within 6 levels."""
    picture = encoded(page().resize((130, 100), Image.Resampling.BICUBIC))
    made = []
    for tile in (64, 1000):
        options = {"model": str(upscaler()), "factor": 2, "tile": tile}
        with polymux.Local(engines={"up": EngineSettings("upscale", options, threads=1)}) as local:
            found = local.upscale_image(picture, model=ESRGAN, scale=2)
            made.append(numpy.asarray(Image.open(io.BytesIO(found.images[0].read())), numpy.int32))
    assert numpy.abs(made[0] - made[1]).max() <= 6


def test_what_upscaling_refuses(client: polymux.Client, server: PolymuxServer) -> None:
    """Case I16."""
    picture = encoded(page())
    with pytest.raises(polymux.NoBackendError, match="face_enhance"):
        client.upscale_image(picture, model=ESRGAN, scale=2, face_enhance=True).raise_for_status()
    with pytest.raises(polymux.APIStatusError) as refused:
        client.upscale_image(encoded(Image.new("RGB", (3000, 3000))), model=ESRGAN, scale=10)
    assert refused.value.status == 413
    for factor in ("0", "-1", "100", "NaN", "1e400"):
        body, headers = form(("image", picture), ("scale", factor))
        path = f"/api/v1/modelhost/imageupscale?model={ESRGAN}"
        assert server.ask("POST", path, body, headers).status == 400, factor
    with pytest.raises(polymux.NoBackendError, match="clarity-upscaler"):
        client.upscale_image(picture, scale_factor=2)
