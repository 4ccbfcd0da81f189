"""With one tile, detail equals the output of diffusers' pipeline. Prompt weights are applied."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy
import pytest
from polymux.engines.diffusion.prompts import encoded, parsed
from polymux.engines.diffusion.schedulers import made as scheduler_of
from polymux.engines.diffusion.upscale.schedulers import named
from support import diffusion
from support.detail_models import ROLE, made, picture
from support.lazy_imports import torch

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine


@pytest.fixture(scope="module")
def engine(detail: dict[str, Path]) -> DiffusionEngine:
    # Compared digit by digit, so the device and precision are fixed.
    return diffusion.engine(detail, previews=False, device="cpu", dtype="float32")


def by_diffusers(engine: DiffusionEngine, pixels: Any, scheduler: str) -> Any:
    """The output of diffusers' pipeline, from the encoder's mode instead of a random sample."""
    manager = engine.manager
    parts = manager.parts(ROLE)
    plain = torch.from_numpy(pixels.transpose(2, 0, 1).copy())[None].float() / 255
    solver = scheduler_of(named(scheduler), parts["scheduler"].config)
    control = manager.part("detail:controlnet", "ControlNetModel")
    with (
        torch.inference_mode(),
        manager.pipeline(
            "StableDiffusionControlNetImg2ImgPipeline", ROLE, solver, controlnet=control
        ) as pipeline,
    ):
        latents = parts["vae"].encode(plain * 2 - 1).latent_dist.mode()
        found = pipeline(
            prompt="a barn",
            negative_prompt="rain",
            image=latents * parts["vae"].config.scaling_factor,
            control_image=plain,
            strength=0.5,
            num_inference_steps=8,
            guidance_scale=6.0,
            controlnet_conditioning_scale=0.6,
            generator=manager.generator(1337),
            output_type="np",
        ).images[0]
    return numpy.rint(found * 255)


@pytest.mark.parametrize("scheduler", ["Euler a", "DPM++ 3M SDE Karras", "DPM++ SDE", "Heun"])
def test_one_tile_is_diffusers_own(engine: DiffusionEngine, tmp_path: Path, scheduler: str) -> None:
    pixels = picture(128, 128)
    found = made(
        engine, tmp_path, pixels, scale_factor=1, scheduler=scheduler, num_inference_steps=8,
        negative_prompt="rain",
    )  # fmt: skip
    expected = by_diffusers(engine, pixels, scheduler)
    assert abs(found.astype(float) - expected).max() <= 1


def encoded_prompts(engine: DiffusionEngine, *prompts: str) -> Any:
    parts = engine.manager.parts(ROLE)

    def encoder(ids: Any) -> tuple[Any]:
        # The mean of a trained encoder's output is not zero.
        return (parts["text_encoder"](ids)[0] + 0.5,)

    return encoded([parsed(one) for one in prompts], parts["tokenizer"], encoder, "cpu")


def test_weights_multiply_and_the_mean_stays(engine: DiffusionEngine) -> None:
    plain, weighed = encoded_prompts(engine, "a barn"), encoded_prompts(engine, "a (barn:1.5)")
    assert float(weighed.mean()) == pytest.approx(float(plain.mean()), rel=1e-4)
    # Start, "a", the four letters of "barn", end and padding.
    ratio = (weighed / plain)[0]
    usual = float(ratio[0, 0])
    assert usual < 1
    expected = torch.full_like(ratio, usual)
    expected[2:6] *= 1.5
    assert torch.allclose(ratio, expected, rtol=1e-4)
    assert torch.equal(encoded_prompts(engine, "a (barn:1)"), plain)


@pytest.mark.parametrize(
    ("prompt", "chunks"), [("", 1), ("x" * 75, 1), ("x" * 76, 2), ("x" * 151, 3), ("a BREAK b", 2)]
)
def test_long_prompts_are_read_in_chunks(engine: DiffusionEngine, prompt: str, chunks: int) -> None:
    found = encoded_prompts(engine, "short", prompt)
    assert found.shape == (2, 77 * chunks, 32)
    assert torch.equal(found[0, :77], encoded_prompts(engine, "short")[0])
    if chunks > 1:
        assert torch.equal(found[0, 77:154], encoded_prompts(engine, "")[0])
