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
#: Of the first, which tells what the others will cost.
_FIRST_CELLS = 8
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
        cells = _CELLS if self._cost_s > 0 else _FIRST_CELLS
        data = self._picture(latents, cells)
        self._cost_s = (time.monotonic() - now) * (_CELLS / cells) ** 2
        self._last_at = time.monotonic()
        if data is not None:
            self._sink.preview(data, "image/jpeg")

    def _picture(self, latents: Any, cells: int) -> bytes | None:
        import torch

        if latents.ndim != 4 or latents.dtype == torch.float16:
            return None  # Decoders overflow in 16 bits, and another precision would cost memory.
        small = _smaller(latents[:1], cells)
        decoder = self._pipeline.vae
        with torch.inference_mode():
            made = decoder.decode(
                small.to(decoder.dtype) / decoder.config.scaling_factor, return_dict=False
            )[0]
            picture = self._pipeline.image_processor.postprocess(made, output_type="pil")[0]
        buffer = io.BytesIO()
        picture.convert("RGB").save(buffer, "JPEG", quality=75)
        return buffer.getvalue()


def _smaller(latents: Any, cells: int) -> Any:
    import torch

    height, width = latents.shape[-2:]
    longest = max(height, width)
    if longest <= cells:
        return latents
    size = max(1, height * cells // longest), max(1, width * cells // longest)
    return torch.nn.functional.interpolate(latents.float(), size=size, mode="area")
