"""What work will take, by its file's header: how much of it there is, and how long that takes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.media import MEASURE_PICTURE, MEASURE_SOUND
from polymux.service.failures import engine_failed
from polymux.service.pace import Pace
from polymux.service.work import Estimate, Sink

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from polymux.service.drafts import Draft
    from polymux.service.work import Product, Work

    #: `run` of the media engine's backend.
    Runs = Callable[[Work, Sink], Awaitable[Product]]

#: Of a picture that is made: its samples as floats before and after it is resized.
_BYTES_PER_PIXEL = 2 * 4 * 4
_MEGAPIXEL = 1e6


class Measure(NamedTuple):
    """How one operation's work is measured.

    Attributes:
        step: What the media engine is asked for.
        units: How much work there is, of the facts that step tells.
        pace: How long a unit takes.
        memory_bytes: Of so many units; None where it does not grow with them.
    """

    step: str
    units: Callable[[Work, Mapping[str, Any]], float]
    pace: Pace
    memory_bytes: Callable[[float], int] | None = None

    async def estimate(self, work: Work, field: str, media: Runs) -> Estimate:
        """What `work` on the file in `field` will take; nothing where the file tells nothing."""
        file = work.values.get(field)
        if file is None:
            return Estimate()
        step = replace(work, operation=self.step, values={"file": file}, given=frozenset())
        try:
            facts = (await media(step, Sink(_nothing, _no_draft))).output
        except errors.PolymuxError:
            return Estimate()  # What is wrong with it is told when it is worked on.
        units = self.units(work, facts)
        memory_bytes = None if self.memory_bytes is None else self.memory_bytes(units)
        return Estimate(self.pace.seconds(units), memory_bytes, self.pace.words(units))


def sound(first_guess_s: float) -> Measure:
    """Work that grows with the length of a recording."""
    return Measure(
        MEASURE_SOUND,
        lambda _, facts: float(facts["duration_s"] or 0.0),
        Pace("s of sound", first_guess_s),
    )


def enlarged(first_guess_s: float) -> Measure:
    """Work that grows with the pixels that are made."""

    def megapixels(work: Work, facts: Mapping[str, Any]) -> float:
        scale = float(work.values.get("scale") or 1)
        return float(facts["width"] * facts["height"]) * scale * scale / _MEGAPIXEL

    def memory_bytes(units: float) -> int:
        return round(units * _MEGAPIXEL * _BYTES_PER_PIXEL)

    return Measure(MEASURE_PICTURE, megapixels, Pace("megapixels", first_guess_s), memory_bytes)


def read(first_guess_s: float) -> Measure:
    """Work that grows with the pages of a picture."""
    return Measure(
        MEASURE_PICTURE,
        lambda _, facts: float(facts["pages"]),
        Pace("pages", first_guess_s),
    )


def _nothing() -> None:
    pass


def _no_draft(_: int) -> Draft:
    raise engine_failed("a file that is measured makes none")
