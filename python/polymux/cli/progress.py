"""Progress of an operation: the upload, then the job and the elapsed time."""

from __future__ import annotations

import threading
from time import monotonic
from typing import TYPE_CHECKING, Any, Self

from polymux._util.text import clock, display_name
from polymux.cli.operation_arguments import extra_body_of
from polymux.cli.terminal import transfer_line

if TYPE_CHECKING:
    import argparse
    from types import TracebackType

    from polymux.cli.operation_arguments import Command
    from polymux.cli.terminal import Screen
    from polymux.client.methods.synchronous import Operations
    from polymux.client.responses import Prediction

_TICK_S = 0.5
_ADVICE = (
    "Use 'polymux predictions wait {0}' to wait for it, 'polymux predictions cancel {0}' to stop it"
)


class Waiting:
    """A progress line, drawn if standard error is a terminal, and removed at the end of the block.

    A separate thread updates the elapsed time, because the main thread waits in the native core.

    Args:
        screen: Where to draw it.
        is_here: Whether the operation runs locally; the job then ends with the command. Default:
            False.
    """

    def __init__(self, screen: Screen, *, is_here: bool = False) -> None:
        self._screen = screen
        self._is_here = is_here
        self._state = "starting" if is_here else "waiting for the server"
        self._sent: tuple[int, int | None] | None = None
        self._started = monotonic()
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None
        self._job: Prediction | None = None

    def on_upload(self, sent: int, total: int | None) -> None:
        with self._lock:
            self._sent = None if sent == total else (sent, total)
            self._draw()

    def on_progress(self, job: Prediction) -> None:
        last = next((line for line in reversed(job.logs.splitlines()) if line.strip()), "")
        with self._lock:
            self._job = job
            self._state = f"{job.status}  {display_name(last.strip())}".rstrip()
            self._draw()

    def _draw(self) -> None:
        elapsed_s = monotonic() - self._started
        if self._sent is not None:
            self._screen.draw(transfer_line("sent", *self._sent, elapsed_s))
        else:
            self._screen.draw(f"{clock(elapsed_s)}  {self._state}")

    def _tick(self) -> None:
        while not self._end.wait(_TICK_S):
            with self._lock:
                self._draw()

    def __enter__(self) -> Self:
        if self._screen.draws:
            self._thread = threading.Thread(target=self._tick, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._end.set()
        if self._thread is not None:
            self._thread.join()
        self._screen.clear()
        job = None if self._is_here else self._job
        if error is not None and job is not None and job.id and not job.finished:
            name = display_name(job.id)
            self._screen.complain(f"polymux: job {name} is still running. {_ADVICE.format(name)}")


def ask(
    client: Operations,
    command: Command,
    values: dict[str, Any],
    options: argparse.Namespace,
    screen: Screen,
) -> Any:
    """Run the operation and show its progress. Return the client's result."""
    with Waiting(screen, is_here=options.local) as waiting:
        return client.request(
            command.operation,
            values,
            model=options.selected_model if command.models else None,
            extra_body=extra_body_of(options),
            timeout=options.deadline_s,
            on_upload=waiting.on_upload,
            on_progress=waiting.on_progress,
            wait=getattr(options, "wait_for_end", True),
        )
