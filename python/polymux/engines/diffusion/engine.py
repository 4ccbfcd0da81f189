"""Diffusion as an engine: what its process runs."""

from __future__ import annotations

import re
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Engine, Output
from polymux.engines.diffusion import calibration, estimates
from polymux.engines.diffusion.estimates import ESTIMATED, HAS_MASK, HAS_VIDEO, IMAGE_SIZE
from polymux.engines.diffusion.picture_files import FACTS
from polymux.engines.diffusion.studio import Studio
from polymux.models.roles import needed_roles
from polymux.service.pace import Pace

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Request, Token

#: What the backend asks beside the operations: what a request will take.
ESTIMATE = "estimate_generation"
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")
#: How often work that waits for the device looks at its token.
_LOOK_EVERY_S = 0.1


class DiffusionEngine(Engine):
    """One device; one piece of work at a time on it, and estimates beside it."""

    slots = 2

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Looks at the device and how fast it is; models are loaded when they are first needed.

        Args:
            options: As `polymux.engines.diffusion.studio.Studio` has them.

        Raises:
            NoBackendError: A package or the device is missing.
        """
        self.studio = Studio(options)
        self._flops_per_s = calibration.flops_per_s(self.studio)
        self._pace = Pace("s as counted", 1.0)
        return {
            "device": str(self.studio.device),
            "dtype": str(self.studio.dtype).removeprefix("torch."),
            "flops_per_s": self._flops_per_s,
        }

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Makes what was asked for, or tells what it would take."""
        request = request._replace(values=_whole(request.values))
        if request.operation == ESTIMATE:
            asked = request._replace(operation=str(request.values[ESTIMATED]))
            told = estimates.of(self.studio, asked, self._flops_per_s)
            return Output(told | {"seconds": self._pace.seconds(told["seconds"])})
        while not self.studio.lock.acquire(timeout=_LOOK_EVERY_S):
            token.check()
        try:
            token.check()
            return self._made(request, sink, token)
        finally:
            self.studio.lock.release()

    def _made(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Makes it; how long that took, beside what was counted, is learned for the next."""
        roles = needed_roles(request.operation, request.variant, request.values)
        was_loaded = all(map(self.studio.is_loaded, roles))
        began = time.monotonic()
        made: Output = _maker(request.operation)(self.studio, request, sink, token)
        took_s = time.monotonic() - began
        if was_loaded:
            sized = request._replace(values=_sized(request))
            counted = estimates.of(self.studio, sized, self._flops_per_s)
            self._pace.learn(counted["seconds"], took_s)
        return made


def _whole(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same with U+FFFD for each half of a surrogate pair, which no tokenizer takes."""
    return {
        name: _HALF_A_CHARACTER.sub("\ufffd", one) if isinstance(one, str) else one
        for name, one in values.items()
    }


def _sized(request: Request) -> dict[str, Any]:
    """What was worked on, as estimates take it."""
    facts = request.values.get("image" + FACTS)
    has_mask = "mask" + FACTS in request.values
    keeps_size = request.operation != "generate_image" or not has_mask
    size = {}
    if facts is not None and keeps_size:
        size = {IMAGE_SIZE: [facts["width"], facts["height"]]}
    has_video = "init_video" + FACTS in request.values
    return {**request.values, **size, HAS_MASK: has_mask, HAS_VIDEO: has_video}


def _maker(operation: str) -> Any:
    modules = {
        "generate_image": "pictures",
        "upscale_image": "detail",
        "generate_video": "video",
        "generate_music": "music",
    }
    return import_module(f"polymux.engines.diffusion.{modules[operation]}").make
