"""Results equal those of diffusers' own pipelines with the same weights, seed and settings.

The references are made from the saved models, without polymux.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from support import diffusion, diffusion_models
from support.diffusion import HeardSink, picture, request
from support.lazy_imports import diffusers, torch
from support.video_files import drawn

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    Pixels = NDArray[numpy.float64]

WANTED = {
    "prompt": "a red barn", "negative_prompt": "rain", "width": 128, "height": 64, "seed": 11,
    "num_inference_steps": 5, "guidance_scale": 4.0, "apply_watermark": False,
}  # fmt: skip
#: Classes of diffusers for the schedulers of the API, with their options.
SOLVERS = {
    "K_EULER": ("EulerDiscreteScheduler", {}),
    "K_EULER_ANCESTRAL": ("EulerAncestralDiscreteScheduler", {}),
    "DDIM": ("DDIMScheduler", {}),
    "HeunDiscrete": ("HeunDiscreteScheduler", {}),
    "KarrasDPM": ("DPMSolverMultistepScheduler", {"use_karras_sigmas": True}),
    "PNDM": ("PNDMScheduler", {"skip_prk_steps": True}),
}
VIDEOS = {
    "xl": ("TextToVideoSDPipeline", "VideoToVideoSDPipeline"),
    "576w": ("AnimateDiffPipeline", "AnimateDiffVideoToVideoPipeline"),
    "potat1": ("WanPipeline", "WanVideoToVideoPipeline"),
}


@pytest.fixture(scope="module")
def stable_diffusion(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diffusion_models.stable_diffusion(tmp_path_factory.mktemp("sd"))


def reference(kind: str, model: Path, solver: str, options: Mapping[str, Any]) -> Any:
    made = getattr(diffusers, kind).from_pretrained(model, local_files_only=True)
    made.set_progress_bar_config(disable=True)
    if solver:
        made.scheduler = getattr(diffusers, solver).from_config(made.scheduler.config, **options)
    return made


def noise(folder: Path, width: int, height: int) -> Image.Image:
    values = numpy.random.default_rng(3).integers(0, 256, (8, 8, 3), numpy.uint8)
    return Image.fromarray(values).resize((width, height), Image.Resampling.BICUBIC)


def of_engine(model: Path, folder: Path, **given: Any) -> Pixels:
    engine = diffusion.engine({"picture:B": model})
    asked = request("generate_image", "B", **WANTED | given)
    made = engine.run(asked, HeardSink(folder), diffusion.token())
    with Image.open(made.value[0].path) as image:
        return numpy.asarray(image).astype(float)


def given_to_both(mode: str, folder: Path) -> tuple[dict[str, Any], dict[str, Any]]:
    """The images of a request: for polymux, and for diffusers."""
    if mode == "text":
        return {}, {"width": WANTED["width"], "height": WANTED["height"]}
    image = noise(folder, 128, 64)
    ours, theirs = picture("image", image, folder), {"image": image, "strength": 0.8}
    if mode == "image":
        return ours, theirs
    mask = Image.new("L", image.size)
    mask.paste(255, (0, 0, 64, 64))
    size = {"width": image.width, "height": image.height}
    return ours | picture("mask", mask, folder), theirs | size | {"mask_image": mask}


KINDS = {"text": "Pipeline", "image": "Img2ImgPipeline", "mask": "InpaintPipeline"}


@pytest.mark.parametrize("mode", KINDS)
@pytest.mark.parametrize("family", ["StableDiffusion", "StableDiffusionXL"])
@pytest.mark.parametrize("scheduler", SOLVERS)
def test_images(
    models: dict[str, Path],
    stable_diffusion: Path,
    tmp_path: Path,
    scheduler: str,
    family: str,
    mode: str,
) -> None:
    model = models["picture:B"] if family.endswith("XL") else stable_diffusion
    ours, theirs = given_to_both(mode, tmp_path)
    found = of_engine(model, tmp_path, scheduler=scheduler, **ours)
    pipeline = reference(family + KINDS[mode], model, *SOLVERS[scheduler])
    named = ("prompt", "negative_prompt", "num_inference_steps", "guidance_scale")
    settings = {name: WANTED[name] for name in named}
    source = torch.Generator().manual_seed(WANTED["seed"])
    expected = pipeline(**settings, **theirs, generator=source, output_type="np").images[0] * 255
    if mode == "mask":  # polymux also restores the black part of the mask.
        found, expected = found[:, :64], expected[:, :64]
    assert found.std() > 1
    assert abs(found - expected).max() <= 2


@pytest.mark.parametrize("refine", ["expert_ensemble_refiner", "base_image_refiner"])
def test_refiners(models: dict[str, Path], tmp_path: Path, refine: str) -> None:
    engine = diffusion.engine({role: models[role] for role in ("picture:B", "picture:refiner")})
    given = WANTED | {"scheduler": "K_EULER", "num_inference_steps": 10, "refine": refine}
    made = engine.run(
        request("generate_image", "B", **given), HeardSink(tmp_path), diffusion.token()
    )
    with Image.open(made.value[0].path) as image:
        found = numpy.asarray(image).astype(float)
    settings = {
        name: given[name]
        for name in ("prompt", "negative_prompt", "num_inference_steps", "guidance_scale")
    }
    is_expert = refine.startswith("expert")
    base = reference("StableDiffusionXLPipeline", models["picture:B"], *SOLVERS["K_EULER"])
    latents = base(
        **settings, width=128, height=64, output_type="latent",
        generator=torch.Generator().manual_seed(11),
        **({"denoising_end": 0.8} if is_expert else {}),
    ).images  # fmt: skip
    refiner = reference(
        "StableDiffusionXLImg2ImgPipeline", models["picture:refiner"], *SOLVERS["K_EULER"]
    )
    expected = refiner(
        **settings, image=latents, output_type="np", generator=torch.Generator().manual_seed(11),
        **({"denoising_start": 0.8} if is_expert else {"strength": 0.3}),
    ).images[0] * 255  # fmt: skip
    assert abs(found - expected).max() <= 2


@pytest.mark.parametrize("begins_with_video", [False, True])
@pytest.mark.parametrize("model", VIDEOS)
def test_videos(
    every: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    *,
    begins_with_video: bool,
) -> None:
    """The frames before they are encoded."""
    from polymux.engines.diffusion.image_files import FACTS, SAMPLES
    from polymux.media import video

    heard: list[Pixels] = []
    write = video.write_video

    def watched(path: Any, frames: Any, **options: Any) -> Any:
        shape = (options["height"], options["width"], 3)

        def kept() -> Any:
            for one in frames:
                heard.append(numpy.frombuffer(one, numpy.uint8).reshape(shape).astype(float))
                yield one

        return write(path, kept(), **options)

    monkeypatch.setattr(video, "write_video", watched)
    width, height, count = 64, 32, 5
    shown = numpy.stack([drawn(width, height, number) for number in range(count)])
    asked: dict[str, Any] = {
        "prompt": "waves", "negative_prompt": "rain", "video_model": model, "width": width,
        "height": height, "num_frames": count, "num_inferences_steps": 4, "guidance_scale": 3.0,
        "fps": 10, "seed": 7, "init_weight": 0.5,
    }  # fmt: skip
    theirs: dict[str, Any] = {"width": width, "height": height, "num_frames": count}
    if begins_with_video:
        file = tmp_path / "frames"
        file.write_bytes(shown.tobytes())
        facts = {"frames": count, "width": width, "height": height, "fps": 10}
        asked |= {"init_video" + SAMPLES: diffusion.upload(file), "init_video" + FACTS: facts}
        theirs = {"video": [Image.fromarray(one) for one in shown], "strength": 0.5}
        if model != "xl":
            theirs |= {"width": width, "height": height}
    path = every[f"video:{model}"]
    engine = diffusion.engine({f"video:{model}": path})
    engine.run(request("generate_video", **asked), HeardSink(tmp_path), diffusion.token())
    solver = "DPMSolverMultistepScheduler" if model == "xl" else ""
    pipeline = reference(VIDEOS[model][begins_with_video], path, solver, {})
    expected = pipeline(
        prompt="waves", negative_prompt="rain", num_inference_steps=4, guidance_scale=3.0,
        generator=torch.Generator().manual_seed(7), output_type="np", **theirs,
    ).frames[0]  # fmt: skip
    found = numpy.stack(heard)
    assert found.std() > 1
    assert abs(found - numpy.asarray(expected) * 255).max() <= 2


def test_music(stable_diffusion: Path, tmp_path: Path) -> None:
    """The spectrogram, which is image to image from the seed image."""
    from polymux.engines.diffusion.seed_spectrograms import seed_image

    begun, _ = seed_image("vibes", stable_diffusion)
    engine = diffusion.engine({"music": stable_diffusion})
    asked = request(
        "generate_music", "", prompt_a="jazz", denoising=0.6, num_inference_steps=5, seed=3
    )
    made = engine.run(asked, HeardSink(tmp_path), diffusion.token())
    # Riffusion adds the scheduler's offset to the steps, which are 4 of 5 then.
    pipeline = reference("StableDiffusionImg2ImgPipeline", stable_diffusion, "", {})
    expected = pipeline(
        prompt="jazz", image=begun, strength=0.8, num_inference_steps=5, guidance_scale=7.0,
        generator=torch.Generator().manual_seed(3),
    ).images[0]  # fmt: skip
    # The spectrogram is a JPEG.
    expected.save(tmp_path / "expected.jpg", quality=92)
    found, other = (
        numpy.asarray(Image.open(path)).astype(float)
        for path in (made.value["spectrogram"].path, tmp_path / "expected.jpg")
    )
    assert found.std() > 1
    assert abs(found - other).mean() <= 1
