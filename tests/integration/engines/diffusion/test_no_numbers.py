"""Networks that come to no numbers: that is told, and no black picture or silence is made of it."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch
from PIL import Image
from polymux import errors
from polymux.service.model import Upload
from safetensors.torch import load_file, save_file
from support import detail_models, diffusing, diffusion_models, video_models
from support.diffusing import HeardSink, request

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = {"prompt": "a house", "width": 256, "height": 256, "num_inference_steps": 2}
VIDEO = {"prompt": "waves", "width": 256, "height": 256, "num_frames": 2, "num_inferences_steps": 1}
REFINED = PICTURE | {"refine": "base_image_refiner"}
MUSIC = {"prompt_a": "jazz", "num_inference_steps": 2}


@pytest.fixture(scope="module")
def good(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("good")
    return {
        **models,
        **detail_models.models(folder / "detail"),
        "video:xl": video_models.text_to_video(folder / "text"),
        "video:576w": video_models.animate_diff(folder / "animated"),
        "video:potat1": video_models.wan(folder / "wan"),
        "music": diffusion_models.stable_diffusion(folder / "music"),
    }


def damaged(model: Path, folder: Path, part: str) -> Path:
    """A copy whose part has one weight that is no number."""
    made = shutil.copytree(model, folder / f"{model.name}-{part}")
    path = max((made / part).glob("*.safetensors"), key=lambda one: one.stat().st_size)
    weights = load_file(path)
    name = next(one for one in sorted(weights) if "conv_out" in one or "proj_out" in one)
    weights[name] = weights[name].clone()
    weights[name].view(-1)[0] = torch.nan
    save_file(weights, path, {"format": "pt"})
    return made


CASES: list[tuple[str, str, tuple[str, str], dict[str, Any]]] = [
    ("picture:B", "unet", ("generate_image", "B"), PICTURE),
    ("picture:B", "vae", ("generate_image", "B"), PICTURE),
    ("picture:refiner", "unet", ("generate_image", "B"), REFINED),
    ("detail:juggernaut_reborn", "unet", ("upscale_image", "A"), detail_models.QUICK),
    ("detail:juggernaut_reborn", "vae", ("upscale_image", "A"), detail_models.QUICK),
    ("video:xl", "unet", ("generate_video", ""), VIDEO),
    ("video:576w", "vae", ("generate_video", ""), VIDEO | {"video_model": "576w"}),
    ("video:potat1", "transformer", ("generate_video", ""), VIDEO | {"video_model": "potat1"}),
    ("music", "unet", ("generate_music", ""), MUSIC),
]  # fmt: skip


@pytest.mark.parametrize("case", CASES, ids=lambda one: f"{one[0]}-{one[1]}")
def test_damaged_models_make_no_black_pictures(
    good: dict[str, Path], tmp_path: Path, case: tuple[Any, ...]
) -> None:
    role, part, (name, variant), values = case
    engine = diffusing.engine(good | {role: damaged(good[role], tmp_path, part)}, previews=False)
    if name == "upscale_image":
        values = values | diffusing.picture("image", Image.new("RGB", (60, 50), "red"), tmp_path)
    with pytest.raises(errors.InternalServerError, match="beyond all bounds") as caught:
        engine.run(request(name, variant, **values), HeardSink(tmp_path), diffusing.token())
    assert caught.value.code == "engine_failed"
    assert engine.manager.slot(role).name in str(caught.value)
    assert not engine.manager.lock.locked()
    assert not list(tmp_path.rglob("draft-*"))


def test_weights_of_a_request_that_are_too_strong_are_named(
    good: dict[str, Path], tmp_path: Path
) -> None:
    engine = diffusing.engine(good, previews=False)
    weights = load_file(diffusion_models.lora(tmp_path / "lora", good["picture:B"]))
    path = tmp_path / "strong"
    save_file({name: one * 1e30 for name, one in weights.items()}, path)
    file = Upload(path, "strong.safetensors", "", path.stat().st_size)
    asked = request("generate_image", "B", **PICTURE, replicate_weights_file=file)
    with pytest.raises(errors.BadRequestError, match="with these weights sdxl") as caught:
        engine.run(asked, HeardSink(tmp_path), diffusing.token())
    assert caught.value.param == "replicate_weights"
    plain = request("generate_image", "B", **PICTURE)
    assert engine.run(plain, HeardSink(tmp_path), diffusing.token()).value


def test_a_checkpoint_of_a_request_without_numbers_is_refused_before_work(
    good: dict[str, Path], tmp_path: Path
) -> None:
    engine = diffusing.engine(good, previews=False)
    parts = engine.manager.parts(detail_models.ROLE)
    path = detail_models.checkpoint(tmp_path / "own", parts["unet"], parts["text_encoder"])
    weights = load_file(path)
    first = min(weights)
    save_file({**weights, first: weights[first] * torch.nan}, path)
    file = Upload(path, "own.safetensors", "", path.stat().st_size)
    with pytest.raises(errors.BadRequestError, match="weights are infinite") as caught:
        detail_models.worked(
            engine, tmp_path, detail_models.picture(60, 50), custom_sd_model_file=file
        )
    assert caught.value.param == "custom_sd_model"
