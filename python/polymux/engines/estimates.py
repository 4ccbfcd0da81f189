"""What work will take, by its file's header: how much of it there is, and how long that takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.media.engine import MEASURE_PICTURE, MEASURE_SOUND
from polymux.service.admission import ThroughputEstimator
from polymux.service.model import Estimate, unseen_sink

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from polymux.service.model import OperationRequest, OperationResult, ProgressSink

    #: `run` of the media engine's backend.
    Runs = Callable[[OperationRequest, ProgressSink], Awaitable[OperationResult]]

_FLOAT_BYTES = 4
#: How often a picture is there at once when it has its size: resized, in one piece, to be encoded.
_COPIES = 3
#: The network makes colours, and of transparency as well; with that they are put together.
_COLOURS, _WITH_ALPHA = 3, 3 + 3 + 4
_MEGAPIXEL = 1e6


class Measure(NamedTuple):
    """How one operation's work is measured.

    Attributes:
        step: What the media engine is asked for.
        units: How much work there is, of the facts that step tells.
        pace: How long a unit takes.
        memory_bytes: The memory it takes, of the same; None where that does not grow.
    """

    step: str
    units: Callable[[OperationRequest, Mapping[str, Any]], float]
    pace: ThroughputEstimator
    memory_bytes: Callable[[OperationRequest, Mapping[str, Any]], int] | None = None

    async def estimate(self, work: OperationRequest, field: str, media: Runs) -> Estimate:
        """What `work` on the file in `field` will take; nothing where the file tells nothing."""
        file = work.values.get(field)
        if file is None:
            return Estimate()
        try:
            facts = (await media(work.step(self.step, {"file": file}), unseen_sink())).output
        except errors.PolymuxError:
            return Estimate()  # What is wrong with it is told when it is worked on.
        units = self.units(work, facts)
        memory_bytes = None if self.memory_bytes is None else self.memory_bytes(work, facts)
        return Estimate(self.pace.seconds(units), memory_bytes, self.pace.words(units))


def sound(first_guess_s: float) -> Measure:
    return Measure(
        MEASURE_SOUND,
        lambda _, facts: float(facts["duration_s"] or 0.0),
        ThroughputEstimator("s of sound", first_guess_s),
    )


def enlarged(first_guess_s: float, factor: int) -> Measure:
    """Work that grows with the pixels that a network makes, which enlarges by `factor`.

    It sees a picture once, and its transparency once more; what comes out is then resized.
    """

    def of_network(facts: Mapping[str, Any]) -> int:
        return int(facts["width"]) * int(facts["height"]) * factor**2

    def megapixels(_: OperationRequest, facts: Mapping[str, Any]) -> float:
        return of_network(facts) * (2 if _has_alpha(facts) else 1) / _MEGAPIXEL

    def memory_bytes(work: OperationRequest, facts: Mapping[str, Any]) -> int:
        scale = float(work.values.get("scale") or factor)
        wanted = int(facts["width"]) * int(facts["height"]) * scale**2
        made = of_network(facts) * (_WITH_ALPHA if _has_alpha(facts) else _COLOURS)
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
