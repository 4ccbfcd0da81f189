"""A clock in seconds since 1970 that ignores jumps of the system clock."""

from __future__ import annotations

import logging
import time
from pathlib import Path
from typing import TYPE_CHECKING

from polymux.errors import InternalServerError

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.database import Database

#: A larger step relative to the time since boot counts as a jump.
LARGEST_STEP_S = 3600.0
_BOOT = Path("/proc/sys/kernel/random/boot_id")
#: Offsets of the boot time in a time namespace (time_namespaces(7)).
_COUNTED_FROM = Path("/proc/self/timens_offsets")


class SteadyClock:
    """The system clock without its jumps.

    If the system clock is set back or far ahead while the server runs, files and API keys
    must not all expire at once. So this clock ignores steps of over an hour relative to the
    monotonic clock. It follows smaller steps, by which time synchronization corrects clocks.

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
        #: Identifies the boot from which `since_boot_s` counts; empty if unknown.
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
        """Return the seconds since boot, by the monotonic clock."""
        return self._monotonic()


def _boot() -> str:
    try:
        boot = _BOOT.read_text("ascii").strip()
        offsets = _COUNTED_FROM.read_text("ascii") if _COUNTED_FROM.exists() else ""
    except (OSError, ValueError):
        return ""
    return " ".join((boot, *offsets.split()))


def _since_boot() -> float:
    """Return seconds since boot including suspend, which `time.monotonic` does not count."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


_log = logging.getLogger("polymux.service")
#: Maximum age of the stored time; each update costs a disk write.
_EVERY_S = 3600.0
#: Statements that move times. Records with invalid JSON are skipped.
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
    """Corrects stored times after a jump of the system clock. Belongs to the database thread.

    `SteadyClock` handles jumps while a server runs. But if the clock jumps between two servers, the
    next server would consider all files expired, or created in the future. So the job database
    stores the current time together with the time since boot, and the time when the first server
    of that boot opened the database.

    - Same boot: the jump is known to the second. All times since that first server move by it, and
      ages stay unchanged. Times before it came from another boot and stay.
    - Other boot: the clock is trusted, but times in the future become the current time.

    No correction makes anything older than it was. Signed links keep their signed expiry.

    Raises:
        InternalServerError: Times must be corrected and the disk is full (code
            ``storage_full``).
    """

    def __init__(self, database: Database, clock: SteadyClock) -> None:
        self._database = database
        self._clock = clock
        since_boot_s, now = clock.since_boot_s(), clock()
        #: Stored for this boot: seconds since boot, and the time then.
        self._noted: tuple[float, float] | None = None
        self._began = now
        with database.transaction():
            self._follow(since_boot_s, now)
            # Nothing was created in the future; retention stays unchanged.
            for statement in _HOLD_BACK:
                database.execute(statement, {"now": now})
        self.note()

    def note(self) -> None:
        """Store the current time if the stored one is old or the clock was corrected.

        A full disk is not an error: the previously stored time is still valid.
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
            _log.warning("cannot store the current time: %s", error)
        else:
            self._noted = since_boot_s, now

    def _keep(self, since_boot_s: float, now: float) -> None:
        self._database.execute("DELETE FROM times")
        self._database.execute(
            "INSERT INTO times (boot, since_boot_s, now, began) VALUES (?, ?, ?, ?)",
            (self._clock.boot, since_boot_s, now, self._began),
        )

    def _follow(self, since_boot_s: float, now: float) -> None:
        """Move the times of this boot if the clock jumped."""
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
            "the system clock jumped by %+.0f s. The times of the jobs and files that were stored "
            "since the last boot were moved by the same amount, so their ages stay unchanged",
            leap_s,
        )
        for statement in _FOLLOW:
            self._database.execute(statement, {"leap_s": leap_s, "began": self._began})
        self._began += leap_s
        # In the same transaction as the moves, or a crash would apply them twice.
        self._keep(since_boot_s, now)
        self._noted = since_boot_s, now


def ages_of(database: Database, clock: Callable[[], float]) -> ClockSkewTracker | None:
    """Create a tracker; None for any other clock than `SteadyClock`, which is trusted."""
    return ClockSkewTracker(database, clock) if isinstance(clock, SteadyClock) else None
