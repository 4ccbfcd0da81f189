"""Hostile images over HTTP return the right status and use little memory.

The media engine is the real one in its sandboxed process. A test engine behind it reports the
received data.

Case IDs such as I02 refer to docs/development/testing.md.
"""

from __future__ import annotations

import io
import random
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from PIL import Image
from polymux.runtime.settings import EngineSettings
from support import hostile_pictures as made
from support.polymux_server import PolymuxServer, form
from support.server_process import ServerProcess, until
from support.weights import upscaler

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.polymux_server import Answer, Asked

READ = "/api/v1/image2text"
ENLARGE = "/api/v1/modelhost/imageupscale?model=nightmareai/real-esrgan"
PICTURE = made.encoded(made.plain(), "PNG")
GROWN = 64 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("pictures") / "s"
    with ServerProcess(folder) as running:
        assert read(running, PICTURE).status == 200
        assert enlarge(running, PICTURE).status == 200
        yield running
        log = running.log()
        assert "Traceback" not in log
        assert " ERROR " not in log
        assert log.replace("\n", "").isprintable()


def read(server: Asked, data: bytes, name: str = "a.png", kind: str = "image/png") -> Answer:
    body, headers = form(("file", (name, data, kind)))
    return server.ask("POST", READ, body, headers)


def enlarge(server: Asked, data: bytes) -> Answer:
    body, headers = form(("image", ("a.png", data)), ("scale", "2"))
    return server.ask("POST", ENLARGE, body, headers)


def tried(server: ServerProcess, data: bytes, max_bytes: int) -> tuple[Answer, Answer]:
    """Send the data to both operations and check memory, temporary files and the next request."""
    pids = server.tree()
    before = server.memory_bytes("VmHWM")
    answers = read(server, data), enlarge(server, data)
    assert server.tree() == pids  # No process was killed.
    assert server.memory_bytes("VmHWM") - before < max_bytes
    for answer in answers:
        assert str(server.folder) not in answer.body.decode()
    assert read(server, PICTURE).json() == {"text": "64x48 0f0f0f"}
    until(lambda: not any((server.folder / "store" / "drafts").iterdir()))
    return answers


BOMBS: dict[str, Callable[[], bytes]] = {
    "I03 15,800 x 15,800 in black and white": lambda: made.png(15_800, 15_800, depth=1, colour=0),
    "I02 100,000 x 100,000, claimed": lambda: made.claimed(100_000, 100_000),
    "I04 a canvas of 60,000 x 60,000": lambda: made.gif(1, (60_000, 60_000)),
    "I05 sides of 10^9": lambda: made.tiff((256, 4, 1, 10**9), (257, 4, 1, 10**9)),
    "I09 65,500 x 65,500, claimed": lambda: made.resized(jpeg(), 65_500, 65_500),
    "I09 5,000 passes": lambda: made.scans(5_000, (6_000, 6_000)),
}


def jpeg(mode: str = "RGB", **options: Any) -> bytes:
    return made.encoded(made.plain(mode), "JPEG", **options)


@pytest.mark.parametrize("name", BOMBS)
def test_pictures_that_are_too_large(server: ServerProcess, name: str) -> None:
    """Rejected by the declared size before decoding (I02 to I05 and I09)."""
    for answer in tried(server, BOMBS[name](), GROWN):
        assert answer.status == 413, answer.body
        assert answer.json()["code"] == "too_large"


MANY: dict[str, Callable[[], bytes]] = {
    "GIF": lambda: made.gif(10_000),
    "APNG": lambda: made.apng(10_000),
    "TIFF": lambda: made.tiff(pages=65_535),
}


@pytest.mark.parametrize("name", MANY)
def test_pictures_of_many_frames_and_pages(server: ServerProcess, name: str) -> None:
    """Animations: the first frame. TIFFs: OCR limits pages, upscaling uses one (I04 and I05)."""
    reading, enlarging = tried(server, MANY[name](), GROWN)
    if name == "TIFF":
        assert (reading.status, reading.json()["code"]) == (413, "too_large")
    else:
        assert reading.status == 200, reading.body
    assert enlarging.status == 200, enlarging.body


ODD: dict[str, tuple[Callable[[], bytes], tuple[int, ...]]] = {
    "I05 folders in a ring": (lambda: made.tiff(pages=3, loop=True), (200,)),
    "I05 10^9 strips": (lambda: made.tiff((273, 4, 10**9, 8), (279, 4, 10**9, 8)), (415, 422)),
    "I07 a ring of folders": (lambda: jpeg(exif=b"Exif\0\0" + ring()), (200, 422)),
    "I07 a tag of 2^31 numbers": (
        lambda: jpeg(exif=b"Exif\0\0" + made.exif((0x112, 3, 0x7FFFFFFF, 6))),
        (200, 422),
    ),
    "I07 64 MiB": (lambda: made.png(64, 48, more=made.chunk(b"eXIf", bytes(64 << 20))), (413,)),
    "I08 zTXt of 1 GiB": (lambda: text(b"zTXt", b"a\0\0"), (413, 422)),
    "I09 arithmetic coding": (lambda: jpeg().replace(b"\xff\xc0", b"\xff\xc9", 1), (200, 422)),
    "I09 lies about colours": (lambda: jpeg("CMYK").replace(b"Adobe\0d\0\0\0\0", LIE), (200, 422)),
}
LIE = b"Adobe\0d\0\0\0\0"[:-1] + b"\x07"


def ring() -> bytes:
    """Exif data whose directories link in a cycle."""
    return made.exif((0x112, 3, 1, 6), (0x8769, 4, 1, 8), (0x8825, 4, 1, 8), following=8)


def text(kind: bytes, head: bytes) -> bytes:
    """A PNG chunk that decompresses from 1 MiB to 1 GiB."""
    return made.png(64, 48, more=made.chunk(kind, head + made.zeros(1 << 30)))


@pytest.mark.parametrize("name", ODD)
def test_odd_pictures(server: ServerProcess, name: str) -> None:
    """Cases I05 and I07 to I09."""
    make, statuses = ODD[name]
    for answer in tried(server, make(), 2 * GROWN):
        assert answer.status in statuses, answer.body


def test_the_largest_picture(server: ServerProcess) -> None:
    """40 megapixels are accepted and need much less than 512 MiB."""
    before = server.memory_bytes("VmHWM")
    answer = read(server, made.png(6_300, 6_300))
    assert answer.json() == {"text": "6300x6300 000000"}
    assert server.memory_bytes("VmHWM") - before < 480 << 20


SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xi="http://www.w3.org/2001/XInclude">{}</svg>',
    '<xi:include href="file:///etc/hostname" parse="text"/>',
    '<image href="http://127.0.0.1:9/"/>',
)


@pytest.mark.parametrize("inner", SVG[1:])
def test_svg_is_no_picture(server: ServerProcess, inner: str) -> None:
    """Rejected under any name and type (I06)."""
    for start, kind in (("", "image/svg+xml"), ('<?xml version="1.0"?>', "image/png")):
        answer = read(server, (start + SVG[0].format(inner)).encode(), "a.svg", kind)
        assert (answer.status, answer.json()["code"]) == (415, "unsupported_media")


def test_nothing_of_where_a_picture_was_taken_is_kept(tmp_path: Path) -> None:
    """The result has only pixels: no Exif, location, text or color profile (I07)."""
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "secret-camera"
    exif.get_ifd(0x8825)[1] = "N"
    picture = made.encoded(made.plain(), "JPEG", exif=exif, comment=b"secret-comment")
    network = {"model": str(upscaler()), "factor": 2}
    with polymux.Local(engines={"up": EngineSettings("upscale", network, threads=1)}) as local:
        answer = local.upscale_image(("a.jpg", picture), model="nightmareai/real-esrgan", scale=2)
        data = answer.images[0].read()
    assert b"secret" not in data
    with Image.open(io.BytesIO(data)) as larger:
        assert larger.size == (96, 128)  # The rotation was applied.
        assert dict(larger.getexif()) == {}
        assert larger.info == {}


def noise(side: int) -> bytes:
    """Black and white noise with one bit per pixel."""
    dice = random.Random(side)
    picture = Image.frombytes("1", (side, side), dice.randbytes(side * (side // 8)))
    return made.encoded(picture, "PNG", compress_level=1)


def test_noise_is_not_read_for_nobody(tmp_path: Path) -> None:
    """64 megapixels are rejected. 25 take minutes; work ends when the client disconnects (I17)."""
    engines = {
        "media": EngineSettings("media", threads=1),
        "ocr": EngineSettings("rapidocr", threads=1),
    }
    with PolymuxServer(tmp_path / "s", engines=engines) as server:
        server.answer_within_s = 120.0
        assert read(server, noise(8_000)).status == 413
        body, headers = form(("file", ("a.png", noise(5_000))))
        place = server.state.service.places["ocr"]
        with server.connect() as connection:
            connection.sendall(server.written("POST", READ, body, headers))
            until(lambda: place.running == 1, 30)
            time.sleep(0.5)
            assert place.running == 1
        until(lambda: place.running == 0, 30)
