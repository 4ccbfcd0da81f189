"""The steps of denoising: told as they go, and where the work is ended."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
    """Counts steps over all parts of one piece of work.

    Args:
        sink: Where progress is told.
        token: Looked at at every step.
        total: How many steps there are in all.
    """

    def __init__(self, sink: EngineSink, token: Token, total: int) -> None:
        self._sink = sink
        self.token = token
        self._total = max(1, total)
        self._look: Callable[[Any], object] | None = None
        self.done = 0

    def step(self, latents: Any = None) -> None:
        """One more is done.

        Raises:
            Cancelled: Somebody has asked for the end.
        """
        self.token.check()
        self.done += 1
        self._sink.report(_SHARE * min(1.0, self.done / self._total))
        if self._look is not None and latents is not None:
            self._look(latents)

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
    def seen_by(self, look: Callable[[Any], object]) -> Iterator[None]:
        """Shows the latents of each step to somebody, such as to who draws previews."""
        self._look = look
        try:
            yield
        finally:
            self._look = None

    @contextmanager
    def watching(self, pipeline: Any) -> Iterator[None]:
        """Looks at the token before each block of a pipeline's networks.

        A pass of a large model takes many seconds on processors: it needs not come to its end. The
        networks keep nothing of one that is given up.
        """
        handles = [
            block.register_forward_pre_hook(lambda *_: self.token.check())
            for name in _NETWORKS
            for block in _blocks(getattr(pipeline, name, None))
        ]
        try:
            yield
        finally:
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
