"""Every operation and choice without a model, in each of five ways: refused with what to pull."""

from __future__ import annotations

import asyncio
import io
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx2
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
    from pathlib import Path

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


def pulled(name: str, variant: str, given: dict[str, Any]) -> str:
    """The model that the refusal names."""
    return ROLES[needed_roles(name, variant, given)[0]].model


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("nothing")
    with PolymuxServer(folder / "s", engines=ENGINES) as running:
        yield running


def test_every_choice_is_of_the_catalogue() -> None:
    assert len(CASES) == 3 + 3 + 4 + 1
    for one in CASES:
        known = catalogue.find(pulled(*one))
        assert known is not None
        assert known.license


@pytest.mark.parametrize("case", CASES, ids=lambda one: pulled(*one))
def test_both_clients_and_local_say_what_to_pull(
    server: PolymuxServer, case: tuple[str, str, dict[str, Any]]
) -> None:
    name, _, given = case
    words = re.escape(f"'polymux models pull {pulled(*case)}'")

    async def ask() -> None:
        async with polymux.AsyncClient(server.url, server.key) as client:
            await getattr(client, name)(**given)

    with (
        polymux.Client(server.url, server.key) as client,
        pytest.raises(errors.NoBackendError, match=words) as caught,
    ):
        getattr(client, name)(**given)
    assert caught.value.status == 501
    with pytest.raises(errors.NoBackendError, match=words):
        asyncio.run(ask())
    with (
        polymux.Local(engines=ENGINES) as local,
        pytest.raises(errors.NoBackendError, match=words),
    ):
        getattr(local, name)(**given)


PATHS = {
    "generate_image": "imagegeneration",
    "upscale_image": "imageupscale",
    "generate_video": "videogeneration",
    "generate_music": "musicgeneration",
}


@pytest.mark.parametrize("case", [CASES[1], CASES[3], CASES[6], CASES[10]], ids=lambda one: one[0])
def test_the_route_and_the_command_say_what_to_pull(
    server: PolymuxServer, tmp_path: Path, case: tuple[str, str, dict[str, Any]]
) -> None:
    name, variant, given = case
    words = f"'polymux models pull {pulled(*case)}'"
    files = {key: ("a.png", one) for key, one in given.items() if isinstance(one, bytes)}
    fields = {key: (None, one) for key, one in given.items() if isinstance(one, str)}
    fields.pop("model", None)
    model = next(one.model for one in operation(name).variants if one.id == variant)
    answer = httpx2.post(
        f"{server.url}/api/v1/modelhost/{PATHS[name]}",
        params={"model": model} if model else {},
        headers={"Authorization": f"Bearer {server.key}"},
        files={**fields, **files},
        timeout=60,
    )
    assert answer.status_code == 501, answer.text
    assert words in answer.json()["error"]
    (tmp_path / "a.png").write_bytes(png())
    first = str(tmp_path / "a.png") if files else "x"
    more = ["--model", model] if model else []
    more += ["--sd-model", given["sd_model"]] if "sd_model" in given else []
    done = subprocess.run(
        [sys.executable, "-m", "polymux", name.replace("_", "-"), first, *more,
         "--server", server.url],
        env={**os.environ, "POLYMUX_API_KEY": server.key},
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert words in done.stderr
