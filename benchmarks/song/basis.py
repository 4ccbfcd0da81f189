"""The inputs of a decision, as the core reports them and as the rows of a run store them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_PEAKS_PER_SECOND = 13.0  # `Decision::least_peaks_per_second`
UNCHANGED = 0.0047  # a smaller difference in speed was found by the search at the original speed
#: The features that `Decision` has a weight for, in the order of `features`, with the name of each
#: there.
WEIGHTS = (
    "bias", "strength[0]", "strength[1]", "strongest_contrast", "dense_contrast", "speed_changed",
    "length",
)  # fmt: skip


@dataclass(frozen=True)
class Window:
    """Matches of one analysis window between the song's peaks and the snippet's.

    Attributes:
        likelihood: Natural logarithm of the likelihood ratio of a true match to chance.
        survival: Share of the song's peaks that are in the snippet.
        peaks: Peaks of the song within the snippet.
        hits: The number of these that were found.
    """

    likelihood: float
    survival: float
    peaks: int
    hits: int


@dataclass(frozen=True)
class Basis:
    """Inputs of the decision about a snippet's first candidate.

    Attributes:
        confidence: 0 to 1, by the weights of the build.
        heard_s: Length of the snippet.
        change: The property that may differ from the song's: `speed`, `tempo` or `pitch`.
        tempo: 1.02: 2 % faster than the song.
        pitch: 1.02: 2 % higher.
        contrast: Prominence of the snippet's strongest peaks, and of all peaks (log2).
        windows: Matches with windows of 256 and of 512 ms.
    """

    confidence: float
    heard_s: float
    change: str
    tempo: float
    pitch: float
    contrast: tuple[float, float]
    windows: tuple[Window, Window]

    @classmethod
    def of(cls, candidate: Mapping[str, Any], heard_s: float) -> Self:
        """Create it from a candidate of the core."""
        first, second = (Window(**one) for one in candidate["evidence"])
        values = {name: candidate[name] for name in ("confidence", "change", "tempo", "pitch")}
        strongest, dense = candidate["contrast"]
        return cls(**values, heard_s=heard_s, contrast=(strongest, dense), windows=(first, second))

    @classmethod
    def loaded(cls, kept: Mapping[str, Any]) -> Self:
        """Create it from the JSON form of `dataclasses.asdict`."""
        first, second = (Window(**one) for one in kept["windows"])
        strongest, dense = kept["contrast"]
        return cls(**{**kept, "contrast": (strongest, dense), "windows": (first, second)})

    def features(self) -> list[float]:
        """Return the factors for the WEIGHTS."""
        least = max(MIN_PEAKS_PER_SECOND * self.heard_s, 1.0)
        strengths = [
            math.log1p(max(one.likelihood / math.sqrt(max(one.peaks, least)), 0.0))
            for one in self.windows
        ]
        changed = self.change == "speed" and abs(self.tempo - 1.0) > UNCHANGED
        length = math.log(max(self.windows[0].peaks, least))
        return [1.0, *strengths, *self.contrast, float(changed), length]
