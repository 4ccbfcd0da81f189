"""Progress bars for conversions, uploads, jobs, song indexing and batches."""

from __future__ import annotations

import sys
from time import monotonic
from typing import TYPE_CHECKING, Any
from weakref import finalize

from polymux._util.redaction import redact
from polymux._util.text import clock, printable, shortened, size

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

__all__ = ["Bar", "progress"]

_LINE_CHARACTERS = 100
_NOTE_CHARACTERS = 60
_BETWEEN_LINES_S = 0.1


def progress(label: str) -> Bar:
    """Show a progress bar for `on_progress` and `on_upload` of any call.

    With tqdm and ipywidgets installed, it is a widget of `tqdm.notebook`; otherwise it is a line on
    standard error. It ends when its callback is released, or at the end of a ``with`` block.

    Args:
        label: Text in front of the bar.

    Example:
        >>> import polymux
        >>> from polymux.notebook import progress
        >>> with progress("converting") as bar:
        ...     _ = polymux.convert_to_mp3("song.flac", on_progress=bar)
        >>> bar.fraction
        1.0
    """
    return Bar(label)


class Bar:
    """A progress bar. `progress` creates it.

    Attributes:
        label: Text in front of the bar.
        fraction: Progress from 0 to 1; None if unknown.
        note: Text after the bar: bytes, seconds, files, or the state of a job.
    """

    def __init__(self, label: str) -> None:
        """Show the bar in the current cell, because updates may come from other threads."""
        self.label = shortened(printable(label), _NOTE_CHARACTERS)
        self.fraction: float | None = None
        self.note = ""
        self._face = _face(self.label)
        self._over = finalize(self, self._face.close, failed=None)
        self._over.atexit = False

    def __call__(self, *update: Any) -> None:
        """Update the bar.

        Args:
            update: A `polymux.Progress`, a `polymux.Prediction`, a progress value of
                `SongIndex.add` or `polymux.batch`, or done and total in bytes as for `on_upload`.

        Raises:
            TypeError: The value has another type.
        """
        fraction, self.note, failed = _read(update)
        if fraction is not None:
            self.fraction = max(0.0, min(1.0, fraction))
        self._show()
        if failed is not None:
            self.close(failed=failed)

    def close(self, *, failed: bool | None = None) -> None:
        """End the bar. Idempotent.

        Args:
            failed: Whether it failed. Default: None, which shows the bar unchanged.
        """
        if self._over.detach() is not None:
            self._face.close(failed=failed)

    def _show(self) -> None:
        if self._over.alive:
            self._face.show(self.fraction, self.note)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """End the bar; it is full if the block succeeded."""
        if error is None:
            self.fraction = 1.0
            self._show()
        self.close(failed=error is not None)


def _read(update: tuple[Any, ...]) -> tuple[float | None, str, bool | None]:
    """Return fraction, note, and whether it failed (None while it runs)."""
    if len(update) == 2:
        return _of_bytes(*update)
    if len(update) == 3:  # Model downloads: the file, done and total.
        return _of_bytes(*update[1:])
    (one,) = update
    if hasattr(one, "status") and hasattr(one, "logs"):
        return _of_job(one)
    if hasattr(one, "position_s"):
        return one.fraction, _of_conversion(one), None
    if hasattr(one, "done") and hasattr(one, "total"):
        done = one.done + getattr(one, "failed", 0)
        return (done / one.total if one.total else None), f"{done} of {one.total}", None
    raise TypeError(
        f"progress: invalid type (got {type(one).__name__}, allowed a job, or the progress of a "
        "conversion or batch)"
    )


def _of_bytes(done: int, total: int | None) -> tuple[float | None, str, bool | None]:
    if not total:
        return None, size(done), None
    return done / total, f"{size(done)} of {size(total)}", None


def _of_conversion(one: Any) -> str:
    whole = "" if not one.duration_s else f" of {clock(one.duration_s)}"
    return f"{clock(one.position_s)}{whole}"


def _of_job(job: Any) -> tuple[float | None, str, bool | None]:
    last = next((line for line in reversed(job.logs.splitlines()) if line.strip()), "")
    note = f"{job.status} {last.strip()}".rstrip()
    done = job.extra.get("progress")
    known = isinstance(done, (int, float)) and not isinstance(done, bool)
    fraction = 1.0 if job.succeeded else (float(done) if known else None)
    return fraction, note, (job.failed if job.finished else None)


def _face(label: str) -> _Widget | _Line:
    """Return a widget if the notebook supports it, else a line."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        try:
            import ipywidgets  # noqa: F401 - tqdm needs it and would fail too late
            from tqdm.notebook import tqdm
        except ImportError:
            return _Line(label)
        return _Widget(tqdm(desc=label, total=1.0, bar_format=_FORMAT))
    return _Line(label)


_FORMAT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


class _Widget:
    """A tqdm bar, which limits redraws itself."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def show(self, fraction: float | None, note: str) -> None:
        self._bar.set_postfix_str(_short(note), refresh=False)
        self._bar.update(0.0 if fraction is None else fraction - self._bar.n)

    def close(self, *, failed: bool | None) -> None:
        if failed is False:
            self._bar.n = self._bar.total
        self._bar.close()
        if failed is None:
            # Not red, which would mean a failure.
            self._bar.container.children[1].bar_style = ""


class _Line:
    """A line on standard error that is rewritten."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._started = self._drawn = monotonic()
        self._last = ""
        self._write(None, "")

    def show(self, fraction: float | None, note: str) -> None:
        self._last = self._text(fraction, note)
        if monotonic() - self._drawn >= _BETWEEN_LINES_S:
            self._write(fraction, note)

    def close(self, *, failed: bool | None) -> None:
        if self._last:
            sys.stderr.write(f"\r{self._last.ljust(_LINE_CHARACTERS)}")
        sys.stderr.write("  failed\n" if failed else "\n")
        sys.stderr.flush()

    def _text(self, fraction: float | None, note: str) -> str:
        part = "" if fraction is None else f"{fraction:.0%}"
        elapsed = clock(monotonic() - self._started)
        words = (self._label, part, elapsed, _short(note))
        return "  ".join(word for word in words if word)[:_LINE_CHARACTERS]

    def _write(self, fraction: float | None, note: str) -> None:
        self._drawn = monotonic()
        sys.stderr.write(f"\r{self._text(fraction, note).ljust(_LINE_CHARACTERS)}")
        sys.stderr.flush()


def _short(note: str) -> str:
    return shortened(printable(redact(note)), _NOTE_CHARACTERS)
