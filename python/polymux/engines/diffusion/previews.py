"""Small pictures of what is being painted, every few steps; of videos, one frame."""

from __future__ import annotations

import io
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.engines.base import EngineSink
    from polymux.engines.diffusion.pipelines import PipelineManager
    from polymux.engines.diffusion.steps import Steps

#: Longest side of what is decoded, in the latents' cells: eight pixels each.
_CELLS = 24
#: Of the first, which tells what the others will cost.
_FIRST_CELLS = 8
_EVERY_S = 2.0
#: Dimensions of latents, where one is time.
_OF_VIDEO = 5
#: Of the time that steps take, that previews may.
_SHARE = 0.1


class Previews:
    """Draws them: the latents are made small and decoded, as long as that costs little.

    Args:
        manager: Its options say whether they are wanted: ``previews``.
        pipeline: Whose latents they are.
        sink: Where they go.
    """

    def __init__(self, manager: PipelineManager, pipeline: Any, sink: EngineSink) -> None:
        self._wanted = manager.options.get("previews", True) is True
        self._pipeline = pipeline
        self._sink = sink
        self._last_at = time.monotonic()
        self._cost_s = 0.0

    @contextmanager
    def of(self, steps: Steps) -> Iterator[None]:
        """While these steps are done."""
        if not self._wanted:
            yield
            return
        with steps.seen_by(self._draw):
            yield

    def _draw(self, latents: Any) -> None:
        now = time.monotonic()
        if now - self._last_at < max(_EVERY_S, self._cost_s / _SHARE):
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
            # Decoders overflow in 16 bits, and another precision would cost memory; where that is
            # short, the decoder would drive what is at work off the device.
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
    """Those of one picture; of a video, of its middle.

    Wan's decoder takes those of many frames, and understands the first of them alone.
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
    """As the decoder takes them; some say for each channel what they were divided by."""
    import torch

    def each(name: str, otherwise: float) -> Any:
        values = torch.tensor(config.get(name) or [otherwise], dtype=torch.float32)
        return values.view(1, -1, *[1] * (latents.ndim - 2)).to(latents.device)

    latents = latents.float() * each("latents_std", 1.0) / (config.get("scaling_factor") or 1.0)
    return latents + each("latents_mean", 0.0)
