"""Measurement of the device's speed and of a model's operations per step, for estimates."""

from __future__ import annotations

import time
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion import folders

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH, _SIDE = 320, 32
_MEASURED_S = 0.25
#: Networks of video need at least so many cells on each side.
_MIN_CELLS = 8
#: SDXL gets six numbers: original size, crop position and target size.
_SIZES = 6


class _NoTracker:
    """Replaces the module tracker of `FlopCounterMode`, which hooks into all modules.

    Other threads may run models during the count, and their modules must not be counted.
    """

    parents = frozenset(("Global",))

    def __enter__(self) -> None:
        """Do nothing."""

    def __exit__(self, *_: object) -> None:
        """Do nothing."""


def flops_per_s(manager: Any) -> float:
    """Measure the device's floating point operations per second in typical layers.

    It times convolutions and matrix products for a quarter of a second each.
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
    # Half of the operations are of each kind, so the times add up.
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
    """Count the operations of one pass of an image model for an image size.

    The count uses a model without weights: nothing is computed, and only its configuration is read.

    Raises:
        NoBackendError: The directory is not a model.
    """
    import torch

    folders.index_of(path)
    net = _shape_of(path, "unet")
    config = net.config
    return _counted(
        net,
        _empty(1, config.in_channels, *_cells(path, width, height)),
        torch.zeros(1, device="meta"),
        encoder_hidden_states=_empty(1, 77, config.cross_attention_dim),
        added_cond_kwargs=_conditions(config),
    )


@lru_cache(maxsize=64)
def flops_of_decoding(path: Path, width: int, height: int) -> float:
    """Count the operations of decoding one image. They are proportional to its pixels.

    Args:
        path: Directory of a model or of a decoder.
        width: Width in pixels.
        height: Height in pixels.
    """
    is_whole = (path / "vae").is_dir()
    net = _shape_of(path, "vae" if is_whole else "")
    widths = next(net.config[name] for name in folders.VAE_STAGES if net.config.get(name))
    cell_px: int = 2 ** (len(widths) - 1)
    if "latent_channels" in net.config:
        once = _counted(net.decoder, _empty(1, net.config.latent_channels, 8, 8))
    else:
        # A video decoder; count one frame.
        once = _counted(net.decoder, _empty(1, net.config.z_dim, 1, 8, 8))
    return once * (width * height / (8 * cell_px) ** 2)


@lru_cache(maxsize=8)
def flops_of_check(path: Path) -> float:
    """Count the operations of the safety check of one image."""
    import torch
    from transformers import CLIPConfig, CLIPVisionModel

    config: Any = CLIPConfig.from_pretrained(path, local_files_only=True).vision_config
    with torch.device("meta"):
        net: Any = CLIPVisionModel(config)
    return _counted(net.float(), _empty(1, 3, config.image_size, config.image_size))


@lru_cache(maxsize=64)
def flops_of_video_pass(path: Path, kind: str, width: int, height: int, frames: int) -> float:
    """Count the operations of one pass of a video model for a number of frames.

    Args:
        path: Directory of the model.
        kind: Class of its pipeline.
        width: Width in pixels.
        height: Height in pixels.
        frames: Number of frames.
    """
    import torch

    cells = _cells(path, width, height)
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
    """Create a component of a model without weights."""
    import json

    import diffusers
    import torch

    config = json.loads((path / part / "config.json").read_bytes())
    with torch.device("meta"):
        # float(): another thread that loads a model may have changed the default dtype.
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


def _cells(path: Path, width: int, height: int) -> tuple[int, int]:
    """Return the rows and columns of a model's latents."""
    cell_px = folders.vae_factor(path)
    return max(_MIN_CELLS, height // cell_px), max(_MIN_CELLS, width // cell_px)


def _conditions(config: Any) -> dict[str, Any]:
    """Return SDXL's further inputs, without values: sizes, and the embedding of the whole text."""
    if config.addition_embed_type != "text_time":
        return {}
    width = int(config.addition_time_embed_dim)
    pooled = int(config.projection_class_embeddings_input_dim) - _SIZES * width
    return {"text_embeds": _empty(1, pooled), "time_ids": _empty(1, _SIZES)}
