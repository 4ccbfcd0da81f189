"""Detail models with tiny random weights, which test the code and not the image quality."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy
from PIL import Image
from polymux.engines.base import Output, Token
from polymux.engines.diffusion.upscale import upscale

from support import diffusion
from support.diffusion_models import stable_diffusion
from support.lazy_imports import diffusers, safetensors, torch

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray
    from polymux.engines.diffusion.engine import DiffusionEngine

    Pixels = NDArray[numpy.uint8]
    #: `made` and `worked` for one engine and one folder.
    Paint = Callable[..., Pixels]
    Work = Callable[..., tuple[Output, diffusion.HeardSink]]

#: The fastest settings that still generate: tiles of 128 pixels, two Euler steps.
QUICK = {
    "prompt": "a barn",
    "negative_prompt": "",
    "scheduler": "Euler",
    "num_inference_steps": 4,
    "creativity": 0.5,
    "tiling_width": 16,
    "tiling_height": 16,
}
ROLE = "detail:juggernaut_reborn"


def control_net(folder: Path) -> Path:
    """A tile ControlNet for the tiny Stable Diffusion. As if trained, no weight is zero."""
    torch.manual_seed(5)
    made = diffusers.ControlNetModel(
        block_out_channels=(8, 16),
        layers_per_block=1,
        down_block_types=("DownBlock2D", "CrossAttnDownBlock2D"),
        conditioning_embedding_out_channels=(4, 4, 8, 8),
        cross_attention_dim=32,
        attention_head_dim=4,
        norm_num_groups=4,
    )
    layers = [
        *made.controlnet_down_blocks,
        made.controlnet_mid_block,
        made.controlnet_cond_embedding.conv_out,
    ]
    for layer in layers:
        torch.nn.init.normal_(layer.weight, std=0.3)
    made.save_pretrained(folder)
    return folder


def models(folder: Path) -> dict[str, Path]:
    return {
        ROLE: stable_diffusion(folder / "sd"),
        "detail:controlnet": control_net(folder / "control"),
    }


def lora(path: Path, unet: Any, scale: float = 1.0) -> Path:
    """LoRA weights for the attention of a tiny network, in the format of kohya's scripts."""
    generator = torch.Generator().manual_seed(3)
    weights = {}
    for name, module in unet.named_modules():
        if not name.endswith(("attn1.to_q", "attn2.to_v")):
            continue
        key = f"lora_unet_{name.replace('.', '_')}"
        rows, columns = module.weight.shape
        weights[f"{key}.lora_down.weight"] = torch.randn(2, columns, generator=generator)
        weights[f"{key}.lora_up.weight"] = torch.randn(rows, 2, generator=generator) * scale
        weights[f"{key}.alpha"] = torch.tensor(2.0)
    safetensors.save_file(weights, path)
    return path


def picture(width: int, height: int) -> Pixels:
    """An image with smooth colors and an edge."""
    down, across = numpy.mgrid[0:height, 0:width] / max(width, height)
    made = numpy.stack((across, down, 1 - across), axis=2) * 200 + 20
    made[height // 3 : height // 2, width // 3 : width // 2] = 240
    return made.astype(numpy.uint8)


SMALL = picture(60, 50)


def checkpoint(path: Path, unet: Any, encoder: Any) -> Path:
    """A network with one layer per block and its text encoder, in one checkpoint file."""
    weights = {
        f"model.diffusion_model.{_shared_name(name)}": one.contiguous()
        for name, one in unet.state_dict().items()
    }
    for name, one in encoder.state_dict().items():
        plain = name.removeprefix("text_model.")
        weights[f"cond_stage_model.transformer.text_model.{plain}"] = one.contiguous()
    safetensors.save_file(weights, path)
    return path


#: Diffusers' names of a network with two blocks of one layer, to the original names.
_SHARED = [
    (r"^time_embedding\.linear_1", "time_embed.0"),
    (r"^time_embedding\.linear_2", "time_embed.2"),
    (r"^conv_in", "input_blocks.0.0"),
    (r"^down_blocks\.0\.resnets\.0", "input_blocks.1.0"),
    (r"^down_blocks\.0\.downsamplers\.0\.conv", "input_blocks.2.0.op"),
    (r"^down_blocks\.1\.resnets\.0", "input_blocks.3.0"),
    (r"^down_blocks\.1\.attentions\.0", "input_blocks.3.1"),
    (r"^mid_block\.resnets\.0", "middle_block.0"),
    (r"^mid_block\.attentions\.0", "middle_block.1"),
    (r"^mid_block\.resnets\.1", "middle_block.2"),
    (r"^up_blocks\.0\.resnets\.(\d)", r"output_blocks.\1.0"),
    (r"^up_blocks\.0\.attentions\.(\d)", r"output_blocks.\1.1"),
    (r"^up_blocks\.0\.upsamplers\.0", "output_blocks.1.2"),
    (r"^up_blocks\.1\.resnets\.0", "output_blocks.2.0"),
    (r"^up_blocks\.1\.resnets\.1", "output_blocks.3.0"),
    (r"^conv_norm_out", "out.0"),
    (r"^conv_out", "out.2"),
    (r"\.norm1\.(weight|bias)$", r".in_layers.0.\1"),
    (r"\.conv1\.", ".in_layers.2."),
    (r"\.time_emb_proj\.", ".emb_layers.1."),
    (r"\.norm2\.(weight|bias)$", r".out_layers.0.\1"),
    (r"\.conv2\.", ".out_layers.3."),
    (r"\.conv_shortcut\.", ".skip_connection."),
]


def _shared_name(name: str) -> str:
    for known, shared in _SHARED:
        # Norms inside attention keep these names.
        if "transformer_blocks" not in name or known.startswith("^"):
            name = re.sub(known, shared, name)
    return name


def worked(
    engine: DiffusionEngine,
    folder: Path,
    pixels: Pixels,
    mask: Pixels | None = None,
    **values: Any,
) -> tuple[Output, diffusion.HeardSink]:
    """The engine's result for an image with `QUICK` and these values, and its warnings."""
    files = diffusion.picture("image", Image.fromarray(pixels), folder)
    if mask is not None:
        files |= diffusion.picture("mask", Image.fromarray(mask), folder)
    sink = diffusion.HeardSink(folder)
    asked = diffusion.request("upscale_image", "A", **QUICK | values | files)
    with engine.manager.lock:
        return upscale.make(engine.manager, asked, sink, Token()), sink


def made(engine: DiffusionEngine, folder: Path, pixels: Pixels, **values: Any) -> Pixels:
    output, _ = worked(engine, folder, pixels, **values)
    with Image.open(output.value[0].path) as opened:
        return numpy.asarray(opened.convert("RGB"))


def difference(first: Pixels, second: Pixels) -> float:
    """The largest difference of two images, from 0 to 255."""
    return float(abs(first.astype(float) - second.astype(float)).mean())
