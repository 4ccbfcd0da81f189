"""The diffusion engine, which runs in a child process."""

from __future__ import annotations

import logging
import re
import time
from importlib import import_module
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Engine, Output
from polymux.engines.diffusion import calibration, estimates
from polymux.engines.diffusion.estimates import ESTIMATED, HAS_MASK, HAS_VIDEO, IMAGE_SIZE
from polymux.engines.diffusion.image_files import FACTS
from polymux.engines.diffusion.pipelines import PipelineManager
from polymux.service.admission import ThroughputEstimator

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from polymux.engines.base import EngineSink, Request, Token

#: Internal operation: estimate the time and memory of a request.
ESTIMATE = "estimate_generation"
_HALF_A_CHARACTER = re.compile("[\ud800-\udfff]")
#: Seconds of uncounted work in every request, such as encoding text and writing files. It also
#: keeps small images from distorting the measured speed.
_BESIDE_S = 1.0
#: Estimates without a measured run may be too long by this factor.
_DOUBT = 2.0
_log = logging.getLogger("polymux.engines")
#: How often a request that waits for the device checks for cancellation.
_LOOK_EVERY_S = 0.1


class DiffusionEngine(Engine):
    """Diffusion on one device: one request at a time, and estimates in parallel."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Detect the device and measure its speed. Models are loaded when they are first needed.

        Args:
            options: See `polymux.engines.diffusion.pipelines.PipelineManager`.

        Raises:
            NoBackendError: A package or the device is missing.
        """
        # One extra thread for estimates while requests run or wait.
        self.max_concurrency = int(options.get("max_concurrency", 1)) + 1
        self.manager = PipelineManager(options)
        self._flops_per_s = calibration.flops_per_s(self.manager)
        #: Model's directory to the measured time relative to the counted operations.
        self._paces: dict[Path, ThroughputEstimator] = {}
        return {
            "device": str(self.manager.device),
            "dtype": str(self.manager.dtype).removeprefix("torch."),
            "flops_per_s": self._flops_per_s,
        }

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        request = request._replace(values=_whole(request.values))
        if request.operation == ESTIMATE:
            asked = request._replace(operation=str(request.values[ESTIMATED]))
            return Output(self._estimated(asked))
        while not self.manager.lock.acquire(timeout=_LOOK_EVERY_S):
            token.check()
        try:
            token.check()
            return self._made(request, sink, token)
        finally:
            self.manager.lock.release()

    def _estimated(self, asked: Request) -> dict[str, Any]:
        """Estimate a request. Values are None if it cannot be counted. Running it fails then."""
        counted = self._counted(asked)
        if counted is None:
            return {"seconds": None, "memory_bytes": None, "why": "", "doubt": 1.0}
        pace = self._paces.get(self._painter(asked))
        if pace is None:
            return counted | {"doubt": _DOUBT}
        return counted | {"seconds": pace.seconds(counted["seconds"] + _BESIDE_S), "doubt": 1.0}

    def _counted(self, asked: Request) -> dict[str, Any] | None:
        try:
            return estimates.of(self.manager, asked, self._flops_per_s)
        except errors.PolymuxError:
            raise
        except Exception:  # The libraries raise any error for invalid models.
            _log.exception("cannot estimate a request")
            return None

    def _painter(self, request: Request) -> Path:
        return self.manager.slot(estimates.roles_of(self.manager, request)[0]).path

    def _made(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Run the request, and use its time to improve later estimates."""
        roles = estimates.roles_of(self.manager, request)
        was_loaded = all(map(self.manager.is_loaded, roles))
        began = time.monotonic()
        made: Output = _maker(request.operation)(self.manager, request, sink, token)
        took_s = time.monotonic() - began
        if was_loaded:
            sized = request._replace(values=_sized(request))
            counted = self._counted(sized)
            pace = self._paces.setdefault(
                self._painter(request), ThroughputEstimator("s as counted", 1.0)
            )
            pace.learn(0.0 if counted is None else counted["seconds"] + _BESIDE_S, took_s)
        return made


def _whole(values: Mapping[str, Any]) -> dict[str, Any]:
    """Replace lone surrogates with U+FFFD, because tokenizers reject them."""
    return {
        name: _HALF_A_CHARACTER.sub("\ufffd", one) if isinstance(one, str) else one
        for name, one in values.items()
    }


def _sized(request: Request) -> dict[str, Any]:
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
        "generate_image": "images",
        "upscale_image": "upscale.upscale",
        "generate_video": "video",
        "generate_music": "music",
    }
    return import_module(f"polymux.engines.diffusion.{modules[operation]}").make
