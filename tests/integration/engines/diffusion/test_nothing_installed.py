"""Every operation and choice without a model: refused with what to pull."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from PIL import Image
from polymux import errors
from polymux.contract import operation
from polymux.models import catalogue
from polymux.models.roles import ROLES, needed_roles
from polymux.runtime.settings import EngineSettings
from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator

ENGINES = {
    "media": EngineSettings("media", threads=1),
    "diffusion": EngineSettings("diffusion", {"models": {}}, threads=1),
}


def png() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (80, 64)).save(buffer, "PNG")
    return buffer.getvalue()


def choices(name: str, variant: str, field: str) -> tuple[str, ...]:
    shape = next(one for one in operation(name).variants if one.id == variant)
    return tuple(shape.field(field).choices or ())


def cases() -> Iterator[tuple[str, str, dict[str, Any]]]:
    """Operation, variant, and what is asked for."""
    for one in operation("generate_image").variants:
        yield "generate_image", one.id, {"prompt": "x", "model": one.model}
    for choice in choices("upscale_image", "A", "sd_model"):
        yield "upscale_image", "A", {"image": png(), "sd_model": choice}
    for choice in choices("generate_video", "", "video_model"):
        yield "generate_video", "", {"prompt": "x", "video_model": choice}
    yield "generate_music", "", {"prompt_a": "x"}


CASES = list(cases())
PARAMS = {"upscale_image": "sd_model", "generate_video": "video_model"}


def pulled(name: str, variant: str, given: dict[str, Any]) -> str:
    """The model that the refusal names."""
    return ROLES[needed_roles(name, variant, given)[0]].model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with PolymuxServer(tmp_path_factory.mktemp("nothing") / "s", engines=ENGINES) as running:
        yield running


@pytest.mark.parametrize("case", CASES, ids=lambda one: pulled(*one))
def test_it_says_what_to_pull(server: PolymuxServer, case: tuple[str, str, dict[str, Any]]) -> None:
    assert len(CASES) == 3 + 3 + 4 + 1
    name, _, given = case
    known = catalogue.find(pulled(*case))
    assert known is not None
    assert known.license
    words = re.escape(f"'polymux models pull {pulled(*case)}'")
    with (
        polymux.Client(server.url, server.key) as client,
        pytest.raises(errors.NoBackendError, match=words) as caught,
    ):
        getattr(client, name)(**given)
    assert caught.value.status == 501
    assert caught.value.param == PARAMS.get(name, "model")
