"""stable-diffusion.cpp and diffusers compute the same with the same weights, within rounding."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux.engines.sdcpp.engine import SdcppEngine
from support import diffusion
from support.diffusion import HeardSink

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.base import Engine

WANTED = {
    "prompt": "a", "width": 256, "height": 256, "scheduler": "K_EULER", "num_inference_steps": 1,
    "guidance_scale": 1.0,
}  # fmt: skip


def write(folder: Path) -> dict[str, str]:
    """Write Stable Diffusion 1.5 with random weights in both layouts."""
    import diffusers
    import torch
    import transformers
    from safetensors.torch import save_file

    torch.manual_seed(3)
    unet = diffusers.UNet2DConditionModel(cross_attention_dim=768, attention_head_dim=8)
    words = transformers.CLIPTextModel(
        transformers.CLIPTextConfig(
            hidden_size=768, intermediate_size=3072, num_hidden_layers=12, num_attention_heads=12,
            vocab_size=49408, bos_token_id=49406, eos_token_id=49407,
        )
    )  # fmt: skip
    vae = diffusers.AutoencoderKL(
        block_out_channels=(128, 256, 512, 512), layers_per_block=2, latent_channels=4,
        down_block_types=("DownEncoderBlock2D",) * 4, up_block_types=("UpDecoderBlock2D",) * 4,
    )  # fmt: skip
    parts = {"unet": unet, "te.text_model": words, "vae": vae}
    save_file(
        {
            f"{part}.{key}": one
            for part, net in parts.items()
            for key, one in net.state_dict().items()
        },
        folder / "model.safetensors",
    )
    scheduler = diffusers.EulerDiscreteScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear",
        timestep_spacing="trailing",
    )  # fmt: skip
    diffusers.StableDiffusionPipeline(
        unet=unet, text_encoder=words, vae=vae, tokenizer=tokenizer(),
        scheduler=scheduler, safety_checker=None, feature_extractor=None,
        requires_safety_checker=False,
    ).save_pretrained(folder / "pipeline")  # fmt: skip
    return {"sdcpp": str(folder / "model.safetensors"), "diffusion": str(folder / "pipeline")}


def tokenizer() -> Any:
    """CLIP's tokens of single letters. The library has the whole vocabulary."""
    from transformers import CLIPTokenizer

    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [one for one in range(256) if one not in plain]
    signs = [chr(one) for one in plain] + [chr(256 + at) for at in range(len(others))]
    vocabulary = {sign: at for at, sign in enumerate([*signs, *(f"{one}</w>" for one in signs)])}
    vocabulary |= {"<|startoftext|>": 49406, "<|endoftext|>": 49407}
    return CLIPTokenizer(vocabulary, [], model_max_length=77)


def painted(engine: Engine, sink: HeardSink, seed: int) -> numpy.ndarray[Any, Any]:
    work = diffusion.request("generate_image", "B", **WANTED, seed=seed)
    made = engine.run(work, sink, diffusion.token())
    with Image.open(made.value[0].path) as image:
        return numpy.asarray(image.convert("RGB")).astype(float)


def psnr_db(one: numpy.ndarray[Any, Any], other: numpy.ndarray[Any, Any]) -> float:
    return 10 * math.log10(255**2 / max(1e-9, ((one - other) ** 2).mean()))


@pytest.mark.long
def test_one_step_and_its_decoding(tmp_path: Path) -> None:
    """Weights of full shape in 32 bits: one pass of the network, and one of the decoder."""
    paths = write(tmp_path)
    sink = HeardSink(tmp_path)
    ours = SdcppEngine()
    ours.load({"models": {"picture:B": {"path": paths["sdcpp"], "name": "random"}}})
    made = painted(ours, sink, seed=5)
    del ours
    theirs = diffusion.engine({"picture:B": tmp_path / "pipeline"})
    same, other = (painted(theirs, sink, seed=seed) for seed in (5, 6))
    print(psnr_db(made, same), psnr_db(made, other), made.std())
    assert made.std() > 10
    assert psnr_db(made, same) >= 40
    assert psnr_db(made, other) < 30
