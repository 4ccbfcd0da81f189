"""Networks that produce NaN raise an error instead of a black image or silence."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
from PIL import Image
from polymux import errors
from support import detail_models, diffusion
from support.diffusion import HeardSink, request
from support.lazy_imports import safetensors, torch

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine

PICTURE = {"prompt": "a house", "width": 64, "height": 64, "num_inference_steps": 2}
VIDEO = {"prompt": "waves", "width": 64, "height": 64, "num_frames": 2, "num_inferences_steps": 1}
REFINED = PICTURE | {"refine": "base_image_refiner"}
MUSIC = {"prompt_a": "jazz", "num_inference_steps": 2}


def damaged(model: Path, folder: Path, part: str) -> Path:
    """A copy of the model with one NaN weight in the given part."""
    made = shutil.copytree(model, folder / f"{model.name}-{part}")
    path = max((made / part).glob("*.safetensors"), key=lambda one: one.stat().st_size)
    weights = safetensors.load_file(path)
    name = next(one for one in sorted(weights) if "conv_out" in one or "proj_out" in one)
    weights[name] = weights[name].clone()
    weights[name].view(-1)[0] = torch.nan
    safetensors.save_file(weights, path, {"format": "pt"})
    return made


CASES: list[tuple[str, str, tuple[str, str], dict[str, Any]]] = [
    ("picture:B", "vae", ("generate_image", "B"), PICTURE),
    ("picture:refiner", "unet", ("generate_image", "B"), REFINED),
    ("detail:juggernaut_reborn", "vae", ("upscale_image", "A"), detail_models.QUICK),
    ("video:576w", "vae", ("generate_video", ""), VIDEO | {"video_model": "576w"}),
    ("video:potat1", "transformer", ("generate_video", ""), VIDEO | {"video_model": "potat1"}),
    ("music", "unet", ("generate_music", ""), MUSIC),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda one: f"{one[0]}-{one[1]}")
def test_damaged_models_make_no_black_pictures(
    every: dict[str, Path], tmp_path: Path, case: tuple[Any, ...]
) -> None:
    role, part, (name, variant), values = case
    engine = diffusion.engine(every | {role: damaged(every[role], tmp_path, part)}, previews=False)
    if name == "upscale_image":
        values = values | diffusion.picture("image", Image.new("RGB", (60, 50), "red"), tmp_path)
    with pytest.raises(errors.InternalServerError, match="models info") as caught:
        engine.run(request(name, variant, **values), HeardSink(tmp_path), diffusion.token())
    assert caught.value.code == "engine_failed"
    assert engine.manager.slot(role).name in str(caught.value)
    assert not engine.manager.lock.locked()
    assert not list(tmp_path.rglob("draft-*"))


def test_a_checkpoint_of_a_request_without_numbers_is_refused_before_work(
    detailing: DiffusionEngine, sink: HeardSink, tmp_path: Path
) -> None:
    parts = detailing.manager.parts(detail_models.ROLE)
    path = detail_models.checkpoint(tmp_path / "own", parts["unet"], parts["text_encoder"])
    weights = safetensors.load_file(path)
    first = min(weights)
    safetensors.save_file({**weights, first: weights[first] * torch.nan}, path)
    given: dict[str, Any] = {"custom_sd_model_file": diffusion.upload(path)}
    given |= diffusion.picture("image", Image.new("RGB", (60, 50)), tmp_path)
    asked = request("upscale_image", "A", **detail_models.QUICK | given)
    with pytest.raises(errors.BadRequestError) as caught:
        detailing.run(asked, sink, diffusion.token())
    assert caught.value.param == "custom_sd_model"
    assert sink.progress == []
