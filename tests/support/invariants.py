"""Requirements for every answer of a server and for the end of every test with a server.

- I1: the status is a documented one, and an error has the documented JSON form.
- I2: answers and logs contain no keys, paths, tracebacks or object addresses.
- I3: the server serves the next request.
- I4: temporary files, unfinished jobs, unknown files, threads and child processes are gone.
- I5: no unexpected connection is made. Only tests with decoys check this.
- I6: memory grows by `MORE_BYTES` at most.
- I7: no coroutine or exception is left unawaited, and no sanitizer reports an error.

`PolymuxServer`, `ServerProcess` and `ServeCommand` check them automatically.
`test_hostile_bodies.py` also checks that health probes return within 250 ms.
"""

from __future__ import annotations

import json
import logging
import os
import re
import sqlite3
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from support.polymux_server import Answer

#: I1: allowed statuses.
STATUSES = frozenset(
    (200, 201, 202, 204, 206, 302, 303, 304, 307, 308, 400, 401, 403, 404, 405, 406, 408, 409, 411,
     413, 414, 415, 416, 421, 422, 429, 431, 500, 501, 502, 503, 504, 505, 507)
)  # fmt: skip
#: Paths with their own error format: compatibility APIs, and reports about readiness.
_OWN_SHAPES = ("/v1/", "/mcp", "/replicate/", "/readyz", "/api/v1/readiness")
_MAX_ERROR_BYTES = 2048
_MAX_ECHOED = 200
#: I2: internals.
_INSIDE = re.compile(r"Traceback|\b0x[0-9a-f]{6}")
#: I7: messages about forgotten coroutines and exceptions.
_FORGOTTEN = ("never awaited", "exception was never retrieved", "Exception in callback",
              "AddressSanitizer", "runtime error:", "ThreadSanitizer")  # fmt: skip
#: Limits of I4 (seconds) and I6 (bytes).
SETTLED_S = 20.0
MORE_BYTES = 64 << 20


def check_answer(
    answer: Answer, asked: bytes, secrets: Iterable[str], *, hosted: bool = False
) -> None:
    """Check I1 and I2 for one answer.

    Args:
        answer: An answer. Status 0 means that no answer came; the test decides about that.
        asked: The request as sent.
        secrets: Texts that no answer may contain, such as keys and folders.
        hosted: Whether another application serves beside polymux, with its own error format.
    """
    if hosted and "polymux-version" not in answer.headers:
        return
    if not answer.status:
        return
    assert answer.status in STATUSES, answer.status
    head = "\n".join(answer.lines)
    for secret in filter(None, secrets):
        assert secret.encode() not in answer.body, f"a secret in {answer.body!r} to {asked[:99]!r}"
        assert secret not in head, f"a secret in the header of the answer to {asked[:200]!r}"
    if answer.status < 400:
        return
    text = answer.body.decode()
    assert not _INSIDE.search(text), text
    first = asked.partition(b"\r\n")[0].split(b" ")
    target = first[1].decode("latin-1") if len(first) > 1 else ""
    if answer.body and not target.startswith(_OWN_SHAPES):
        _check_error(answer, text, asked)


def _check_error(answer: Answer, text: str, asked: bytes) -> None:
    assert answer.headers["content-type"] == "application/json", answer.headers
    assert len(answer.body) <= _MAX_ERROR_BYTES, text
    body = json.loads(text)
    assert isinstance(body["error"], str), body
    assert body["error"], body
    assert "detail" not in body, body
    assert "polymux-version" in answer.headers
    message = body["error"]
    sent = asked.decode("utf-8", "replace")
    for at in range(len(message) - _MAX_ECHOED):
        assert message[at : at + _MAX_ECHOED + 1] not in sent, "the error repeats the request"


def check_log(text: str, secrets: Iterable[str], *, defects: bool = False) -> None:
    """Check I2 and I7 for a server's log."""
    for words in _FORGOTTEN:
        assert words not in text, text[-3000:]
    for secret in filter(None, secrets):
        assert secret not in text, "a secret in the log"
    if not defects:
        at = text.find("Traceback")
        assert at < 0, text[max(0, at - 500) : at + 2500]


def check_store(folder: Path) -> None:
    """Check I4 for the store of a stopped server: it is sound and contains nothing unknown."""
    database = folder / "catalogue.db"
    if not database.exists():
        return
    drafts = folder / "drafts"
    left = [one.name for one in drafts.iterdir()] if drafts.exists() else []
    assert left == [], f"temporary files are left: {left[:5]}"
    with closing(sqlite3.connect(database)) as connection:
        rows = connection.execute("SELECT count(*) FROM jobs WHERE status NOT IN "
                                  "('succeeded', 'failed', 'canceled')").fetchone()  # fmt: skip
        assert rows == (0,), "an unfinished job is left"
        known = {name for (name,) in connection.execute("SELECT name FROM files")}
    files = (folder / "media").glob("*/*")
    there = {one.name for one in files if one.is_file() and not one.is_symlink()}
    assert there <= known, "files that the job database does not list"


def until(condition: object, max_s: float = SETTLED_S) -> bool:
    end = time.monotonic() + max_s
    while not condition():  # type: ignore[operator]
        if time.monotonic() > end:
            return False
        time.sleep(0.01)
    return True


class _Listener(logging.Handler):
    """Collects log records of threads that start later.

    asyncio reports forgotten coroutines in the thread that happens to collect garbage. Such a
    report counts only if it mentions polymux, because another test may have caused it.
    """

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []
        self.others = {one.ident for one in threading.enumerate()}
        self.setFormatter(logging.Formatter("%(name)s %(levelname)s %(message)s"))

    def emit(self, record: logging.LogRecord) -> None:
        text = self.format(record)
        forgotten_by_others = record.name == "asyncio" and "polymux" not in text
        if record.thread not in self.others and not forgotten_by_others:
            self.lines.append(text)


class InProcess:
    """Remembers threads and child processes before a server starts, to compare them at its end."""

    _watching: ClassVar[list[InProcess]] = []

    def __init__(self) -> None:
        self.defects = False
        self._threads = set(threading.enumerate())
        self._children = _children()
        self._listener = _Listener()
        self._logger = logging.getLogger()

    def begin(self) -> None:
        self._logger.addHandler(self._listener)
        self._watching.append(self)

    def expect_defects(self) -> None:
        """Allow tracebacks in all servers of this process, because the test provokes a crash."""
        for one in self._watching:
            one.defects = True

    def end(self) -> None:
        self._logger.removeHandler(self._listener)
        if self in self._watching:
            self._watching.remove(self)

    def check(self, folder: Path, secrets: Sequence[str]) -> None:
        """Check I2, I4 and I7 after the server's end."""
        check_log("\n".join(self._listener.lines), secrets, defects=self.defects)
        check_store(folder)
        if not self._watching:  # Otherwise they may belong to another running server.
            assert until(lambda: not self._more_threads()), self._more_threads()
            assert until(lambda: _children() <= self._children), "a child process is left"
        assert until(lambda: not _open_in(folder)), _open_in(folder)

    def _more_threads(self) -> list[str]:
        """New threads of servers, which are recognized by their names."""
        found = set(threading.enumerate()) - self._threads
        return [one.name for one in found if one.name.startswith(("asyncio_", "polymux"))]


def _children() -> set[str]:
    found: set[str] = set()
    for task in Path("/proc/self/task").glob("*/children"):
        try:
            found.update(task.read_text().split())
        except OSError:
            continue  # The thread has ended meanwhile.
    return found


def _open_in(folder: Path) -> list[str]:
    found = []
    for one in Path("/proc/self/fd").iterdir():
        try:
            path = os.readlink(one)  # noqa: PTH115 - it marks deleted files
        except OSError:
            continue
        if path.startswith(f"{folder}{os.sep}"):
            found.append(path)
    return found
