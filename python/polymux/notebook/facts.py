"""What results look like in a notebook that are neither media nor text: a table of their facts."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.text import clock
from polymux.errors import PolymuxError
from polymux.notebook.cards import key_values, linked_path
from polymux.notebook.markup import escaped, table

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polymux.batches.results import BatchItem, BatchReport
    from polymux.songs.results import CatalogueSong, CheckReport

__all__ = ["batch_item", "batch_report", "check_report", "facts"]

_MOST_ROWS = 20


def facts(one: object, names: Iterable[str]) -> str:
    """Names and values; what is not known, or empty, is left out.

    Args:
        one: The result.
        names: Its attributes, in the order in which they are shown.

    Example:
        >>> from polymux import Progress
        >>> from polymux.notebook.facts import facts
        >>> told = facts(Progress(30.0, None, 480_000, 0.5), ("position_s", "duration_s"))
        >>> "position s" in told, "duration" in told
        (True, False)
    """
    found = ((name.replace("_", " "), _plain(getattr(one, name))) for name in names)
    return key_values((name, value) for name, value in found if value != "")


def _plain(value: Any) -> str:
    """A value in short. Of a file the name: its folder says who keeps it where."""
    if value is None or value in ((), [], {}, ""):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Path):
        return value.name
    if isinstance(value, tuple):
        return ", ".join(map(_plain, value))
    return str(value)


def batch_item(item: BatchItem) -> str:
    """An input and what became of it; the results are linked where a notebook can reach them."""
    rows = [("input", escaped(_input(item)))]
    rows += [("output", linked_path(path, path.name)) for path in item.outputs[:_MOST_ROWS]]
    if item.error_code is not None:
        rows.append(("why", escaped(_why(item))))
    return table(rows) + facts(item, ("state", "tries", "elapsed_s", "size_bytes"))


def _input(item: BatchItem) -> str:
    return item.input if item.size_bytes is None else Path(item.input).name


def _why(item: BatchItem) -> str:
    """What went wrong, without the path that its own message begins with."""
    message = (item.error_message or "").removeprefix(f"{item.input}: ")
    return f"{item.error_code}: {message}"


def batch_report(report: BatchReport) -> str:
    """How a batch went, and which inputs failed and why: the first of them."""
    rows = [(name, escaped(getattr(report, name))) for name in ("total", "done")]
    others = ("failed", "waiting", "kept", "copied", "repeated", "ignored", "remade")
    rows += [(name, escaped(count)) for name in others if (count := getattr(report, name))]
    rows += [("unread", escaped(one)) for one in report.unread[:_MOST_ROWS]]
    rows.append(("took", clock(report.elapsed_s)))
    rows.append(("manifest", linked_path(report.manifest, report.manifest.name)))
    failed = []
    if report.failed:
        try:
            first = islice(report.items("failed"), _MOST_ROWS)
            failed = [(escaped(_input(item)), escaped(_why(item))) for item in first]
        except PolymuxError as error:
            failed = [("", escaped(error))]  # The manifest is gone; the counts are not.
    return table(rows) + (table(failed, ("failed", "why")) if failed else "")


def check_report(report: CheckReport) -> str:
    """Whether a catalogue is whole, and what is not."""
    told = "everything is as it should be" if report.is_whole else "something is wrong"
    rows = [("catalogue", told)]
    rows += [("problem", escaped(one)) for one in report.problems[:_MOST_ROWS]]
    rows += [("index made anew", escaped(one)) for one in report.damaged_segments[:_MOST_ROWS]]
    rows += _songs("missing", report.missing) + _songs("to be listened to again", report.stale)
    return table(rows)


def _songs(words: str, songs: tuple[CatalogueSong, ...]) -> list[tuple[str, str]]:
    rows = [(words, escaped(one.name)) for one in songs[:_MOST_ROWS]]
    if len(songs) > _MOST_ROWS:
        rows.append((words, f"and {len(songs) - _MOST_ROWS} more"))
    return rows
