"""What people and programs see of a batch."""

from __future__ import annotations

import os
from time import monotonic
from typing import TYPE_CHECKING

from polymux._util.text import clock, display_name
from polymux.cli.terminal import Screen, write_json

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.batches.results import BatchItem, BatchProgress, BatchReport

_DRAWN_EVERY_S = 0.2
_SAID_EVERY_S = 15.0
_COUNTS = ("total", "done", "failed", "waiting", "kept", "copied", "repeated", "ignored", "remade")


class BatchScreen:
    """A line of progress, drawn again on a terminal, said now and then elsewhere; and failures.

    Args:
        quiet: Show errors only.
        as_json: Write one JSON object for each item to standard output.
        clock: Seconds, never jumping.
    """

    def __init__(
        self, *, quiet: bool, as_json: bool, clock: Callable[[], float] = monotonic
    ) -> None:
        """Shows nothing yet."""
        self.as_json = as_json
        self._screen = Screen(quiet=quiet)
        self._clock = clock
        self._shown_at = clock()
        self._is_stopping = False

    def on_progress(self, now: BatchProgress) -> None:
        """Takes how far it is."""
        if now.is_stopping and not self._is_stopping:
            self._is_stopping = True
            self._screen.say("polymux: what has begun comes to its end; Ctrl-C ends that too")
        every_s = _DRAWN_EVERY_S if self._screen.draws else _SAID_EVERY_S
        if self._clock() - self._shown_at < every_s:
            return
        self._shown_at = self._clock()
        if self._screen.draws:
            self._screen.draw(progress_line(now))
        else:
            self._screen.say(f"polymux: {progress_line(now)}")

    def on_item(self, item: BatchItem) -> None:
        """Takes an item that has ended, or that a manifest has."""
        if self.as_json:
            write_json({"status": item.state} | item.to_dict())
        elif item.state == "failed":
            name, words = display_name(os.fsencode(item.input)), item.error_message or ""
            self._screen.complain(f"polymux: {words if name in words else f'{name}: {words}'}")

    def clear(self) -> None:
        """Removes the line of progress."""
        self._screen.clear()

    def summarise(self, report: BatchReport) -> None:
        """Says what became of all."""
        counts = {name: getattr(report, name) for name in _COUNTS}
        if self.as_json:
            elapsed_s = round(report.elapsed_s, 3)
            path = os.fspath(report.manifest)
            others = {"unread": report.unread, "elapsed_s": elapsed_s, "manifest": path}
            write_json({"status": "summary", **counts, **others})
            return
        for one in report.unread:
            self._screen.complain(f"polymux: {one}")
        words = [f"{counts[name]} {name}" for name in ("done", "failed", "waiting") if counts[name]]
        more = [
            words_
            for name, words_ in (
                ("kept", "{} of them in earlier runs"),
                ("copied", "{} copied from those with the same content"),
                ("remade", "{} made again"),
                ("repeated", "{} input{s} known already"),
                ("ignored", "{} file{s} of other kinds left out"),
            )
            if counts[name]
            for words_ in [words_.format(counts[name], s="" if counts[name] == 1 else "s")]
        ]
        took = f" in {report.elapsed_s:.1f} s" if report.elapsed_s else ""
        self._screen.say(f"{', '.join(words) or 'nothing to do'}{took}")
        if more:
            self._screen.say(f"  {', '.join(more)}")
        if report.unread:
            self._screen.say("  --resume with the same INPUT goes on when the folders can be read")
        if report.failed:
            manifest = display_name(os.fsencode(report.manifest))
            self._screen.say(
                f"  --retry-failed tries those that failed again; 'polymux batch --show {manifest}'"
            )


def progress_line(now: BatchProgress) -> str:
    """Done, failed and all, how fast it goes, and the time that is left.

    Example:
        >>> from polymux.batches.results import BatchProgress
        >>> from polymux.cli.batch_screen import progress_line
        >>> progress_line(BatchProgress(30, 2, 100, False, 0, 0, 32, 0, 16.0, 0.0, False))
        '32 of 100 items  2 failed  2.0/s  0:34 left'
    """
    total = f"{now.total} and more" if now.is_counting else str(now.total)
    parts = [f"{now.done + now.failed} of {total} items"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if now.items_per_s:
        parts.append(f"{now.items_per_s:.1f}/s")
    if now.paused_s > 0:
        parts.append(f"the server asks for a pause of {now.paused_s:.0f} s")
    elif now.eta_s is not None:
        parts.append(f"{clock(now.eta_s)} left")
    return "  ".join(parts)
