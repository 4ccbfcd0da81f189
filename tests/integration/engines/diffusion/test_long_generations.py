"""Generations that the machine cannot do in reasonable time: refused with numbers, or allowed.

The slow model has the shape of SDXL and no weights for it: what it would take is counted on its
shape, and nobody waits for it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.runtime.settings import EngineSettings, Limits
from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUICK = {"width": 256, "height": 256, "num_inference_steps": 1, "seed": 3}
SLOW = {"width": 1024, "height": 1024, "num_inference_steps": 50}
A, B = "bytedance/sdxl-lightning-4step", "lorenzomarines/astra"
#: What only the shape of the published network has, beside that of the small one.
SHAPE = {
    "block_out_channels": [320, 640, 1280],
    "layers_per_block": 2,
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "attention_head_dim": [5, 10, 20],
    "transformer_layers_per_block": [1, 2, 10],
    "cross_attention_dim": 2048,
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
    "norm_num_groups": 32,
}


@pytest.fixture(scope="module")
def slow(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("slow") / "sdxl"
    shutil.copytree(models["picture:B"], made)
    path = made / "unet" / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text("utf-8")) | SHAPE), "utf-8")
    return made


@pytest.fixture(scope="module")
def engines(models: dict[str, Path], slow: Path) -> dict[str, EngineSettings]:
    cast = {"picture:A": str(models["picture:A"]), "picture:B": str(slow)}
    return {
        "media": EngineSettings("media", threads=1),
        "diffusion": EngineSettings("diffusion", {"models": cast}, threads=1),
    }


@pytest.fixture(scope="module")
def server(
    engines: dict[str, EngineSettings], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("long")
    with PolymuxServer(folder / "s", engines=engines) as running:
        yield running


def refused(call: Any) -> str:
    with pytest.raises(errors.UnprocessableEntityError) as caught:
        call()
    assert caught.value.code == "estimate_over_limit"
    told = str(caught.value)
    for words in ("300 s", "1 x 50 steps of 1024 x 1024", "TFLOP/s", "fewer steps", "upstream"):
        assert words in told
    return told


def test_a_server_refuses_what_would_take_hours_by_default(server: PolymuxServer) -> None:
    with polymux.Client(server.url, server.key) as client:
        before = server.state.service.jobs.count
        told = refused(lambda: client.generate_image("a house", model=B, **SLOW))
        assert "a key that may ask for longer work" in told
        assert server.state.service.jobs.count == before
        assert client.generate_image("a house", model=A, **QUICK).status == "succeeded"


def test_a_key_that_allows_long_work_is_not_refused(server: PolymuxServer) -> None:
    key, _ = server.keys.add("patient", max_estimate_s=86400.0 * 30)
    with (
        polymux.Client(server.url, key) as client,
        pytest.raises(errors.APIError) as caught,
    ):
        client.generate_image("a house", model=B, **SLOW)
    # It was begun, and found what the model lacks.
    assert "cannot be used" in str(caught.value)


def test_local_refuses_it_too_and_can_be_told_to_do_it(engines: dict[str, EngineSettings]) -> None:
    with polymux.Local(engines=engines) as local:
        told = refused(lambda: local.generate_image("a house", model=B, **SLOW))
        assert "max_generation_s of Local" in told
        assert local.generate_image("a house", model=A, **QUICK).status == "succeeded"
    for lifted in (None, 1e9):
        with (
            polymux.Local(engines=engines, max_generation_s=lifted) as local,
            pytest.raises(errors.APIError, match="cannot be used"),
        ):
            local.generate_image("a house", model=B, **SLOW)


def test_the_command_refuses_it_too_and_has_an_option(slow: Path, tmp_path: Path) -> None:
    environment = {**os.environ, "POLYMUX_MODELS": str(tmp_path / "models")}
    words = ["generate-image", "a house", "--model", B, "--output-dir", str(tmp_path / "out")]
    words += ["--width", "1024", "--height", "1024"]

    def run(*more: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "polymux", *more],
            env=environment, capture_output=True, text=True, timeout=120, check=False,
        )  # fmt: skip

    added = run("models", "add", "sdxl-base-1.0", str(slow), "--family", "diffusion")
    assert added.returncode == 0, added.stderr
    found = run(*words, "--local")
    assert found.returncode != 0
    assert "1 x 50 steps of 1024 x 1024" in found.stderr
    assert "--max-generation" in found.stderr
    allowed = run(*words, "--local", "--max-generation", "none")
    assert "cannot be used" in allowed.stderr
    lost = run(*words, "--server", "http://127.0.0.1:9", "--max-generation", "60")
    assert "--max-generation is for --local" in lost.stderr


def test_a_model_that_was_timed_is_held_to_the_limit(
    engines: dict[str, EngineSettings], tmp_path: Path
) -> None:
    limits = Limits(max_generation_s=1e-6)
    with (
        PolymuxServer(tmp_path / "s", engines=engines, limits=limits) as server,
        polymux.Client(server.url, server.key) as client,
    ):
        with pytest.raises(errors.UnprocessableEntityError, match="TFLOP/s"):
            client.generate_image("a house", model=A, **QUICK)
        key, _ = server.keys.add("patient", max_estimate_s=600)
        with polymux.Client(server.url, key) as patient:
            assert patient.generate_image("a house", model=A, **QUICK).status == "succeeded"


@pytest.fixture(scope="module")
def pair(
    models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    """Two generations at once, as far as a device of one piece of work at a time goes."""
    options = {"models": {"picture:B": str(models["picture:B"])}}
    engines = {
        "media": EngineSettings("media", threads=1),
        "diffusion": EngineSettings("diffusion", options, threads=1, max_concurrency=2),
    }
    with PolymuxServer(tmp_path_factory.mktemp("pair") / "s", engines=engines) as running:
        yield running


def test_an_estimate_waits_for_nobody(pair: PolymuxServer) -> None:
    """Two are at work, and who asks for too much is told at once."""
    patient, _ = pair.keys.add("patient", max_estimate_s=86_400)
    key, _ = pair.keys.add("hurried", max_estimate_s=0.001)
    with polymux.Client(pair.url, patient) as client, polymux.Client(pair.url, key) as hurried:
        client.generate_image("a house", model=B, **QUICK)  # It is loaded.
        begun = [
            client.generate_image(
                "a house", model=B, wait=False, width=1024, height=1024, num_inference_steps=500
            )
            for _ in range(2)
        ]
        until = time.monotonic() + 30
        while {client.predictions.get(one.id).status for one in begun} != {"processing"}:
            assert time.monotonic() < until
            time.sleep(0.05)
        began = time.monotonic()
        with pytest.raises(errors.UnprocessableEntityError, match="TFLOP/s"):
            hurried.generate_image("a house", model=B, width=512, height=768)
        assert time.monotonic() - began < 10
        assert [client.predictions.get(one.id).status for one in begun] == ["processing"] * 2
        for one in begun:
            assert client.predictions.cancel(one.id).status == "canceled"


def test_two_at_once_with_other_schedulers_do_not_mix(pair: PolymuxServer) -> None:
    names = ["K_EULER_ANCESTRAL", "DDIM", "HeunDiscrete", "PNDM"]
    asked = {"width": 256, "height": 256, "num_inference_steps": 6, "seed": 7, "model": B}
    with polymux.Client(pair.url, pair.key) as client:

        def made(name: str) -> bytes:
            return client.generate_image("a house", scheduler=name, **asked).images[0].read()

        alone = [made(one) for one in names]
        assert len(set(alone)) == len(names)
        with ThreadPoolExecutor(len(names)) as pool:
            assert list(pool.map(made, names)) == alone
