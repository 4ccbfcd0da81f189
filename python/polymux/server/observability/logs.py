"""Log lines as text or JSON, written without blocking if the reader stops reading."""

from __future__ import annotations

import errno
import json
import logging
import os
import select
import stat
import threading
import time
from collections import deque
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from polymux._util.redaction import redact
from polymux._util.text import printable

ACCESS_LOGGER = "polymux.access"
#: Values of an access record in order; `key` is the key's id, or ``-`` without a key.
ACCESS = ("method", "path", "status", "duration_ms", "key", "request_id")
#: Maximum size of waiting lines; further lines are dropped and counted.
_MAX_WAITING_BYTES = 4 << 20
#: A pipe reported as writable accepts at least this many bytes (pipe(7), PIPE_BUF).
_TAKEN_AT_ONCE_BYTES = 4096
_LAST_WORDS_S = 0.3


class NonBlockingHandler(logging.Handler):
    """Writes lines directly if that does not block, else on a thread.

    A full disk or an unread pipe loses log lines, but has no other effect.
    """

    def __init__(self, descriptor: int) -> None:
        super().__init__()
        self._descriptor = descriptor
        mode = os.fstat(descriptor).st_mode
        in_pieces = stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)
        self._is_file = stat.S_ISREG(mode)
        self._piece_bytes = _TAKEN_AT_ONCE_BYTES if in_pieces else 1 << 20
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._left_out = 0
        self._filled = threading.Event()
        self._writer: threading.Thread | None = None

    def emit(self, record: logging.LogRecord) -> None:
        """Write or queue a record. Called with the handler's lock, as `logging` does."""
        try:
            data = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
        except Exception:
            self._left_out += 1  # An error in logging must not end its caller.
            return
        if self._waiting_bytes + len(data) > _MAX_WAITING_BYTES:
            self._left_out += 1
            return
        self._waiting.append(data)
        self._waiting_bytes += len(data)
        self._write_what_is_taken()
        if self._waiting:
            self._write_later()

    def _write_what_is_taken(self) -> None:
        """Write as much as possible without blocking."""
        while self._waiting and self._can_be_written(0):
            data = self._waiting[0]
            try:
                written = os.write(self._descriptor, data[: self._piece_bytes])
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    return
                written = len(data)  # Drop the line: the descriptor has failed for good.
            self._waiting_bytes -= written
            if written < len(data):
                self._waiting[0] = data[written:]
            else:
                self._waiting.popleft()
        if not self._waiting and self._left_out:
            words = (
                f"{self._left_out} lines dropped, because the log was read too slowly\n".encode()
            )
            self._left_out = 0
            self._waiting.append(words)
            self._waiting_bytes += len(words)

    def _can_be_written(self, max_s: float | None) -> bool:
        if self._is_file:
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        # A failed descriptor also counts as writable: the write then reports the error.
        return bool(poll.poll(None if max_s is None else max_s * 1000))

    def _write_later(self) -> None:
        self._filled.set()
        if self._writer is None:
            with suppress(RuntimeError):  # Cannot start a thread now: the next line tries again.
                writer = threading.Thread(target=self._write, name="polymux log", daemon=True)
                writer.start()
                self._writer = writer

    def _write(self) -> None:
        while True:
            self._filled.wait()
            self._can_be_written(None)
            self._write_now()

    def _write_now(self) -> None:
        self.acquire()
        try:
            self._write_what_is_taken()
            if not self._waiting:
                self._filled.clear()
        finally:
            self.release()

    def flush(self) -> None:
        """Wait shortly for the reader; called at the end of the process."""
        until = time.monotonic() + _LAST_WORDS_S
        while self._waiting and time.monotonic() < until:
            if self._can_be_written(max(0.0, until - time.monotonic())):
                self._write_now()


class PlainFormatter(logging.Formatter):
    """Formats records as text: escapes control characters and redacts secrets."""

    def format(self, record: logging.LogRecord) -> str:
        text = redact(super().format(record))
        return "\n".join(printable(line) for line in text.split("\n"))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        """Format the record's time; caches the text of the current second."""
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._second_text = time.strftime(self.default_time_format, time.localtime(second))
        return f"{self._second_text},{record.msecs:03.0f}"

    _second = -1
    _second_text = ""


class JsonFormatter(logging.Formatter):
    """Formats a record as a JSON object on one line; redacts secrets.

    Members: ``time`` (RFC 3339, in UTC), ``level``, ``logger``, ``message``; ``request_id`` for
    records of a request; the members of `ACCESS` for access records; ``exception`` for exceptions.

    Example:
        >>> record = logging.LogRecord("polymux.server", 30, "", 0, "%s failed", ("job 1",), None)
        >>> record.created = 0.5
        >>> JsonFormatter().format(record)  # doctest: +NORMALIZE_WHITESPACE
        '{"time": "1970-01-01T00:00:00.500Z", "level": "warning", "logger": "polymux.server",
          "message": "job 1 failed"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        time_text = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        members: dict[str, Any] = {
            "time": time_text.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.name == ACCESS_LOGGER and isinstance(record.args, tuple):
            members |= dict(zip(ACCESS, record.args, strict=True))
            members["duration_ms"] = float(f"{members['duration_ms']:.1f}")
        elif (request_id := getattr(record, "request_id", None)) is not None:
            members["request_id"] = request_id
        if record.exc_info:
            members["exception"] = self.formatException(record.exc_info)
        safe = {name: redact(one) if isinstance(one, str) else one for name, one in members.items()}
        return json.dumps(safe)
