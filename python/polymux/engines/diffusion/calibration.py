"""How fast this machine computes, and how much a model's step is: what estimates are made of."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion import folders

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH, _SIDE = 320, 32
_MEASURED_S = 0.25
_CELL_PX = 8
#: Numbers that SDXL is told: the sizes of what is made, cut and aimed at.
_SIZES = 6
#: Where decoders say how wide their stages are, each half as large as the one before.
_DECODER_WIDTHS = ("block_out_channels", "decoder_block_out_channels", "dim_mult")


class _NoTracker:
    """In the place of what tells a counter which module is at work: that hooks on all there are.

    Others paint while this is counted, and their modules are none of it.
    """

    parents = frozenset(("Global",))

    def __enter__(self) -> None:
        """Hooks on nothing."""

    def __exit__(self, *_: object) -> None:
        """Has nothing to take off."""


def flops_per_s(manager: Any) -> float:
    """Floating point operations that the device does in a second, in a net's usual layers.

    Measured by convolutions and products of matrices, a quarter of a second of each.
    """
    import torch

    where = {"device": manager.device, "dtype": manager.dtype}
    pixels = torch.randn(1, _WIDTH, _SIDE, _SIDE, **where)
    kernel = torch.randn(_WIDTH, _WIDTH, 3, 3, **where)
    matrix = torch.randn(_SIDE * _SIDE, _WIDTH, **where)
    other = torch.randn(_WIDTH, 4 * _WIDTH, **where)
    rates = [
        _rate(
            manager,
            lambda: torch.nn.functional.conv2d(pixels, kernel, padding=1),
            2 * 9 * _WIDTH * _WIDTH * _SIDE * _SIDE,
        ),
        _rate(manager, lambda: matrix @ other, 2 * _SIDE * _SIDE * _WIDTH * 4 * _WIDTH),
    ]
    # Half of the work in each: the time of both together counts.
    return 2.0 / sum(1.0 / one for one in rates)


def _rate(manager: Any, work: Any, flops: int) -> float:
    import torch

    def settle() -> None:
        if manager.device.type == "cuda":
            torch.cuda.synchronize(manager.device)

    with torch.inference_mode():
        work()
        settle()
        began, count = time.perf_counter(), 0
        while time.perf_counter() - began < _MEASURED_S:
            work()
            count += 1
            settle()
    return flops * count / (time.perf_counter() - began)


@lru_cache(maxsize=64)
def flops_of_pass(path: Path, width: int, height: int) -> float:
    """Operations of one pass of a model of pictures over latents for that size.

    Counted on a model without weights: nothing is computed, and nothing read but its shape.

    Raises:
        NoBackendError: The folder is no model.
    """
    import torch

    folders.index_of(path)
    net = _shape_of(path, "unet")
    config = net.config
    return _counted(
        net,
        _empty(1, config.in_channels, *_cells(width, height)),
        torch.zeros(1, device="meta"),
        encoder_hidden_states=_empty(1, 77, config.cross_attention_dim),
        added_cond_kwargs=_conditions(config),
    )


@lru_cache(maxsize=64)
def flops_of_decoding(path: Path, width: int, height: int) -> float:
    """Operations of making one picture of that size out of latents: they grow with its pixels.

    Args:
        path: Folder of a model, or of a decoder by itself.
    """
    is_whole = (path / "vae").is_dir()
    net = _shape_of(path, "vae" if is_whole else "")
    widths = next(net.config[name] for name in _DECODER_WIDTHS if net.config.get(name))
    cell_px: int = 2 ** (len(widths) - 1)
    if "latent_channels" in net.config:
        once = _counted(net.decoder, _empty(1, net.config.latent_channels, 8, 8))
    else:
        # A decoder of video, which takes frames as well: the first of them.
        once = _counted(net.decoder, _empty(1, net.config.z_dim, 1, 8, 8))
    return once * (width * height / (8 * cell_px) ** 2)


@lru_cache(maxsize=8)
def flops_of_check(path: Path) -> float:
    """Operations of looking at what one picture shows."""
    import torch
    from transformers import CLIPConfig, CLIPVisionModel

    config: Any = CLIPConfig.from_pretrained(path, local_files_only=True).vision_config
    with torch.device("meta"):
        net: Any = CLIPVisionModel(config)
    return _counted(net.float(), _empty(1, 3, config.image_size, config.image_size))


@lru_cache(maxsize=64)
def flops_of_video_pass(path: Path, kind: str, width: int, height: int, frames: int) -> float:
    """Operations of one pass of a model of video over latents for that many frames.

    Args:
        kind: Class of its pipeline.
    """
    import torch

    cells = _cells(width, height)
    if kind.startswith("Wan"):
        net = _shape_of(path, "transformer")
        shape = (1, net.config.in_channels, 1 - (1 - frames) // 4, *cells)
        words = _empty(1, 512, net.config.text_dim)
        return _counted(net, _empty(*shape), torch.zeros(1, device="meta"), words)
    net = _shape_of(path, "unet")
    words = _empty(1, 77, net.config.cross_attention_dim)
    if kind.startswith("AnimateDiff"):
        words = _empty(frames, 77, net.config.cross_attention_dim)
    shape = (1, net.config.in_channels, frames, *cells)
    return _counted(net, _empty(*shape), torch.zeros(1, device="meta"), words)


def _shape_of(path: Path, part: str) -> Any:
    """A part of a model without weights."""
    import json

    import diffusers
    import torch

    config = json.loads((path / part / "config.json").read_bytes())
    with torch.device("meta"):
        # Whoever loads a model meanwhile has changed what numbers are by default.
        return getattr(diffusers, config["_class_name"]).from_config(config).float()


def _counted(net: Any, *given: Any, **named: Any) -> float:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    counter: Any = FlopCounterMode(display=False)
    counter.mod_tracker = _NoTracker()
    with torch.inference_mode(), counter:
        net(*given, **named)
    return float(counter.get_total_flops())


def _empty(*shape: int) -> Any:
    import torch

    return torch.empty(*shape, device="meta", dtype=torch.float32)


def _cells(width: int, height: int) -> tuple[int, int]:
    return max(_CELL_PX, height // _CELL_PX), max(_CELL_PX, width // _CELL_PX)


def _conditions(config: Any) -> dict[str, Any]:
    """What SDXL is told beside the text, empty: sizes as numbers, and the text as a whole."""
    if config.addition_embed_type != "text_time":
        return {}
    width = int(config.addition_time_embed_dim)
    pooled = int(config.projection_class_embeddings_input_dim) - _SIZES * width
    return {"text_embeds": _empty(1, pooled), "time_ids": _empty(1, _SIZES)}
