"""Which models fit a machine. The models of the registry are real, and the machines are not."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from polymux import contract
from polymux.engines import registry as engines
from polymux.errors import InvalidRequestError
from polymux.models import import_local, registry
from polymux.models.folder import ModelsFolder
from polymux.models.recommend import SMALL, Machine, Recommendation, machine, recommend
from polymux.models.roles import assign_models, use
from support.native_build import ROOT
from support.repositories import safetensors, write

if TYPE_CHECKING:
    from pathlib import Path

LAPTOP = Machine(8 << 30, 4)
STATION = Machine(64 << 30, 16, ("NVIDIA Large",), 48 << 30)
GENERATED = ("generate_image", "generate_video", "generate_music")


@pytest.fixture
def folder(tmp_path: Path) -> ModelsFolder:
    return ModelsFolder(tmp_path / "models")


@pytest.mark.parametrize("here", [Machine(2 << 30, 1), LAPTOP, Machine(16 << 30, 8), STATION])
@pytest.mark.parametrize("operation", [one.name for one in contract.operations()])
def test_it_never_recommends_what_does_not_fit(
    operation: str, here: Machine, folder: ModelsFolder
) -> None:
    found = recommend(operation, folder, here)
    by_name = {one.name: one for one in found.models}
    assert len(by_name) == len(found.models)
    assert found.recommended is None or found.models[0].name == found.recommended
    if found.recommended is None:
        assert found.note
        return
    chosen = by_name[found.recommended]
    room = here.gpu_bytes if chosen.on_gpu else here.memory_bytes
    assert chosen.memory_bytes < room
    assert chosen.memory_bytes > (chosen.bytes or 0) or chosen.on_gpu
    assert chosen.commercial_use == "yes"
    others = [one for one in found.models if one.fits and one.commercial_use == "yes"]
    assert chosen.small is all(one.small for one in others)
    for one in found.models:
        assert one.fits or one.memory_bytes > min(here.memory_bytes - (1 << 30), room)


def test_laptops_get_quantized_models(folder: ModelsFolder) -> None:
    for operation in ("generate_image", "generate_video"):
        chosen = recommend(operation, folder, LAPTOP).models[0]
        assert (chosen.engine, chosen.fits) == ("sdcpp", True)
    assert recommend("generate-image", folder, STATION).models[0].engine == "diffusion"
    assert recommend("generate_image", folder, Machine(2 << 30, 1)).recommended == "pictures-mini"


def test_what_would_be_needed(folder: ModelsFolder) -> None:
    found = recommend("generate_video", folder, Machine(2 << 30, 1))
    assert found.recommended is None
    least = min(found.models, key=lambda one: one.memory_bytes)
    assert least.name in found.note
    assert f"{least.memory_bytes / 1e9:.1f} GB" in found.note


def test_licenses_that_not_everyone_may_use(
    folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are shown, and never recommended."""
    limited = [one for one in registry.all_models() if one.commercial_use != "yes"]
    monkeypatch.setattr(registry, "all_models", lambda: tuple(limited))
    found = recommend("generate_video", folder, STATION)
    assert found.models
    assert found.models[0].fits
    assert found.recommended is None
    assert found.models[0].license in found.note


def commands(found: Recommendation) -> tuple[str, str]:
    chosen = found.models[0]
    return chosen.install, chosen.use


def test_commands(folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They install the engine and the model, and give it a role if it has none."""
    install, used = commands(recommend("generate_image", folder, LAPTOP))
    name = recommend("generate_image", folder, LAPTOP).models[0].name
    assert install == f"polymux models pull {name}"
    assert used.startswith(f"polymux models use {name} --for picture && polymux generate-image ")
    monkeypatch.setattr(engines, "find_spec", lambda _: None)
    install, _ = commands(recommend("generate_image", folder, LAPTOP))
    assert install == f"pip install 'polymux[sdcpp]' && polymux models pull {name}"
    monkeypatch.undo()
    # The command to use it really assigns it.
    network = safetensors(x=(2,))
    place = write(tmp_path / "own", {"diffusion_model.safetensors": network})
    import_local.add(name, place, folder)
    assert commands(recommend("generate_image", folder, LAPTOP))[0] == ""
    use(name, ["picture:A"], folder)
    assert assign_models({}, folder, "sdcpp").models["picture:A"]["name"] == name
    # A model for detail needs another one.
    models = recommend("upscale_image", folder, LAPTOP).models
    install = next(one.install for one in models if one.name == "juggernaut-reborn")
    assert "juggernaut-reborn control-v11f1e-sd15-tile" in install


def test_other_operations(folder: ModelsFolder) -> None:
    assert recommend("convert_to_mp3", folder, LAPTOP).models == ()
    assert "transcribe" in recommend("summarize_video", folder, LAPTOP).note
    with pytest.raises(InvalidRequestError, match="generate_image"):
        recommend("generate-imag", folder, LAPTOP)
    for operation in GENERATED:
        assert recommend(operation, folder, STATION).models


def test_every_model_is_offered_for_something(folder: ModelsFolder) -> None:
    """Except those that only accompany others."""
    offered = {
        one.name
        for operation in contract.operations()
        for one in recommend(operation.name, folder, STATION).models
    }
    beside = {
        "sdxl-refiner-1.0", "stable-diffusion-safety-checker", "taesdxl",
        "control-v11f1e-sd15-tile",
    }  # fmt: skip
    assert {one.name for one in registry.all_models()} - offered == beside


def test_small_models_are_those_of_the_distribution() -> None:
    found = {}
    for place in (ROOT / "models").glob("*/polymux-model.json"):
        plain = json.loads(place.read_text("utf-8"))
        found[plain["name"]] = sum(one["bytes"] for one in plain["files"])
    assert found.keys() == SMALL.keys()
    for name, size in found.items():
        assert SMALL[name][1] == pytest.approx(size, rel=0.05)


def test_this_machine() -> None:
    here = machine()
    assert here.memory_bytes > 1 << 28
    assert here.processors >= 1
    assert (here.gpu_bytes > 0) == bool(here.gpus)
