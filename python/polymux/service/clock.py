"""Seconds since 1970 that make no leaps."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from polymux.errors import InternalServerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.database import Database

#: A larger step against the time since the machine was started is a leap.
LARGEST_STEP_S = 3600.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
#: Where the time since then is counted from elsewhere (time_namespaces(7)).
_COUNTED_FROM = Path("/proc/self/timens_offsets")


class SteadyClock:
    """The system's clock, but for its leaps.

    A clock that is set back or far ahead while the server runs must not end every file and every
    key at once. So steps of over an hour against the monotonic clock are left out, and smaller
    ones, by which clocks are corrected, are followed.

    Example:
        >>> from polymux.service.clock import SteadyClock
        >>> clock = SteadyClock()
        >>> clock() <= clock()
        True
    """

    def __init__(
        self,
        wall: Callable[[], float] = time.time,
        monotonic: Callable[[], float] | None = None,
        boot: str | None = None,
    ) -> None:
        #: Which start of the machine `since_boot_s` counts from; empty where nobody knows.
        self.boot = _boot() if boot is None else boot
        self._wall = wall
        self._monotonic = monotonic or _since_boot
        self._offset_s = wall() - self._monotonic()

    def __call__(self) -> float:
        offset_s = self._wall() - self._monotonic()
        if abs(offset_s - self._offset_s) <= LARGEST_STEP_S:
            self._offset_s = offset_s
        return self._monotonic() + self._offset_s

    def since_boot_s(self) -> float:
        """By the clock that makes no leaps."""
        return self._monotonic()


def _boot() -> str:
    try:
        boot = _BOOT.read_text("ascii").strip()
        offsets = _COUNTED_FROM.read_text("ascii") if _COUNTED_FROM.exists() else ""
    except (OSError, ValueError):
        return ""
    return " ".join((boot, *offsets.split()))


def _since_boot() -> float:
    """Seconds that go on while the machine sleeps; `time.monotonic` stands still then."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_log = logging.getLogger("polymux.service")
#: How far what is written down may be behind: each time costs a write to the disk.
_EVERY_S = 3600.0
#: A record that cannot be read has no moment.
_FOLLOW = (
    "UPDATE files SET created_at = created_at + :leap_s, expires_at = expires_at + :leap_s "
    "WHERE created_at >= :began",
    "UPDATE jobs SET created_at = created_at + :leap_s WHERE created_at >= :began",
    "UPDATE jobs SET completed_at = completed_at + :leap_s WHERE completed_at >= :began",
    "UPDATE jobs SET record = json_set(record, '$.started_at', "
    "json_extract(record, '$.started_at') + :leap_s) "
    "WHERE CASE WHEN json_valid(record) THEN json_extract(record, '$.started_at') >= :began END",
    "UPDATE idempotency_keys SET created_at = created_at + :leap_s WHERE created_at >= :began",
)
_HOLD_BACK = (
    "UPDATE files SET created_at = :now, expires_at = expires_at - created_at + :now "
    "WHERE created_at > :now",
    "UPDATE jobs SET created_at = :now WHERE created_at > :now",
    "UPDATE jobs SET completed_at = :now WHERE completed_at > :now",
    "UPDATE jobs SET record = json_set(record, '$.started_at', :now) "
    "WHERE CASE WHEN json_valid(record) THEN json_extract(record, '$.started_at') > :now END",
    "UPDATE idempotency_keys SET created_at = :now WHERE created_at > :now",
)


class ClockSkewTracker:
    """What time it was when, written down in the catalogue. Belongs to the catalogue's thread.

    `SteadyClock` passes over leaps while a server runs. The next server believes the system's
    clock, which may have been set by a year meanwhile: to it, all files were over, or of the
    future. So the catalogue says what time it was so long after a start of the machine, and what
    time it was when that start's first server opened it. Where the machine has not been started
    again, a leap is known to the second, and all moments since that server are moved by it, so that
    ages stay what they were; those before it were told by another clock. Where it has, the clock is
    believed, but for moments that are still to come: they were just now.

    Nothing is ever older by that than it was. Links that were given out keep the end that is signed
    in them.

    Raises:
        InternalServerError: Moments have to be moved, and the disk is full (code
            ``storage_full``).
    """

    def __init__(self, database: Database, clock: SteadyClock) -> None:
        self._database = database
        self._clock = clock
        since_boot_s, now = clock.since_boot_s(), clock()
        #: What is written down of this start of the machine: so long after it, and the time then.
        self._noted: tuple[float, float] | None = None
        self._began = now
        with database.transaction():
            self._follow(since_boot_s, now)
            # Nothing was made in the future; how long it is kept stays what it was.
            for statement in _HOLD_BACK:
                database.execute(statement, {"now": now})
        self.note()

    def note(self) -> None:
        """Writes down what time it is, where it has not been for long or a clock was corrected.

        A full disk is no reason to do nothing else: what was written before is true as well.
        """
        since_boot_s, now = self._clock.since_boot_s(), self._clock()
        if self._noted is not None:
            elapsed_s = since_boot_s - self._noted[0]
            if elapsed_s < _EVERY_S and abs(now - self._noted[1] - elapsed_s) <= 1.0:
                return
        try:
            with self._database.transaction():
                self._keep(since_boot_s, now)
        except InternalServerError as error:
            _log.warning("what time it is cannot be written down: %s", error)
        else:
            self._noted = since_boot_s, now

    def _keep(self, since_boot_s: float, now: float) -> None:
        self._database.execute("DELETE FROM times")
        self._database.execute(
            "INSERT INTO times (boot, since_boot_s, now, began) VALUES (?, ?, ?, ?)",
            (self._clock.boot, since_boot_s, now, self._began),
        )

    def _follow(self, since_boot_s: float, now: float) -> None:
        """Moves the moments since this start of the machine by what its clock was set."""
        known = self._database.row("SELECT * FROM times")
        if known is None or not known["boot"] or known["boot"] != self._clock.boot:
            return
        elapsed_s = since_boot_s - known["since_boot_s"]
        if elapsed_s < 0:
            return
        leap_s = now - known["now"] - elapsed_s
        self._noted, self._began = (known["since_boot_s"], known["now"]), known["began"]
        if abs(leap_s) <= LARGEST_STEP_S:
            return
        _log.warning(
            "the clock was set by %+.0f s while no server ran, or passed over by one: what was "
            "kept since the machine was started is as old as it was",
            leap_s,
        )
        for statement in _FOLLOW:
            self._database.execute(statement, {"leap_s": leap_s, "began": self._began})
        self._began += leap_s
        # With the moves, or they are made twice.
        self._keep(since_boot_s, now)
        self._noted = since_boot_s, now


def ages_of(database: Database, clock: Callable[[], float]) -> ClockSkewTracker | None:
    """Those of a catalogue; None where its clock is another, which is believed."""
    return ClockSkewTracker(database, clock) if isinstance(clock, SteadyClock) else None
