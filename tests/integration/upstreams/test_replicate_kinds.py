"""Of which kinds files are that go to a service in Replicate's form and come from it."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from servers import media, steps
from support.replicate_service import ASTRA, ESRGAN, ReplicateService, replicate
from support.upstreams import IMAGES, STT, gateway, posted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import PolymuxServer

UPSCALE = "/api/v1/modelhost/imageupscale"
SONGS = "/api/v1/modelhost/musicgeneration"
PNG = media.png(8, 8)


@pytest.fixture
def service(ports: list[int]) -> Iterator[ReplicateService]:
    with ReplicateService(port=ports[0]) as running:
        yield running


@pytest.fixture(scope="module")
def server(ports: list[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("replicate")
    with ReplicateService(port=ports[0]) as known:
        settings = replicate(folder, known)
    with gateway(folder, {"replicate": settings}) as running:
        yield running


@pytest.mark.parametrize(
    ("sound", "content_type"),
    [
        (b"fLaC\0\0\0\x22" + bytes(60), "audio/flac"),
        (b"OggS\0\x02" + bytes(22) + b"\x01\x13OpusHead" + bytes(30), "audio/ogg"),
    ],
)
def test_music_of_other_kinds(
    server: PolymuxServer, service: ReplicateService, sound: bytes, content_type: str
) -> None:
    """No kind is asked for."""
    service.output({"audio": f"data:;base64,{base64.b64encode(sound).decode()}"})
    answer = posted(server, SONGS, ("prompt_a", "jazz"))
    assert answer.status == 200, answer.body
    address = answer.json()["output"]["audio"].removeprefix(server.url)
    file = server.ask("GET", address, key=None)
    assert (file.headers["content-type"], file.body) == (content_type, sound)
    assert address.partition("?")[0].endswith(f".{content_type.removeprefix('audio/')}")


@pytest.mark.parametrize("sent", [b"no picture", media.wav()])
def test_what_is_no_picture_is_not_sent(
    server: PolymuxServer, service: ReplicateService, sent: bytes
) -> None:
    """As the engine here refuses it."""
    answer = posted(server, f"{UPSCALE}?model={ESRGAN}", ("image", ("a.png", sent)))
    told = answer.json()
    assert (answer.status, told["code"], told["param"]) == (415, "unsupported_media", "image")
    assert told["error"].startswith("a.png: this is no picture of a kind that is read")
    fields = [("prompt", "a boat"), ("image", ("a.png", PNG)), ("mask", ("m.png", sent))]
    answer = posted(server, f"{IMAGES}?model={ASTRA}", *fields)
    assert (answer.status, answer.json()["param"]) == (415, "mask")
    answer = posted(server, STT, ("audio", ("a.wav", PNG)))
    assert (answer.status, answer.json()["param"]) == (415, "audio")
    assert service.predictions == []
    assert service.files.sent == {}


@pytest.mark.parametrize("data", [PNG[:-20], media.jpeg()[:-2], PNG[:40] + b"\0" + PNG[41:]])
def test_pictures_that_are_not_whole(
    server: PolymuxServer, service: ReplicateService, data: bytes
) -> None:
    """In the answer and at an address: nothing of them is kept."""
    service.script(steps.answer(200, data, content_type="image/png"), path="/cut", times=None)
    for output in (f"data:;base64,{base64.b64encode(data).decode()}", "HOST/cut"):
        service.output(output)
        answer = posted(server, f"{UPSCALE}?model={ESRGAN}", ("image", ("a.png", PNG)))
        assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
        assert "a picture that is none" in answer.json()["error"]
    assert list(server.settings.store.folder.glob("drafts/*")) == []
