"""Denoising steps: progress, previews and cancellation."""

from __future__ import annotations

import io
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.engines.base import EngineSink, Token

#: Fraction of the progress for steps; the rest is decoding and writing.
_SHARE = 0.95
#: Components of pipelines that compute for a long time.
_NETWORKS = ("unet", "transformer", "controlnet", "vae", "text_encoder", "text_encoder_2")
_PARTS = ("mid_block", "encoder", "decoder")
_LISTS = (
    "down_blocks", "up_blocks", "blocks", "resnets", "attentions", "transformer_blocks", "layers",
    "block",
)  # fmt: skip


class Steps:
    """Counts the steps of one request."""

    def __init__(self, sink: EngineSink, token: Token, total: int) -> None:
        self._sink = sink
        self.token = token
        self._total = max(1, total)
        self._previews: _Previews | None = None
        self._began_at = time.monotonic()
        self.done = 0

    @property
    def metrics(self) -> dict[str, float]:
        took_s = max(1e-9, time.monotonic() - self._began_at)
        return {"steps": float(self.done), "steps_per_s": self.done / took_s}

    def step(self, latents: Any = None) -> None:
        """Count a step, report progress, and check for cancellation.

        Raises:
            Cancelled: The request was canceled.
        """
        self.token.check()
        self.done += 1
        self._sink.report(_SHARE * min(1.0, self.done / self._total))
        if self._previews is not None and latents is not None:
            self._previews.draw(latents)

    def __call__(
        self,
        pipeline: Any,  # noqa: ARG002 - diffusers' signature
        step: int,  # noqa: ARG002
        timestep: Any,  # noqa: ARG002
        kwargs: dict[str, Any],
    ) -> dict[str, Any]:
        self.step(kwargs.get("latents"))
        return {}

    def legacy(self, step: int, timestep: Any, latents: Any) -> None:  # noqa: ARG002
        """Count a step; has the signature of ``callback`` in old pipelines."""
        self.step(latents)

    @contextmanager
    def watching(self, pipeline: Any, *, previews: bool = False) -> Iterator[None]:
        """Check for cancellation before each block of a pipeline's networks.

        On CPUs a pass of a large model takes many seconds, so it can be stopped in the middle. The
        networks keep no state of an interrupted pass.

        Args:
            pipeline: The pipeline.
            previews: Send preview images of the steps. Default: False.
        """
        self._previews = _Previews(pipeline, self._sink) if previews else None
        handles = [
            block.register_forward_pre_hook(lambda *_: self.token.check())
            for name in _NETWORKS
            for block in _blocks(getattr(pipeline, name, None))
        ]
        try:
            yield
        finally:
            self._previews = None
            for handle in handles:
                handle.remove()


def _blocks(network: Any) -> Iterator[Any]:
    """Yield the blocks of a network, found by the attribute names in diffusers' classes."""
    if network is None:
        return
    for name, module in network.named_modules():
        within, _, last = name.rpartition(".")
        if last in _PARTS or (last.isdigit() and within.rpartition(".")[2] in _LISTS):
            yield module


#: Maximum side of a preview in latent cells of eight pixels.
_CELLS = 24
#: Maximum side of the first preview, which measures the cost of the others.
_FIRST_CELLS = 8
_PREVIEW_EVERY_S = 2.0
#: Dimensions of video latents, which include time.
_OF_VIDEO = 5
#: Maximum fraction of the steps' time for previews.
_PREVIEW_SHARE = 0.1


class _Previews:
    """Sends small previews of the current image, or of one frame of a video.

    Latents are scaled down and decoded if that costs little time.
    """

    def __init__(self, pipeline: Any, sink: EngineSink) -> None:
        self._pipeline = pipeline
        self._sink = sink
        self._last_at = time.monotonic()
        self._cost_s = 0.0

    def draw(self, latents: Any) -> None:
        now = time.monotonic()
        if now - self._last_at < max(_PREVIEW_EVERY_S, self._cost_s / _PREVIEW_SHARE):
            return
        cells = _CELLS if self._cost_s > 0 else _FIRST_CELLS
        data = self._picture(latents, cells)
        self._cost_s = (time.monotonic() - now) * (_CELLS / cells) ** 2
        self._last_at = time.monotonic()
        if data is not None:
            self._sink.preview(data, "image/jpeg")

    def _picture(self, latents: Any, cells: int) -> bytes | None:
        import torch
        from PIL import Image

        decoder = self._pipeline.vae
        if latents.dtype == torch.float16 or getattr(decoder, "_hf_hook", None) is not None:
            # Decoders overflow in float16, and another precision would need memory. With
            # offloading, the decoder would remove the running network from the device.
            return None
        small = _smaller(_one_of(latents, decoder.config), cells)
        with torch.inference_mode():
            scaled = _scaled(small, decoder.config).to(decoder.dtype)
            made = decoder.decode(scaled, return_dict=False)[0]
        pixels = made[0, :, 0] if made.ndim == _OF_VIDEO else made[0]
        shown = (pixels.float().nan_to_num() / 2 + 0.5).clamp(0, 1) * 255
        picture = Image.fromarray(shown.permute(1, 2, 0).byte().cpu().numpy())
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=75)
        return buffer.getvalue()


def _one_of(latents: Any, config: Any) -> Any:
    """Select the latents of one image; for a video, those of the middle frame.

    Wan's decoder needs latents of consecutive frames and can only decode the first one alone.
    """
    if latents.ndim != _OF_VIDEO:
        return latents[:1]
    if "z_dim" in config:
        return latents[:1, :, :1]
    return latents[:1, :, latents.shape[2] // 2]


def _smaller(latents: Any, cells: int) -> Any:
    import torch

    height, width = latents.shape[-2:]
    longest = max(height, width)
    if longest <= cells:
        return latents
    size = max(1, height * cells // longest), max(1, width * cells // longest)
    return torch.nn.functional.interpolate(
        latents.float(), size=(*latents.shape[2:-2], *size), mode="area"
    )


def _scaled(latents: Any, config: Any) -> Any:
    """Scale latents for the decoder. Some models have a scale per channel."""
    import torch

    def each(name: str, otherwise: float) -> Any:
        values = torch.tensor(config.get(name) or [otherwise], dtype=torch.float32)
        return values.view(1, -1, *[1] * (latents.ndim - 2)).to(latents.device)

    latents = latents.float() * each("latents_std", 1.0) / (config.get("scaling_factor") or 1.0)
    return latents + each("latents_mean", 0.0)
