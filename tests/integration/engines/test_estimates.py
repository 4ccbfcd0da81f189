"""The estimated duration and memory, calculated from the file's header before the work starts."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING

import pytest
from PIL import Image
from polymux.runtime.settings import EngineSettings, Limits
from support.conversions import wav
from support.polymux_server import CONVERT, PolymuxServer, form
from support.weights import upscaler, whisper

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import Answer

STT = "/api/v1/modelhost/stt"
UPSCALE = "/api/v1/modelhost/imageupscale?model=nightmareai/real-esrgan"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("estimates")
    engines = {
        "media": EngineSettings("media", threads=1),
        "speech": EngineSettings("speech", {"model": str(whisper(folder))}),
        "upscale": EngineSettings("upscale", {"model": str(upscaler()), "factor": 2}),
        "tesseract": EngineSettings("tesseract"),
    }
    limits = Limits(memory_bytes=64 << 20)
    with PolymuxServer(folder / "s", engines=engines, limits=limits) as running:
        yield running


@pytest.fixture(scope="module")
def hurried(server: PolymuxServer) -> str:
    """A key that allows requests of up to 2 s of work."""
    key, _ = server.keys.add("hurried", max_estimate_s=2.0)
    return key


def post(server: PolymuxServer, path: str, key: str, *fields: tuple[str, object]) -> Answer:
    body, headers = form(*fields)
    return server.ask("POST", path, body, headers, key=key)


def picture(width: int, height: int) -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (width, height), "white").save(buffer, "PNG")
    return buffer.getvalue()


def refused(answer: Answer, *words: str) -> str:
    message: str = answer.json()["error"]
    assert (answer.status, answer.json()["code"]) == (422, "estimate_over_limit")
    assert all(word in message for word in words), message
    return message


def test_long_recordings_are_refused_by_a_key_s_limit(server: PolymuxServer, hurried: str) -> None:
    answer = post(server, CONVERT, hurried, ("file", ("a.wav", wav(600))))
    refused(answer, "6 s", "2 s", "600.0 s")
    # A measurement replaces the initial estimate.
    short = ("file", ("a.wav", wav(5)))
    impatient, _ = server.keys.add("impatient", max_estimate_s=1e-6)
    guessed = refused(post(server, CONVERT, impatient, short))
    assert post(server, CONVERT, server.key, short).status == 200
    assert refused(post(server, CONVERT, impatient, short), "5.0 s") != guessed
    answer = post(server, STT, hurried, ("audio", ("a.wav", wav(60))))
    refused(answer, "60.0 s")


def test_pictures(server: PolymuxServer, hurried: str) -> None:
    def upscale(key: str, width: int, height: int, scale: str) -> Answer:
        image = ("image", ("a.png", picture(width, height)))
        return post(server, UPSCALE, key, image, ("scale", scale))

    refused(upscale(hurried, 800, 500, "2"), "1.6 megapixels")
    # Exceeds the server's memory limit, which applies to every key.
    answer = upscale(server.key, 1000, 1000, "4")
    assert answer.status == 422
    assert "MiB" in answer.json()["error"]
    assert upscale(hurried, 40, 30, "2").status == 200
    read = post(server, "/api/v1/image2text", hurried, ("file", ("a.png", picture(100, 50))))
    refused(read, "1.0 pages")


def test_what_cannot_be_measured_fails_as_itself(server: PolymuxServer, hurried: str) -> None:
    answer = post(server, CONVERT, hurried, ("file", ("a.wav", b"no media at all" * 100)))
    assert answer.status == 415
