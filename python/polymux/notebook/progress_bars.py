"""Bars for conversions, uploads, jobs, catalogues and batches: one kind takes what any tells."""

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
    """A bar for `on_progress` and `on_upload` of any call, shown at once.

    Where tqdm and ipywidgets are installed it is the widget of `tqdm.notebook`; elsewhere it is
    one line of standard error, which is written anew. It ends with what it was given to, or with
    the end of a ``with`` block.

    Args:
        label: What is being done.

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
    """What shows how far something is; `progress` makes it.

    Attributes:
        label: What is being done.
        fraction: The part that is done, from 0 to 1; None while nobody knows.
        note: What is known beside that: bytes, seconds, files, the state of a job.
    """

    def __init__(self, label: str) -> None:
        """Shows it, in the cell that runs now: what is told later may come from other threads."""
        self.label = shortened(printable(label), _NOTE_CHARACTERS)
        self.fraction: float | None = None
        self.note = ""
        self._face = _face(self.label)
        self._over = finalize(self, self._face.close, failed=None)
        self._over.atexit = False

    def __call__(self, *told: Any) -> None:
        """Takes what a call tells of its progress.

        Args:
            told: A `polymux.Progress`, a `polymux.Prediction`, what `Catalogue.add` or
                `polymux.batch` tell, or done and total, in bytes, as `on_upload` has them.

        Raises:
            TypeError: It is nothing of these.
        """
        fraction, self.note, failed = _read(told)
        if fraction is not None:
            self.fraction = max(0.0, min(1.0, fraction))
        self._show()
        if failed is not None:
            self.close(failed=failed)

    def close(self, *, failed: bool | None = None) -> None:
        """Ends it; twice is once.

        Args:
            failed: How it ended. Default: None, which is not known, and shown as it stood.
        """
        if self._over.detach() is not None:
            self._face.close(failed=failed)

    def _show(self) -> None:
        if self._over.alive:
            self._face.show(self.fraction, self.note)

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends it: full where the block went well."""
        if error is None:
            self.fraction = 1.0
            self._show()
        self.close(failed=error is not None)


def _read(told: tuple[Any, ...]) -> tuple[float | None, str, bool | None]:
    """The part that is done, a note, and whether it failed: None while it goes on."""
    if len(told) == 2:
        return _of_bytes(*told)
    if len(told) == 3:  # Models: the file that comes, first.
        return _of_bytes(*told[1:])
    (one,) = told
    if hasattr(one, "status") and hasattr(one, "logs"):
        return _of_job(one)
    if hasattr(one, "position_s"):
        return one.fraction, _of_conversion(one), None
    if hasattr(one, "done") and hasattr(one, "total"):
        done = one.done + getattr(one, "failed", 0)
        return (done / one.total if one.total else None), f"{done} of {one.total}", None
    raise TypeError(f"a bar cannot tell how far a {type(one).__name__} is")


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
    """A widget where a notebook can show one; else a line."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    if getattr(shell, "kernel", None) is not None:
        try:
            import ipywidgets  # noqa: F401 - tqdm needs it, and says so too late
            from tqdm.notebook import tqdm
        except ImportError:
            return _Line(label)
        return _Widget(tqdm(desc=label, total=1.0, bar_format=_FORMAT))
    return _Line(label)


_FORMAT = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"


class _Widget:
    """A bar of tqdm. It asks for few redraws, whatever it is told."""

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
            # It would be red, as if it had failed.
            self._bar.container.children[1].bar_style = ""


class _Line:
    """A line of standard error that is written anew."""

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
