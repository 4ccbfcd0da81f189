"""Speech, text of pictures and upscaling with real models, through the media engine."""

from __future__ import annotations

import io
import struct
import subprocess
import zlib
from typing import TYPE_CHECKING, Any

import cv2
import numpy
import polymux
import pytest
from PIL import Image, ImageDraw, ImageFont, ImageOps
from polymux.engines.media.images import _turned
from polymux.runtime.settings import EngineSettings
from support.polymux_server import PolymuxServer, form
from support.weights import upscaler, whisper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SENTENCES = (
    "The weather is fine today, and the children are playing in the garden. "
    "Tomorrow morning we will travel to London by train. "
    "Please bring two bottles of water and a good book."
)
PAGE = ("The quick brown fox jumps", "over the lazy dog near the", "river bank on Sunday 1924")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("engines")
    network = {"model": str(upscaler()), "factor": 2, "input": "data", "output": "output"}
    speech = {"model": str(whisper(folder)), "compute": "int8", "beam": 2}
    engines = {
        "media": EngineSettings("media", threads=1),
        "speech": EngineSettings("speech", speech, threads=1),
        "ocr": EngineSettings("rapidocr", threads=1),
        "upscale": EngineSettings("upscale", network, threads=1),
    }
    with PolymuxServer(folder / "s", engines=engines) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key) as made:
        yield made


@pytest.fixture(scope="module")
def talk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Spoken by a program."""
    path = tmp_path_factory.mktemp("talk") / "talk.wav"
    subprocess.run(["espeak-ng", "-s", "140", "-w", str(path), SENTENCES], check=True)
    return path


def words_of(text: str) -> list[str]:
    return "".join(char if char.isalnum() else " " for char in text.lower()).split()


def errors_between(said: list[str], heard: list[str]) -> int:
    """Words that were put in, left out or changed (Levenshtein)."""
    row = list(range(len(heard) + 1))
    for number, word in enumerate(said, 1):
        before, row[0] = row[0], number
        for at, other in enumerate(heard, 1):
            before, row[at] = row[at], min(row[at] + 1, row[at - 1] + 1, before + (word != other))
    return row[-1]


def test_speech_is_written_down(client: polymux.Client, talk: Path) -> None:
    """At most a fifth of the words are wrong, for a machine's voice."""
    seen: list[Any] = []
    made = client.transcribe(talk, on_progress=seen.append)
    said, heard = words_of(SENTENCES), words_of(made.text)
    assert errors_between(said, heard) <= len(said) * 0.2, made.text
    assert made.chunks[0].start_s is not None
    ends = [one.end_s for one in made.chunks]
    assert ends == sorted(ends)
    assert "batch_size 64" in made.logs
    assert "language en" in made.logs
    assert made.version is not None
    assert len(made.version) == 64
    assert made.metrics is not None
    assert 5 < made.metrics["audio_seconds"] < 30


def test_words_and_languages(client: polymux.Client, talk: Path) -> None:
    made = client.transcribe(talk, timestamp="word", language="english", batch_size=1)
    assert len(made.chunks) > 20
    assert all(len(one.text.split()) == 1 for one in made.chunks)
    with pytest.raises(polymux.APIStatusError) as refused:
        client.transcribe(talk, language="klingon")
    assert (refused.value.status, refused.value.param) == (400, "language")


def test_what_holds_no_speech(client: polymux.Client, tmp_path: Path) -> None:
    import wave

    path = tmp_path / "silence.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(64000))
    with pytest.raises(polymux.UnprocessableEntityError) as refused:
        client.transcribe(path)
    assert refused.value.code == "no_speech"
    with pytest.raises(polymux.APIStatusError) as refused_too:
        client.transcribe(("a.mp3", b"#EXTM3U\nhttp://127.0.0.1/x\n" * 10))
    assert refused_too.value.status == 415
    with pytest.raises(polymux.BadRequestError, match="refused"):
        client.transcribe(url="http://127.0.0.1:9/talk")


def page(lines: tuple[str, ...] = PAGE, size: int = 44) -> Image.Image:
    picture = Image.new("RGB", (900, 90 + 80 * len(lines)), "white")
    draw = ImageDraw.Draw(picture)
    for number, line in enumerate(lines):
        draw.text((50, 50 + 80 * number), line, "black", ImageFont.load_default(size))
    return picture


def encoded(picture: Image.Image, form: str = "PNG", **options: Any) -> tuple[str, bytes]:
    buffer = io.BytesIO()
    picture.save(buffer, form, **options)
    return f"page.{form.lower()}", buffer.getvalue()


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_pages_are_read_whichever_way_they_lie(client: polymux.Client, turn: int) -> None:
    text = client.read_text(encoded(page().rotate(turn, expand=True))).text
    assert words_of(text) == words_of(" ".join(PAGE)), text


@pytest.mark.parametrize("form", ["JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM"])
def test_pictures_of_all_kinds(client: polymux.Client, form: str) -> None:
    assert words_of(client.read_text(encoded(page(), form)).text) == words_of(" ".join(PAGE))


def test_orientation_pages_and_transparency(client: polymux.Client) -> None:
    exif = Image.Exif()
    exif[0x0112] = 6  # Turned by 90 degrees.
    turned = page().rotate(90, expand=True)
    assert words_of(client.read_text(encoded(turned, "JPEG", exif=exif)).text) == words_of(
        " ".join(PAGE)
    )
    second = page(("Second page begins here", "and ends with these words"))
    many = encoded(page(), "TIFF", save_all=True, append_images=[second])
    text = client.read_text(many).text
    assert "\n\n" in text
    assert "Second page begins here" in text
    clear = Image.new("RGBA", (900, 330), (0, 0, 0, 0))
    ImageDraw.Draw(clear).text((50, 50), PAGE[0], "black", ImageFont.load_default(44))
    assert words_of(client.read_text(encoded(clear)).text) == words_of(PAGE[0])


def test_lines_come_in_reading_order(client: polymux.Client) -> None:
    """Two columns, and pieces of one line far apart."""
    picture = Image.new("RGB", (1300, 420), "white")
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(36)
    for number, (left, right) in enumerate(
        [("First column", "Second column"), ("goes down to", "is read after"),
         ("its very end", "the first one"), ("before right", "and not across")]
    ):  # fmt: skip
        draw.text((40, 40 + 80 * number), left, "black", font)
        draw.text((800, 40 + 80 * number), right, "black", font)
    found = words_of(client.read_text(encoded(picture)).text)
    assert found.index("end") < found.index("second")
    assert found.index("right") < found.index("after")


#: What other programs take for pictures, in files that Pillow would read or as their first bytes.
OTHER_FORMATS = {
    "JPEG 2000": lambda: saved("JPEG2000"),
    "AVIF": lambda: saved("AVIF"),
    "ICO": lambda: saved("ICO"),
    "EPS": lambda: saved("EPS"),
    "PDF": lambda: saved("PDF"),
    "TGA": lambda: saved("TGA"),
    "HEIC": lambda: b"\0\0\0\x18ftypheic\0\0\0\0heicmif1" + bytes(400),
    "PSD": lambda: b"8BPS" + struct.pack(">H6xHIIHHIIIH", 1, 3, 8, 8, 8, 3, 0, 0, 0, 0)
    + b"\xff" * 192,
    "MVG": lambda: b"push graphic-context\nimage over 0,0 0,0 'file:///etc/passwd'\n",
    "MSL": lambda: b'<?xml version="1.0"?><image><read filename="/etc/passwd"/></image>',
    "DICOM": lambda: bytes(128) + b"DICM\2\0\0\0UL\4\0" + bytes(400),
}  # fmt: skip


def saved(kind: str) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), "white").save(file, kind)
    return file.getvalue()


@pytest.mark.parametrize("kind", OTHER_FORMATS)
def test_formats_that_are_not_taken(kind: str, client: polymux.Client) -> None:
    """I10: whatever their file is called."""
    with pytest.raises(polymux.APIStatusError) as refused:
        client.read_text(("page.png", OTHER_FORMATS[kind]()))
    assert (refused.value.status, refused.value.code) == (415, "unsupported_media"), kind


def test_a_bitmap_in_runs_is_a_bitmap(client: polymux.Client) -> None:
    """I10: BMP is taken, and so is its packed kind: 64 rows of one run of white."""
    rows = (b"\x40\0" + b"\0\0") * 64 + b"\0\1"
    palette = b"\xff\xff\xff\0" * 256
    size = struct.pack("<IiiHHIIiiII", 40, 64, 64, 1, 8, 1, len(rows), 2835, 2835, 256, 0)
    offset = 14 + len(size) + len(palette)
    head = struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset)
    assert client.read_text(("page.bmp", head + size + palette + rows)).text == ""


def test_what_is_no_picture(client: polymux.Client) -> None:
    """I01, I02, I06."""
    for data, statuses in (
        (b"", (400, 415)),
        (b"x", (415,)),
        (b"%PDF-1.7 and more", (415,)),
        (
            b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
            (415,),
        ),
        (encoded(page())[1][:600], (422,)),
    ):
        with pytest.raises(polymux.APIStatusError) as refused:
            client.read_text(("page.png", data))
        assert refused.value.status in statuses, data[:20]
    claimed = bytearray(encoded(page())[1])
    claimed[16:24] = (100_000).to_bytes(4, "big") * 2
    claimed[29:33] = zlib.crc32(claimed[12:29]).to_bytes(4, "big")
    with pytest.raises(polymux.APIStatusError) as refused:
        client.read_text(("page.png", bytes(claimed)))
    assert refused.value.status == 413
    assert client.read_text(encoded(Image.new("RGB", (300, 200), "white"))).text == ""
    with pytest.raises(polymux.APIStatusError, match=r"PDF.*pages") as refused:
        client.read_text(("a.png", b"\n%PDF-1.7\n" + b"x" * 5000))
    assert refused.value.status == 415
    with pytest.raises(polymux.APIStatusError) as refused:
        client.read_text(encoded(page()), lang="xyz")
    assert (refused.value.status, refused.value.param) == (400, "lang")


def sharpness(picture: Image.Image) -> float:
    grey = numpy.asarray(picture.convert("L"), numpy.float32)
    return float(numpy.percentile(numpy.abs(numpy.diff(grey, axis=1)), 99.5))


def test_a_picture_is_upscaled(client: polymux.Client) -> None:
    """Sharper edges than bicubic, and the same colours."""
    picture = page().resize((300, 110), Image.Resampling.BICUBIC)
    ImageDraw.Draw(picture).rectangle((10, 90, 60, 105), (200, 40, 30))
    made = client.upscale_image(encoded(picture), model="nightmareai/real-esrgan", scale=2)
    larger = Image.open(io.BytesIO(made.images[0].read()))
    assert larger.size == (600, 220)
    bicubic = picture.resize((600, 220), Image.Resampling.BICUBIC)
    assert sharpness(larger) > sharpness(bicubic)
    difference = numpy.asarray(larger.convert("RGB"), numpy.float32).mean(
        axis=(0, 1)
    ) - numpy.asarray(bicubic, numpy.float32).mean(axis=(0, 1))
    assert numpy.abs(difference).max() < 4
    red = larger.convert("RGB").getpixel((70, 195))
    assert isinstance(red, tuple)
    assert max(abs(one - other) for one, other in zip(red, (200, 40, 30), strict=True)) < 12


@pytest.mark.parametrize(
    ("mode", "size", "scale", "expected"),
    [("RGBA", (40, 30), 2, (80, 60)), ("L", (33, 17), 3, (99, 51)), ("RGB", (1, 1), 4, (4, 4)),
     ("RGB", (50, 20), 0.5, (25, 10)), ("RGB", (300, 7), 1.5, (450, 10)),
     ("LA", (20, 20), 2, (40, 40))],
)  # fmt: skip
def test_modes_sizes_and_factors(
    client: polymux.Client,
    mode: str,
    size: tuple[int, int],
    scale: float,
    expected: tuple[int, int],
) -> None:
    picture = Image.effect_mandelbrot(size, (-2, -1.5, 1, 1.5), 50).convert(mode)
    made = client.upscale_image(encoded(picture), model="nightmareai/real-esrgan", scale=scale)
    larger = Image.open(io.BytesIO(made.images[0].read()))
    assert larger.size == expected
    assert ("A" in larger.mode) == ("A" in mode)


@pytest.mark.parametrize(("form", "channels"), [("png", 3), ("png", 4), ("tiff", 3)])
def test_colours_of_16_bits_keep_them(client: polymux.Client, form: str, channels: int) -> None:
    """A slope whose steps are smaller than 8 bits can tell."""
    slope = numpy.linspace(20_000, 22_000, 64).astype(numpy.uint16)
    picture = numpy.stack([numpy.tile(slope + 9000 * n, (48, 1)) for n in range(channels)], axis=2)
    done, data = cv2.imencode(f".{form}", picture)
    assert done
    made = client.upscale_image(bytes(data), model="nightmareai/real-esrgan", scale=2)
    larger = cv2.imdecode(numpy.frombuffer(made.images[0].read(), "u1"), cv2.IMREAD_UNCHANGED)
    assert larger.dtype == numpy.uint16
    assert larger.shape == (96, 128, channels)
    for channel in range(channels):
        middle = larger[20:-20, 20:-20, channel]
        assert len(numpy.unique(middle)) > 64
        wanted = picture[20, 32, channel]
        assert abs(float(middle.mean()) - float(wanted)) < 2000  # 8 of 255 levels


def test_pictures_are_turned_as_their_tag_says() -> None:
    """The same as Pillow turns pictures of 8 bits."""
    pixels = numpy.random.default_rng(1).integers(0, 255, (3, 5, 3), numpy.uint8)
    for orientation in range(10):
        exif = Image.Exif()
        exif[0x0112] = orientation
        picture = Image.open(io.BytesIO(encoded(Image.fromarray(pixels), exif=exif)[1]))
        expected = numpy.asarray(ImageOps.exif_transpose(picture))
        assert numpy.array_equal(_turned(pixels, orientation), expected), orientation


def test_tiles_leave_no_trace(tmp_path: Path) -> None:
    """Equal to the network without tiles within 6 levels."""
    picture = encoded(page().resize((230, 100), Image.Resampling.BICUBIC))
    made = []
    for tile in (64, 1000):
        options = {"model": str(upscaler()), "factor": 2, "tile": tile}
        with polymux.Local(engines={"up": EngineSettings("upscale", options, threads=1)}) as local:
            found = local.upscale_image(picture, model="nightmareai/real-esrgan", scale=2)
            made.append(numpy.asarray(Image.open(io.BytesIO(found.images[0].read())), numpy.int32))
    assert numpy.abs(made[0] - made[1]).max() <= 6


def test_files_of_one_s_own(tmp_path: Path, talk: Path) -> None:
    """By their paths, wherever they lie: Local confines nobody's own files."""
    path = tmp_path / "page.png"
    page().save(path)
    with polymux.Local(engines={"ocr": EngineSettings("tesseract", threads=1)}) as local:
        assert words_of(local.read_text(path).text) == words_of(" ".join(PAGE))


def test_what_upscaling_refuses(client: polymux.Client, server: PolymuxServer) -> None:
    """I16."""
    picture = encoded(page())
    with pytest.raises(polymux.NoBackendError, match="face_enhance"):
        client.upscale_image(
            picture, model="nightmareai/real-esrgan", scale=2, face_enhance=True
        ).raise_for_status()
    with pytest.raises(polymux.APIStatusError) as refused:
        client.upscale_image(
            encoded(Image.new("RGB", (3000, 3000))), model="nightmareai/real-esrgan", scale=10
        )
    assert refused.value.status == 413
    for factor in ("0", "-1", "100", "NaN", "1e400"):
        body, headers = form(("image", picture), ("scale", factor))
        path = "/api/v1/modelhost/imageupscale?model=nightmareai/real-esrgan"
        assert server.ask("POST", path, body, headers).status == 400, factor
    with pytest.raises(polymux.NoBackendError, match="clarity-upscaler"):
        client.upscale_image(picture, scale_factor=2)


@pytest.fixture(scope="module")
def tesseract() -> Iterator[polymux.Local]:
    with polymux.Local(engines={"ocr": EngineSettings("tesseract", threads=1)}) as local:
        yield local


@pytest.mark.parametrize("turn", [0, 90, 180, 270])
def test_tesseract_reads_pages_whichever_way_they_lie(tesseract: polymux.Local, turn: int) -> None:
    lines = (*PAGE, *PAGE, "and several more words follow", "so that the way is clear")
    text = tesseract.read_text(encoded(page(lines).rotate(turn, expand=True))).text
    assert errors_between(words_of(" ".join(lines)), words_of(text)) <= 1, text


def test_tesseract_s_languages(tesseract: polymux.Local) -> None:
    text = tesseract.read_text(encoded(page(("Schöne Grüße aus München",))), lang="deu").text
    german = ("Der Hund liegt im Garten", "und wartet auf den Abend")
    text = tesseract.read_text(encoded(page(german)), lang="deu+eng").text
    assert words_of(text) == words_of(" ".join(german))
    with pytest.raises(polymux.BadRequestError, match="not installed: xyz"):
        tesseract.read_text(encoded(page()), lang="eng+xyz")
