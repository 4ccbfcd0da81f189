"""Two polymux servers, one behind the other's door in Replicate's form."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.runtime.upstream_settings import UpstreamSettings
from support.polymux_server import Box, form
from support.replicate_door import PICTURE, scripted_door
from support.replicate_service import ESRGAN, LIGHTNING, SPEECH
from support.upstreams import IMAGES, STT, gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import PolymuxServer

UPSCALE = "/api/v1/modelhost/imageupscale"


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def far(box: Box, tmp_path: Path) -> Iterator[PolymuxServer]:
    with scripted_door(tmp_path / "far", box) as running:
        yield running


@pytest.fixture
def near(far: PolymuxServer, tmp_path: Path) -> Iterator[PolymuxServer]:
    key = tmp_path / "far.key"
    key.write_text(far.key)
    settings = UpstreamSettings(
        "replicate", f"{far.url}/replicate/v1", key_file=key, models=versions_of(far)
    )
    with gateway(tmp_path / "near", {"far": settings}) as running:
        yield running


def versions_of(far: PolymuxServer) -> dict[str, str]:
    """Models of the door, by how the ids of their versions begin."""
    found = {}
    for name in (LIGHTNING, ESRGAN, SPEECH):
        told = far.ask("GET", f"/replicate/v1/models/{name}/versions").json()
        found[name] = f"{name}:{told['results'][0]['id'][:12]}"
    return found


def test_pictures_speech_and_files(near: PolymuxServer, far: PolymuxServer, box: Box) -> None:
    """Both ways, through both servers' stores."""
    drawn = near.json(f"{IMAGES}?model={LIGHTNING}", {"prompt": "a boat", "num_outputs": 2})
    assert drawn.status == 200, drawn.body
    files = [
        near.ask("GET", one.removeprefix(near.url), key=None).body for one in drawn.json()["output"]
    ]
    assert files == [PICTURE + b"0", PICTURE + b"1"]
    body, head = form(("audio", ("talk.wav", b"RIFF....WAVE and samples")), ("language", "de"))
    spoken = near.ask("POST", STT, body, head)
    assert spoken.status == 200, spoken.body
    assert spoken.json()["output"]["text"] == "Hello there."
    assert box.backend.files[-1] == {"audio": b"RIFF....WAVE and samples"}
    body, head = form(("image", ("a.png", PICTURE)))
    enlarged = near.ask("POST", f"{UPSCALE}?model={ESRGAN}", body, head)
    assert enlarged.status == 200, enlarged.body
    assert isinstance(enlarged.json()["output"], str)
    assert box.backend.files[-1] == {"image": PICTURE}
    kept = far.ask("GET", "/replicate/v1/files").json()
    assert kept["results"] == []
