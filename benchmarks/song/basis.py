"""What a decision is made of, as the core tells it and rows of a run keep it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from collections.abc import Mapping

MIN_PEAKS_PER_SECOND = 13.0  # `Decision::least_peaks_per_second`
UNCHANGED = 0.0047  # a speed that lies no further off was found by looking for the song as it is
#: What `Decision` has a weight for, in the order of `features`; of each also its name there.
WEIGHTS = (
    "bias", "strength[0]", "strength[1]", "strongest_contrast", "dense_contrast", "speed_changed",
    "length",
)  # fmt: skip


@dataclass(frozen=True)
class Window:
    """What one window found of the song's peaks in the snippet.

    Attributes:
        likelihood: Natural logarithm of how much likelier it is than chance.
        survival: Share of the song's peaks that the snippet keeps.
        peaks: Of the song, within the snippet.
        hits: Of these, those that were found.
    """

    likelihood: float
    survival: float
    peaks: int
    hits: int


@dataclass(frozen=True)
class Basis:
    """What the decision about a snippet's first candidate is made of.

    Attributes:
        confidence: 0 to 1, by the weights of the build that was asked.
        heard_s: Length of the snippet.
        change: `speed`, `tempo` or `pitch`: what of it may differ from the song's.
        tempo: 1.02: 2 % faster than the song.
        pitch: 1.02: 2 % higher.
        contrast: How far the snippet's strongest peaks, and all of them, stand out (log2).
        windows: Of 256 and of 512 ms.
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
        """Of a candidate as the core gives it."""
        first, second = (Window(**one) for one in candidate["evidence"])
        told = {name: candidate[name] for name in ("confidence", "change", "tempo", "pitch")}
        strongest, dense = candidate["contrast"]
        return cls(**told, heard_s=heard_s, contrast=(strongest, dense), windows=(first, second))

    @classmethod
    def loaded(cls, kept: Mapping[str, Any]) -> Self:
        """Of what `dataclasses.asdict` made, after JSON."""
        first, second = (Window(**one) for one in kept["windows"])
        strongest, dense = kept["contrast"]
        return cls(**{**kept, "contrast": (strongest, dense), "windows": (first, second)})

    def features(self) -> list[float]:
        """What each of WEIGHTS is multiplied with."""
        least = max(MIN_PEAKS_PER_SECOND * self.heard_s, 1.0)
        strengths = [
            math.log1p(max(one.likelihood / math.sqrt(max(one.peaks, least)), 0.0))
            for one in self.windows
        ]
        changed = self.change == "speed" and abs(self.tempo - 1.0) > UNCHANGED
        length = math.log(max(self.windows[0].peaks, least))
        return [1.0, *strengths, *self.contrast, float(changed), length]
