"""The steps of denoising: told and shown as they go, and where the work is ended."""

from __future__ import annotations

import io
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.engines.base import EngineSink, Token

#: Of the way to the end, that steps take; the rest is decoding and writing.
_SHARE = 0.95
#: Parts of pipelines that compute for long.
_NETWORKS = ("unet", "transformer", "controlnet", "vae", "text_encoder", "text_encoder_2")
_PARTS = ("mid_block", "encoder", "decoder")
_LISTS = (
    "down_blocks", "up_blocks", "blocks", "resnets", "attentions", "transformer_blocks", "layers",
    "block",
)  # fmt: skip


class Steps:
    """Counts steps over all parts of one piece of work."""

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
        """One more is done.

        Raises:
            Cancelled: Somebody has asked for the end.
        """
        self.token.check()
        self.done += 1
        self._sink.report(_SHARE * min(1.0, self.done / self._total))
        if self._previews is not None and latents is not None:
            self._previews.draw(latents)

    def __call__(
        self,
        pipeline: Any,  # noqa: ARG002 - as diffusers calls it
        step: int,  # noqa: ARG002
        timestep: Any,  # noqa: ARG002
        kwargs: dict[str, Any],
    ) -> dict[str, Any]:
        self.step(kwargs.get("latents"))
        return {}

    def legacy(self, step: int, timestep: Any, latents: Any) -> None:  # noqa: ARG002
        """As old pipelines call ``callback``."""
        self.step(latents)

    @contextmanager
    def watching(self, pipeline: Any, *, previews: bool = False) -> Iterator[None]:
        """Looks at the token before each block of a pipeline's networks.

        A pass of a large model takes many seconds on processors: it needs not come to its end. The
        networks keep nothing of one that is given up.

        Args:
            previews: Whether small pictures are drawn of what its steps make. Default: False.
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
    """What a network consists of, as its classes in diffusers call it."""
    if network is None:
        return
    for name, module in network.named_modules():
        within, _, last = name.rpartition(".")
        if last in _PARTS or (last.isdigit() and within.rpartition(".")[2] in _LISTS):
            yield module


#: Longest side of what is decoded, in the latents' cells: eight pixels each.
_CELLS = 24
#: Of the first, which tells what the others will cost.
_FIRST_CELLS = 8
_PREVIEW_EVERY_S = 2.0
#: Dimensions of latents, where one is time.
_OF_VIDEO = 5
#: Of the time that steps take, that previews may.
_PREVIEW_SHARE = 0.1


class _Previews:
    """Draws small pictures of what is being painted; of videos, one frame.

    The latents are made small and decoded, as long as that costs little.
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
