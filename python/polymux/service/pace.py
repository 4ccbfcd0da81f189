"""How long work takes: a first guess, and what was measured since."""

from __future__ import annotations

_WEIGHT = 0.3


class Pace:
    """Seconds of work for each unit of it.

    Args:
        unit: Such as ``"s of sound"``, for people.
        first_guess_s: Of a unit, before anything was measured.

    Example:
        >>> pace = Pace("s of sound", 0.5)
        >>> pace.seconds(60)
        30.0
        >>> pace.learn(60, 12)
        >>> pace.seconds(60)
        12.0
    """

    def __init__(self, unit: str, first_guess_s: float) -> None:
        """Nothing was measured."""
        self._unit = unit
        self._each_s = first_guess_s
        self._measured = False

    def seconds(self, units: float) -> float:
        """Of so much work."""
        return units * self._each_s

    def learn(self, units: float, seconds: float) -> None:
        """So much work took so long."""
        if units <= 0:
            return
        each_s = seconds / units
        # The first measurement replaces the guess, the others move what is known.
        self._each_s += (_WEIGHT if self._measured else 1.0) * (each_s - self._each_s)
        self._measured = True

    def words(self, units: float) -> str:
        """What an estimate comes from, for people."""
        known = "as measured here" if self._measured else "a first guess, nothing was measured yet"
        return f"{units:.1f} {self._unit} at {self._each_s:.2g} s each, {known}"
