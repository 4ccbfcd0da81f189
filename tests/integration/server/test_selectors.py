"""Selectors of models: unknown and empty ones, and versions that nobody looks at."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.service.model import OperationResult
from support.polymux_server import PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

PICTURES = "/api/v1/modelhost/imagegeneration"
MODEL = "bytedance/sdxl-lightning-4step"
VERSION = "6f7a773af6fc3e8de9d5a3c00be77c17308914bf67772726aff83496ba1e3bbe"


class Painter(Scripted):
    async def run(self, work: object, sink: object) -> OperationResult:
        return OperationResult([], "a version")


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("selectors") / "s"
    with PolymuxServer(folder, lambda: [Painter("painter", ["generate_image"])]) as running:
        yield running


@pytest.mark.parametrize("model", ["foo/bar", "foo/bar:1", "", "%00"])
def test_a_model_that_is_none(server: PolymuxServer, model: str) -> None:
    told = server.json(f"{PICTURES}?model={model}", {"prompt": "x"})
    assert (told.status, told.json()["code"]) == (400, "model_not_found")
    assert told.json()["param"] == "model"
    assert MODEL in told.json()["error"]


def test_a_version_is_told_as_not_looked_at(server: PolymuxServer) -> None:
    """The server's own answers, whichever that is."""
    plain = server.json(f"{PICTURES}?model={MODEL}", {"prompt": "x"}).json()
    assert "version" not in plain["logs"]
    named = server.json(f"{PICTURES}?model={MODEL}:{VERSION}", {"prompt": "x"}).json()
    assert f'model: the version "{VERSION}" is not looked at' in named["logs"].replace("'", '"')
    assert named["model"] == plain["model"]
