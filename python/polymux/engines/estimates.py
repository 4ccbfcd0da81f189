"""Estimates of an operation's time and memory from the header of its file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.media.engine import MEASURE_PICTURE, MEASURE_SOUND
from polymux.engines.upscale import MAX_PIXELS, passes
from polymux.service.admission import ThroughputEstimator
from polymux.service.model import Estimate, unseen_sink

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from polymux.service.model import OperationRequest, OperationResult, ProgressSink

    #: `run` of the media engine's backend.
    Runs = Callable[[OperationRequest, ProgressSink], Awaitable[OperationResult]]

_FLOAT_BYTES = 4
#: Copies of the resized image in memory: resized planes, joined, and encoded.
_COPIES = 3
#: Channels in memory: the network outputs colors, then transparency, then both are joined.
_COLOURS, _WITH_ALPHA = 3, 3 + 3 + 4
_MEGAPIXEL = 1e6


class Measure(NamedTuple):
    """How the work of an operation is measured.

    Attributes:
        step: Operation of the media engine that measures the file.
        units: Amount of work, computed from the request and the result of `step`.
        pace: Time per unit.
        memory_bytes: Memory, computed from the same; None if it does not depend on the file.
    """

    step: str
    units: Callable[[OperationRequest, Mapping[str, Any]], float]
    pace: ThroughputEstimator
    memory_bytes: Callable[[OperationRequest, Mapping[str, Any]], int] | None = None

    async def estimate(self, work: OperationRequest, field: str, media: Runs) -> Estimate:
        """Estimate a request with a file in `field`. The result is empty if the file is invalid."""
        file = work.values.get(field)
        if file is None:
            return Estimate()
        try:
            facts = (await media(work.step(self.step, {"file": file}), unseen_sink())).output
        except errors.PolymuxError:
            return Estimate()  # The job will report the error.
        units = self.units(work, facts)
        memory_bytes = None if self.memory_bytes is None else self.memory_bytes(work, facts)
        return Estimate(self.pace.seconds(units), memory_bytes, self.pace.words(units))


def sound(first_guess_s: float) -> Measure:
    return Measure(
        MEASURE_SOUND,
        lambda _, facts: float(facts["duration_s"] or 0.0),
        ThroughputEstimator("s of audio", first_guess_s),
    )


def enlarged(first_guess_s: float, factor: int, max_pixels: int = MAX_PIXELS) -> Measure:
    """Measure upscaling by the pixels that a network with this factor outputs in all passes.

    The network processes transparency separately. The last output is then resized.
    """

    def outputs(work: OperationRequest, facts: Mapping[str, Any]) -> list[int]:
        pixels = int(facts["width"]) * int(facts["height"])
        scale = float(work.values.get("scale") or factor)
        # An image that is too large for one pass will be rejected.
        count = max(1, passes(factor, scale, pixels, max_pixels))
        return [pixels * factor ** (2 * number) for number in range(1, count + 1)]

    def megapixels(work: OperationRequest, facts: Mapping[str, Any]) -> float:
        return sum(outputs(work, facts)) * (2 if _has_alpha(facts) else 1) / _MEGAPIXEL

    def memory_bytes(work: OperationRequest, facts: Mapping[str, Any]) -> int:
        scale = float(work.values.get("scale") or factor)
        wanted = int(facts["width"]) * int(facts["height"]) * scale**2
        # The last pass's input is in memory, too.
        before, last = [0, *outputs(work, facts)][-2:]
        made = last * (_WITH_ALPHA if _has_alpha(facts) else _COLOURS) + before * _COLOURS
        resized = wanted * int(facts["channels"]) * _COPIES
        return round(_FLOAT_BYTES * (made + resized))

    return Measure(
        MEASURE_PICTURE, megapixels, ThroughputEstimator("megapixels", first_guess_s), memory_bytes
    )


def _has_alpha(facts: Mapping[str, Any]) -> bool:
    return facts["channels"] in (2, 4)


def read(first_guess_s: float) -> Measure:
    return Measure(
        MEASURE_PICTURE,
        lambda _, facts: float(facts["pages"]),
        ThroughputEstimator("pages", first_guess_s),
    )
