"""Small pictures of what is being painted, every few steps."""

from __future__ import annotations

import io
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.engines.base import EngineSink
    from polymux.engines.diffusion.steps import Steps
    from polymux.engines.diffusion.studio import Studio

#: Longest side of what is decoded, in the latents' cells: eight pixels each.
_CELLS = 24
_EVERY_S = 2.0
#: Of the time that steps take, that previews may.
_SHARE = 0.1


class Previews:
    """Draws them: the latents are made small and decoded, as long as that costs little.

    Args:
        studio: Its options say whether they are wanted: ``previews``.
        pipeline: Whose latents they are.
        sink: Where they go.
    """

    def __init__(self, studio: Studio, pipeline: Any, sink: EngineSink) -> None:
        """Draws none yet."""
        self._wanted = studio.options.get("previews", True) is True
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
        data = self._picture(latents)
        self._cost_s = time.monotonic() - now
        self._last_at = time.monotonic()
        if data is not None:
            self._sink.preview(data, "image/jpeg")

    def _picture(self, latents: Any) -> bytes | None:
        import torch

        if latents.ndim != 4 or latents.dtype == torch.float16:
            return None  # Decoders overflow in 16 bits, and another precision would cost memory.
        small = _smaller(latents[:1])
        decoder = self._pipeline.vae
        with torch.inference_mode():
            made = decoder.decode(
                small.to(decoder.dtype) / decoder.config.scaling_factor, return_dict=False
            )[0]
            picture = self._pipeline.image_processor.postprocess(made, output_type="pil")[0]
        buffer = io.BytesIO()
        picture.convert("RGB").save(buffer, "JPEG", quality=75)
        return buffer.getvalue()


def _smaller(latents: Any) -> Any:
    import torch

    height, width = latents.shape[-2:]
    longest = max(height, width)
    if longest <= _CELLS:
        return latents
    size = max(1, height * _CELLS // longest), max(1, width * _CELLS // longest)
    return torch.nn.functional.interpolate(latents.float(), size=size, mode="area")
