"""The registry's models for stable-diffusion.cpp, from local copies of the lists of files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy
import pytest
from polymux.fetch.fetcher import FetchPolicy
from polymux.models import download, registry
from polymux.models.folder import ModelsFolder
from polymux.models.roles import assign_models, request_of, roles_named, use
from support import sdcpp_models
from support.repositories import hub, safetensors

if TYPE_CHECKING:
    from pathlib import Path

#: Tensors that tell the kind of a model.
CHECKPOINT = ("model.diffusion_model.x", "cond_stage_model.x")
WAN, OTHER = ("blocks.0.cross_attn.norm_k.weight",), ("x",)
#: Repository to its files, by the names that programs download, and to the tensors in each.
LISTED = {
    "akleine/sdxs-512": {"sdxs.safetensors": CHECKPOINT},
    "madebyollin/taesd": {"diffusion_pytorch_model.safetensors": OTHER},
    "madebyollin/taesdxl": {"diffusion_pytorch_model.safetensors": OTHER},
    "mzwing/SDXL-Lightning-GGUF": {
        f"sdxl_lightning_{one}.gguf": CHECKPOINT
        for one in ("1step_x0.q8_0", "2step.q8_0", "4step.q4_0", "4step.q4_1", "4step.q8_0")
    },
    "Green-Sky/SD-Turbo-GGUF": {"sd_turbo-f16-q8_0.gguf": CHECKPOINT},
    "leejet/Z-Image-Turbo-GGUF": {
        f"z_image_turbo-{one}.gguf": OTHER for one in ("Q3_K", "Q4_0", "Q4_K", "Q8_0")
    },
    "unsloth/Qwen3-4B-Instruct-2507-GGUF": {
        f"Qwen3-4B-Instruct-2507-{one}.gguf": OTHER for one in ("Q4_K_M", "Q4_K_S", "UD-Q4_K_XL")
    },
    "Comfy-Org/z_image_turbo": {"split_files/vae/ae.safetensors": OTHER},
    "calcuis/wan-1.3b-gguf": {
        "wan2.1_t2v_1.3b-q4_0.gguf": WAN, "wan2.1_t2v_1.3b-q3_k_m.gguf": WAN,
        "wan2.1-vace-1.3b-q4_0.gguf": WAN, "umt5-xxl-encoder-q4_k_m.gguf": OTHER,
    },
    "city96/umt5-xxl-encoder-gguf": {
        f"umt5-xxl-encoder-{one}.gguf": OTHER for one in ("Q3_K_S", "Q4_K_M", "Q4_K_S", "Q8_0")
    },
    "Comfy-Org/Wan_2.1_ComfyUI_repackaged": {
        "split_files/vae/wan_2.1_vae.safetensors": OTHER,
        "split_files/text_encoders/umt5_xxl_fp16.safetensors": OTHER,
    },
}  # fmt: skip
MODELS = [one for one in registry.all_models() if one.family == "sdcpp"]


def written(folder: Path, name: str, tensors: tuple[str, ...]) -> bytes:
    if name.endswith(".safetensors"):
        return safetensors(**{one.replace(".", "__"): (2,) for one in tensors})
    path = folder / "made.gguf"
    shapes = dict.fromkeys(tensors, (2,))
    sdcpp_models.write_gguf(path, shapes, numpy.random.default_rng(1))
    return path.read_bytes()


@pytest.mark.parametrize("model", MODELS, ids=lambda one: one.name)
def test_they_are_pulled_and_get_their_roles(
    model: registry.Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {
        repository: {
            name: written(tmp_path, name, tensors) for name, tensors in LISTED[repository].items()
        }
        for repository in model.repositories
    }
    folder = ModelsFolder(tmp_path / "models")
    with hub(files) as found:
        monkeypatch.setenv("POLYMUX_MODELS_URL", found.url)
        policy = FetchPolicy(allowed_hosts=(found.storage.removeprefix("http://"),))
        made = download.pull(model, folder, policy=policy)
    assert (made.problem, made.family) == ("", "sdcpp")
    assert all(one.sha256 for one in made.manifest.files)
    roles = [one for one in roles_named(model.suits) if request_of(one) is not None]
    use(model.name, roles, folder)
    assigned = assign_models({}, folder, "sdcpp").models
    assert assigned.keys() == set(roles)
    for role in roles:
        facts = assigned[role]
        assert facts["native_size"] == list(model.native_size or ())
        assert facts.get("defaults", {}) == model.defaults.get(role, {})
        assert {"model", *facts.get("parts", {})} == model.paths.keys()
