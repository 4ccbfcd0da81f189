from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from polymux.engines import registry
from polymux.models import health, import_local, selection, torch_device
from polymux.models.folder import ModelsFolder
from polymux.runtime.memory_budget import needed_bytes
from support.repositories import pipeline, write

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelsFolder:
    """A models folder with an image model of 24 numbers in half precision."""
    made = ModelsFolder(tmp_path / "models")
    import_local.add("sdxl-base-1.0", write(tmp_path / "own", pipeline()), made)
    monkeypatch.setenv("POLYMUX_MODELS", str(made.path))
    return made


def fake_device(torch: str, *, cuda: bool = False) -> torch_device.Device:
    names = ("NVIDIA Quick",) if cuda else ()
    return torch_device.Device(
        torch, cuda, names, "bfloat16" if cuda else "float32", "none is seen"
    )


def test_roles_models_and_device(folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "device", lambda: fake_device("2.13.0", cuda=True))
    found = health.generation({"music": "sdxl-base-1.0"})
    assert json.loads(json.dumps(found))["ok"] is True
    assert found["operations"] == ["generate_image B", "generate_music"]
    assert found["roles"]["picture:B"]["model"] == "sdxl-base-1.0"
    lines = "\n".join(health.lines(found))
    for named in ("generate_image B, generate_music", "torch 2.13.0", "NVIDIA Quick", "bfloat16",
                  "riffusion-model-v1", "'polymux models pull zeroscope-v2-xl'"):  # fmt: skip
        assert named in lines
    assert str(folder.path) not in lines


def test_without_models_and_without_the_package(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "device", lambda: fake_device("2.13.0+cpu"))
    found = health.generation(folder=ModelsFolder(tmp_path / "none"))
    assert (found["ok"], found["operations"]) == (False, [])
    lines = health.lines(found)
    assert all(one in lines[1] for one in ("torch 2.13.0+cpu", "float32", "none is seen"))
    monkeypatch.setattr(registry, "find_spec", lambda name: None)
    (line,) = health.lines(health.generation(folder=ModelsFolder(tmp_path / "none")))
    assert "pip install 'polymux[diffusion]'" in line


def test_memory_that_it_will_take(folder: ModelsFolder, tmp_path: Path) -> None:
    """The largest model in its loaded precision, its companions, and the libraries."""

    def needed(**options: object) -> int:
        chosen = selection.chosen("diffusion", {"device": "cpu", **options})
        found = needed_bytes("diffusion", chosen.options)
        assert found is not None
        return found

    libraries = needed_bytes("diffusion", {"models": {}})
    assert libraries is not None
    assert needed() - libraries == 24 * 4
    assert needed(dtype="bfloat16") - libraries == 24 * 2
    both = {"detail:controlnet": "sdxl-base-1.0", "detail:juggernaut_reborn": "sdxl-base-1.0"}
    assert needed(models=both) - libraries == 2 * 24 * 4
    (tmp_path / "own" / "unet" / "diffusion_pytorch_model.safetensors").write_bytes(b"cut")
    models = {"music": {"path": str(tmp_path / "own"), "name": "own"}}
    assert needed_bytes("diffusion", {"models": models}) is None
