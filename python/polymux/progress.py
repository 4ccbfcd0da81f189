"""How far a conversion is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from polymux._util.html_repr import Shown


@dataclass(frozen=True, slots=True)
class Progress(Shown):
    """One moment of a conversion.

    Attributes:
        position_s: Audio encoded so far, in seconds.
        duration_s: Expected total in seconds; None when the container does not say.
        bytes_written: Size of the output so far, in bytes.
        elapsed_s: Wall-clock time since the start, in seconds.

    Example:
        >>> Progress(position_s=30.0, duration_s=120.0, bytes_written=480_000, elapsed_s=0.5)
        Progress(position_s=30.0, duration_s=120.0, bytes_written=480000, elapsed_s=0.5)
        >>> _.fraction, _.speed, _.eta_s
        (0.25, 60.0, 1.5)
    """

    position_s: float
    duration_s: float | None
    bytes_written: int
    elapsed_s: float

    @property
    def fraction(self) -> float | None:
        """Part that is done, 0 to 1; None when the duration is not known."""
        if not self.duration_s:
            return None
        return min(1.0, self.position_s / self.duration_s)

    @property
    def speed(self) -> float | None:
        """Seconds of audio per second of waiting; None before the first measurable moment."""
        return self.position_s / self.elapsed_s if self.elapsed_s > 0 else None

    @property
    def eta_s(self) -> float | None:
        """Expected rest in seconds at the speed so far; None when it cannot be told."""
        if not self.duration_s or not self.speed:
            return None
        return max(0.0, self.duration_s - self.position_s) / self.speed


def progress_from_native(native: dict[str, Any]) -> Progress:
    """The native module's dictionary as a `Progress`."""
    return Progress(
        position_s=native["position_s"],
        duration_s=native["duration_s"],
        bytes_written=native["bytes_written"],
        elapsed_s=native["elapsed_s"],
    )
