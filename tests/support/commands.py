"""The `polymux` command in a separate process, without the user's settings."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import chdir, suppress
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

from polymux.cli import errors, main

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

PROGRAM = [sys.executable, "-W", "error", "-m", "polymux"]
#: Only a hanging command takes this long, even on a busy machine.
MAX_S = 180


def environment(home: Path, server: Any = None, **more: str) -> dict[str, str]:
    """This process's environment without polymux settings, plus the server's URL and key."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POLYMUX_")}
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME"):
        kept.pop(name, None)
    kept |= {"HOME": str(home), "TERM": "xterm", "COLUMNS": "100"}
    if server is not None:
        kept |= {"POLYMUX_BASE_URL": server.url, "POLYMUX_API_KEY": getattr(server, "token", "k")}
    return kept | more


def run(
    *words: str | Path,
    cwd: Path,
    server: Any = None,
    stdin: bytes = b"",
    code: int | None = 0,
    **more: str,
) -> subprocess.CompletedProcess[bytes]:
    """Run a command to its end. `more` are environment variables.

    The command must exit with `code` and never print a traceback.
    """
    done = subprocess.run(
        [*PROGRAM, *map(str, words)],
        cwd=cwd,
        env=environment(cwd, server, **more),
        input=stdin,
        capture_output=True,
        check=False,
        timeout=MAX_S,
    )
    if code is not None:
        assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def call(
    *words: str | Path,
    cwd: Path,
    server: Any = None,
    stdin: bytes = b"",
    code: int | None = 0,
    may_trace: bool = False,
    **more: str,
) -> subprocess.CompletedProcess[bytes]:
    """Like `run`, but in this process, which is faster. `may_trace` allows a traceback."""
    streams = {}
    for name in ("stdin", "stdout", "stderr"):
        file = TemporaryFile()  # noqa: SIM115 - commands need a descriptor
        file.write(stdin if name == "stdin" else b"")
        file.seek(0)
        streams[name] = TextIOWrapper(file, "utf-8")
    with (
        mock.patch.dict(os.environ, environment(cwd, server, **more), clear=True),
        mock.patch.multiple(errors, _SECRETS=[], _is_here=False),  # global state of one process
        mock.patch.multiple(sys, **streams),
        chdir(cwd),
    ):
        try:
            found = main([*map(str, words)])
        except SystemExit as ended:
            found = ended.code  # type: ignore[assignment]
    contents = []
    for stream in streams.values():
        stream.flush()
        stream.seek(0)
        contents.append(stream.buffer.read())
        stream.close()
    done = subprocess.CompletedProcess(words, found, *contents[1:])
    assert code in (None, done.returncode), done.stderr.decode()
    assert may_trace or b"Traceback" not in done.stderr, done.stderr.decode()
    return done


def serve(*words: str | Path, cwd: Path) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a server that fails to start."""
    with mock.patch("polymux.server.run.set_up_logging"):  # It would change this process's logging.
        done = call("serve", "--port", "0", *words, cwd=cwd, code=None, XDG_STATE_HOME=str(cwd))
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def started(
    *words: str | Path, cwd: Path, server: Any = None, **options: Any
) -> subprocess.Popen[bytes]:
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(
        [*PROGRAM, *map(str, words)], cwd=cwd, env=environment(cwd, server), **(pipes | options)
    )


class Shell:
    """A program on a controlling pseudo-terminal: Ctrl-C works as from a keyboard."""

    def __init__(
        self, *words: str | Path, cwd: Path, server: Any = None, stdout: int | None = None
    ) -> None:
        self._ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [*map(str, words)],
            cwd=cwd,
            env=environment(cwd, server),
            stdin=theirs,
            stdout=theirs if stdout is None else stdout,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )
        os.close(theirs)
        self.text = ""
        self._seen = 0

    def wait_for(self, pattern: str) -> re.Match[str]:
        """Read until the output since the last match matches the pattern."""
        deadline = time.monotonic() + MAX_S
        while True:
            found = re.compile(pattern).search(self.text, self._seen)
            if found:
                self._seen = found.end()
                return found
            assert time.monotonic() < deadline, f"no {pattern!r} in {self.text[self._seen :]!r}"
            assert self._read(), f"the process ended before {pattern!r}: {self.text!r}"

    def press(self, keys: str) -> None:
        r"""Press keys; ``"\x03"`` is Ctrl-C, ``"\x04"`` Ctrl-D."""
        os.write(self._ours, keys.encode())

    def interrupt(self, pattern: str) -> None:
        """Press Ctrl-C until the output matches the pattern.

        Readline may miss a signal shortly before it waits for keys, and then sees the next one.
        """
        for _ in range(10):
            self.press("\x03")
            deadline = time.monotonic() + 3
            while time.monotonic() < deadline and self._read():
                if re.compile(pattern).search(self.text, self._seen):
                    break
            if self.process.poll() is not None or re.compile(pattern).search(self.text, self._seen):
                break
        self.wait_for(pattern)

    def end(self) -> int:
        """Read until the process ends, and return its exit code."""
        deadline = time.monotonic() + MAX_S
        while self._read():
            assert time.monotonic() < deadline, self.text
        return self.process.wait(timeout=MAX_S)

    def _read(self) -> bool:
        """Read the available output; return False at the end."""
        if not select.select([self._ours], [], [], 0.1)[0]:
            return self.process.poll() is None
        try:
            data = os.read(self._ours, 65_536)
        except OSError:  # A terminal reports EIO when the other end is closed.
            return False
        self.text += data.decode()
        return bool(data)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait(timeout=MAX_S)
        os.close(self._ours)


class Terminal(Shell):
    def __init__(
        self, *words: str | Path, cwd: Path, server: Any = None, stdout: int | None = None
    ) -> None:
        super().__init__(*PROGRAM, *words, cwd=cwd, server=server, stdout=stdout)


def _take_terminal() -> None:
    """Make standard input the controlling terminal of the new session."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
