"""Cancelling while weights are loaded, which nothing can interrupt: the process ends, and soon."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.runtime.settings import EngineSettings
from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

SMALL = {"model": "lorenzomarines/astra", "width": 256, "height": 256, "num_inference_steps": 2}
#: What the process gets to stop by itself, and what a machine with other work takes.
SOON_S = 10.0 + 10.0


#: Run by the engine's process as it starts: it is busy in the midst of loading.
BUSY = """
import os, sys
from pathlib import Path

folder = Path({folder!r})

def hook(event, given):
    if event == "open" and str(given[0]).endswith("scheduler_config.json"):
        while True:
            (folder / "loading").touch()

sys.addaudithook(hook)
"""


@pytest.fixture
def server(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[PolymuxServer]:
    (tmp_path / "sitecustomize.py").write_text(BUSY.format(folder=str(tmp_path)), "utf-8")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    options = {"models": {"picture:B": str(models["picture:B"])}}
    engines = {
        "media": EngineSettings("media", threads=1),
        "diffusion": EngineSettings("diffusion", options, threads=1),
    }
    with PolymuxServer(tmp_path / "s", engines=engines) as running:
        yield running


def wait_until(found: Callable[[], Any], within_s: float) -> None:
    ends_at = time.monotonic() + within_s
    while not found():
        assert time.monotonic() < ends_at
        time.sleep(0.05)


def test_it_ends_soon_and_leaves_no_process_busy(server: PolymuxServer, tmp_path: Path) -> None:
    engine = server.state.service.backends["diffusion"]._inner
    with polymux.Client(server.url, server.key) as client:
        begun = client.generate_image("a house", wait=False, **SMALL)
        wait_until((tmp_path / "loading").exists, 120)
        process = Path(f"/proc/{engine.process.pid}")
        assert client.predictions.cancel(begun.id).status == "canceled"
        wait_until(lambda: not process.exists(), SOON_S)
        assert client.predictions.get(begun.id).status == "canceled"
    # It was ended because nobody wanted it: that is no crash, and the next may begin at once.
    assert engine._crash_backoff.count(time.monotonic()) == 0
    wait_until(lambda: server.state.service.places["diffusion"].running == 0, SOON_S)
