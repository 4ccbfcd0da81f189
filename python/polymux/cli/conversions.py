"""Runs planned conversions and tells how they go."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING

from polymux._util.text import clock, display_name, size
from polymux.cli.conversion_plan import STREAM, Item
from polymux.cli.terminal import (
    Screen,
    overall_line,
    progress_line,
    standard_input,
    standard_output,
    write_json,
)
from polymux.errors import (
    NoAudioError,
    OutputExistsError,
    OutputFailedError,
    PolymuxError,
    UnsupportedMediaError,
)
from polymux.media.conversion import JobGroup

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux._native import _media
    from polymux.media.inputs import Destination, Source
    from polymux.media.media_file import ConversionOutcome
    from polymux.media.results import ConversionReport

_DRAW_INTERVAL_S = 0.1


class Conversions:
    """The conversions of one command, and their bookkeeping.

    Args:
        items: What was planned.
        quiet: Show errors only.
        json: Write one JSON object per line to standard output instead of lines for people.
    """

    def __init__(self, items: list[Item], *, quiet: bool, json: bool) -> None:
        self._items = items
        self._todo = [item for item in items if not item.skipped]
        self._json = json
        self._screen = Screen(quiet=quiet or json)
        self._started = time.monotonic()
        self._last_drawn = 0.0
        self._finished_s = 0.0
        self.converted = 0
        self.failed = 0
        self.skipped = 0

    def run(
        self,
        options: _media.ConvertOptions,
        *,
        overwrite: bool,
        concurrency: int,
        made: list[Path],
    ) -> None:
        """Converts everything; folders that had to be made are appended to `made`."""
        for item in self._items:
            if item.skipped:
                self._skip(item, item.skipped)
        ended: SimpleQueue[int] = SimpleQueue()
        group = JobGroup(
            self._tasks(made),
            options,
            overwrite=overwrite,
            concurrency=concurrency,
            notify=ended.put,
        )
        wait_s = _DRAW_INTERVAL_S if self._screen.draws else None
        try:
            while True:
                for outcome in group.fill():
                    self._tell(outcome)
                if not group.running:
                    break
                with suppress(Empty):
                    self._tell(group.collect(ended.get(timeout=wait_s)))
                self._draw(group)
        finally:
            self._screen.clear()
            group.close()
        self._summarise()

    def _tasks(self, made: list[Path]) -> Iterator[tuple[Source, Destination | Exception]]:
        for item in self._todo:
            source: Source = standard_input() if item.name == STREAM else item.name
            if item.error is not None:
                yield source, item.error
            elif item.output == STREAM:
                yield source, standard_output()
            else:
                yield source, make_folder_of(item.output, made) or item.output

    def _tell(self, outcome: ConversionOutcome) -> None:
        item = self._todo[outcome.index]
        error = outcome.error
        if isinstance(error, BrokenPipeError) and item.output == STREAM:
            raise error
        if item.found and isinstance(error, (UnsupportedMediaError, NoAudioError)):
            self._skip(item, "not_media")
        elif error is not None:
            self._fail(item, error)
        elif outcome.file is not None:
            self._succeed(item, outcome.file.report)

    def _succeed(self, item: Item, report: ConversionReport) -> None:
        self.converted += 1
        self._finished_s += report.duration_s
        if self._json:
            write_json(
                {
                    "status": "converted",
                    "input": item.name,
                    "output": item.output,
                    "report": report.to_dict(),
                }
            )
            return
        facts = f"{clock(report.duration_s)}, {size(report.bytes)}, {report.speed:.1f}x"
        self._screen.say(f"{_shown(item.name)} -> {_shown(item.output)}  ({facts})")
        for warning in report.warnings:
            self._screen.say(f"  warning: {warning.message}")

    def _fail(self, item: Item, error: Exception) -> None:
        self.failed += 1
        if self._json:
            if isinstance(error, PolymuxError):
                details = error.to_dict()
            else:
                details = {"type": type(error).__name__, "code": "error", "message": str(error)}
            write_json({"status": "failed", "input": item.name, "error": details})
            return
        advice = ""
        if isinstance(error, OutputExistsError):
            advice = " (--overwrite replaces it, --skip-existing leaves such inputs out)"
        self._screen.complain(f"polymux: {error}{advice}")

    def _skip(self, item: Item, reason: str) -> None:
        self.skipped += 1
        if self._json:
            write_json({"status": "skipped", "input": item.name, "reason": reason})

    def _draw(self, group: JobGroup) -> None:
        now = time.monotonic()
        if not self._screen.draws or now - self._last_drawn < _DRAW_INTERVAL_S:
            return
        self._last_drawn = now
        running = [job.progress for job in group.running.values()]
        if len(self._todo) > 1:
            finished = self.converted + self.failed
            elapsed_s = now - self._started
            text = overall_line(finished, len(self._todo), running, self._finished_s, elapsed_s)
        elif running:
            text = progress_line(running[0])
        else:
            return
        self._screen.draw(text)

    def _summarise(self) -> None:
        elapsed_s = time.monotonic() - self._started
        counts = {
            "converted": self.converted,
            "failed": self.failed,
            "skipped": self.skipped,
        }
        if self._json:
            write_json({"status": "summary", **counts, "elapsed_s": round(elapsed_s, 3)})
        elif len(self._items) != 1 or self.skipped:
            said = ", ".join(f"{count} {word}" for word, count in counts.items())
            self._screen.say(f"{said} in {elapsed_s:.1f} s")


def _shown(name: str) -> str:
    return "standard stream" if name == STREAM else display_name(name)


def make_folder_of(output: str, made: list[Path]) -> OutputFailedError | None:
    """Makes the folder that the output lies in, and notes each one made."""
    missing = []
    folder = Path(output).parent
    while not folder.exists():
        missing.append(folder)
        folder = folder.parent
    for path in reversed(missing):
        try:
            path.mkdir()
        except OSError as error:
            return OutputFailedError(
                f"cannot make the folder '{display_name(os.fspath(path))}': {error.strerror}",
                errno=error.errno,
            )
        made.append(path)
    return None
