"""Shortening of long pauses in a recording for a speech model.

A model invents words for long pauses. Without pauses it merges the sentences before and after.
Therefore a part of each pause is kept. Reported times refer to the original recording.
"""

from __future__ import annotations

import bisect
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

#: Maximum length of a pause that is kept.
_PAUSE_S = 2.0
#: After a longer pause the model gets no earlier audio, because it skips repeated sentences.
_NEW_WINDOW_S = 5.0
#: Tolerance for speech boundaries: the detector adds 0.4 s to each, and the model is inexact.
_NEAR_S = 0.55


class Stretch(NamedTuple):
    """A part of a recording in samples: its bounds, and its start after shortening."""

    start: int
    end: int
    shortened: int


class SilenceTrimmer:
    """A recording with shortened pauses.

    Args:
        samples: Mono samples.
        rate_hz: Sample rate.
        speech: Bounds of speech in samples, in order.

    Example:
        >>> import numpy
        >>> from polymux.engines.speech.silence import SilenceTrimmer
        >>> made = SilenceTrimmer(numpy.zeros(100), 10, [(0, 20), (80, 100)])
        >>> len(made.samples), made.windows(30.0)
        (60, [(0.0, 2.0), (4.0, 6.0)])
        >>> made.time_of(5.0), made.spoken(1.9, 5.5)
        (9.0, (8.0, 9.5))
    """

    def __init__(
        self, samples: NDArray[np.float32], rate_hz: int, speech: Sequence[tuple[int, int]]
    ) -> None:
        self._rate_hz = rate_hz
        self._speech = list(speech)
        left = int(_PAUSE_S * rate_hz) // 2
        self._stretches = _stretches(self._speech, left, len(samples))
        self._starts = [one.shortened for one in self._stretches]
        self.samples: Any = samples
        if len(self._stretches) > 1:
            import numpy

            self.samples = numpy.concatenate([samples[a:b] for a, b, _ in self._stretches])

    def windows(self, max_s: float) -> list[tuple[float, float]]:
        """Return the windows for the model: groups of whole speech segments, in shortened seconds.

        Args:
            max_s: Maximum length of a window; no segment is longer.
        """
        found: list[tuple[int, int]] = []
        longest, before = max_s * self._rate_hz, 0
        for start, end in self._speech:
            first, last = self._shortened(start), self._shortened(end)
            near = start - before <= _NEW_WINDOW_S * self._rate_hz
            if found and near and last - found[-1][0] <= longest:
                found[-1] = (found[-1][0], last)
            else:
                found.append((first, last))
            before = end
        return [(first / self._rate_hz, last / self._rate_hz) for first, last in found]

    def _shortened(self, sample: int) -> int:
        for one in self._stretches:
            if sample <= one.end:
                return one.shortened + max(0, sample - one.start)
        return len(self.samples)

    def time_of(self, short_s: float) -> float:
        """Convert a time in the shortened recording to the original one, in seconds."""
        at = max(0, bisect.bisect_right(self._starts, short_s * self._rate_hz) - 1)
        one = self._stretches[at]
        return short_s + (one.start - one.shortened) / self._rate_hz

    def spoken(self, start_s: float, end_s: float) -> tuple[float, float]:
        """Return a sentence's original times, without pauses before and after it.

        Args:
            start_s: Start in the shortened recording, as reported by the model.
            end_s: End in the shortened recording.
        """
        start, end = self.time_of(start_s), self.time_of(end_s)
        edges = [(a / self._rate_hz, b / self._rate_hz) for a, b in self._speech]
        begun = next((a for a, b in edges if b > start + _NEAR_S), start)
        ended = next((b for a, b in reversed(edges) if a < end - _NEAR_S), end)
        first, last = max(start, begun), min(end, ended)
        return (first, last) if first < last else (start, max(start, end))


def _stretches(speech: Sequence[tuple[int, int]], left: int, count: int) -> list[Stretch]:
    found: list[Stretch] = []
    start = shortened = 0
    for (_, before), (after, _) in pairwise(speech):
        if after - before > 2 * left:
            found.append(Stretch(start, before + left, shortened))
            shortened += before + left - start
            start = after - left
    found.append(Stretch(start, count, shortened))
    return found
