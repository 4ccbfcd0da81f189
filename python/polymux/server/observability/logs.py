"""Log lines, as text or as JSON, on a descriptor whose reader may stop reading."""

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
#: What its records tell of a request, in this order; `key` is an id, or ``-`` without one.
ACCESS = ("method", "path", "status", "duration_ms", "key", "request_id")
#: What may wait for a reader; lines beyond it are left out, and counted.
_MAX_WAITING_BYTES = 4 << 20
#: Of a pipe that says that it can be written, so much is taken at once (pipe(7), PIPE_BUF).
_TAKEN_AT_ONCE_BYTES = 4096
_LAST_WORDS_S = 0.3


class NonBlockingHandler(logging.Handler):
    """Writes lines at once where they are taken at once; else a thread does when they are.

    A disk that is full, or a pipe that nobody reads any more, costs lines, and nothing else.
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
        """Writes it, or has it wait. Called with the handler's lock, as `logging` does."""
        try:
            data = (self.format(record) + "\n").encode("utf-8", "backslashreplace")
        except Exception:
            self._left_out += 1  # What cannot be told must not end what tells it.
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
        """As much as can be written without waiting."""
        while self._waiting and self._can_be_written(0):
            data = self._waiting[0]
            try:
                written = os.write(self._descriptor, data[: self._piece_bytes])
            except OSError as error:
                if error.errno == errno.EAGAIN:
                    return
                written = len(data)  # Nobody will ever read it.
            self._waiting_bytes -= written
            if written < len(data):
                self._waiting[0] = data[written:]
            else:
                self._waiting.popleft()
        if not self._waiting and self._left_out:
            words = f"{self._left_out} lines were left out: the log was not read\n".encode()
            self._left_out = 0
            self._waiting.append(words)
            self._waiting_bytes += len(words)

    def _can_be_written(self, max_s: float | None) -> bool:
        if self._is_file:
            return True
        poll = select.poll()
        poll.register(self._descriptor, select.POLLOUT)
        # What has failed for good "can be written" as well: the write tells.
        return bool(poll.poll(None if max_s is None else max_s * 1000))

    def _write_later(self) -> None:
        self._filled.set()
        if self._writer is None:
            with suppress(RuntimeError):  # There is no thread to be had: the next line tries again.
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
        """Waits a little for the reader; called at the end of the process."""
        until = time.monotonic() + _LAST_WORDS_S
        while self._waiting and time.monotonic() < until:
            if self._can_be_written(max(0.0, until - time.monotonic())):
                self._write_now()


class PlainFormatter(logging.Formatter):
    """Keeps a record on its lines: control characters in it are escaped, keys are hidden."""

    def format(self, record: logging.LogRecord) -> str:
        text = redact(super().format(record))
        return "\n".join(printable(line) for line in text.split("\n"))

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:  # noqa: ARG002, N802
        """The record's time; the text of a second is made once."""
        second = int(record.created)
        if second != self._second:
            self._second = second
            self._told = time.strftime(self.default_time_format, time.localtime(second))
        return f"{self._told},{record.msecs:03.0f}"

    _second = -1
    _told = ""


class JsonFormatter(logging.Formatter):
    """A record as a JSON object on one line; keys are hidden.

    ``time`` (RFC 3339, in UTC), ``level``, ``logger`` and ``message``; ``request_id`` where the
    record is of a request, and of one that was answered `ACCESS` too; ``exception`` where there is
    one.

    Example:
        >>> record = logging.LogRecord("polymux.server", 30, "", 0, "%s left", ("nobody",), None)
        >>> record.created = 0.5
        >>> JsonFormatter().format(record)  # doctest: +NORMALIZE_WHITESPACE
        '{"time": "1970-01-01T00:00:00.500Z", "level": "warning", "logger": "polymux.server",
          "message": "nobody left"}'
    """

    def format(self, record: logging.LogRecord) -> str:
        time_text = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        told: dict[str, Any] = {
            "time": time_text.replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.name == ACCESS_LOGGER and isinstance(record.args, tuple):
            told |= dict(zip(ACCESS, record.args, strict=True))
            told["duration_ms"] = float(f"{told['duration_ms']:.1f}")
        elif (request_id := getattr(record, "request_id", None)) is not None:
            told["request_id"] = request_id
        if record.exc_info:
            told["exception"] = self.formatException(record.exc_info)
        safe = {name: redact(one) if isinstance(one, str) else one for name, one in told.items()}
        return json.dumps(safe)
