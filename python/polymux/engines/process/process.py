"""One process of an engine from the server's side: start, messages, and end."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import socket
import sys
import time
from collections import deque
from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING, Any, cast
from weakref import WeakKeyDictionary

from polymux import errors
from polymux._util.text import printable, shortened
from polymux.engines.process import sandbox
from polymux.engines.process.framing import Frame, FrameReader, encoded
from polymux.service.errors import EXHAUSTED, engine_failed, restored, status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_KEPT_LINES = 50
_MAX_LINE_CHARACTERS = 500
#: Maximum lines logged in `_WITHIN_S`: a library that warns for each frame could fill the disk.
_LOGGED_LINES = 500
_WITHIN_S = 10.0


class StderrCapture:
    """Receives standard error, of which only a limited amount is kept and logged.

    Attributes:
        lines: The last lines.
    """

    def __init__(self, name: str) -> None:
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._name = name
        self._rest = b""
        self._since = 0.0
        self._logged = 0
        self._left_out = 0

    def take(self, piece: bytes, now: float) -> None:
        """Receive data.

        Args:
            piece: Bytes of any number; empty at the end of the stream, which completes the last
                line.
            now: Time of a monotonic clock in seconds.
        """
        if now - self._since >= _WITHIN_S or not piece:
            self._tell_left_out()
            self._since, self._logged = now, 0
        *lines, rest = (self._rest + (piece or b"\n")).split(b"\n")
        self._rest = rest[:_MAX_LINE_CHARACTERS]
        room = _LOGGED_LINES - self._logged
        for line in lines[:room]:
            self._keep(line, is_logged=True)
        left = lines[room:]
        self._left_out += len(left)
        for line in left[-_KEPT_LINES:]:
            self._keep(line, is_logged=False)

    def _keep(self, line: bytes, *, is_logged: bool) -> None:
        text = shortened(line.decode("utf-8", "replace").rstrip(), _MAX_LINE_CHARACTERS)
        text = shortened(printable(text), _MAX_LINE_CHARACTERS)
        if not text:
            return
        self.lines.append(text)
        if is_logged:
            self._logged += 1
            _log.info("%s: %s", self._name, text)

    def _tell_left_out(self) -> None:
        if self._left_out:
            _log.info("%s: %d more lines of output omitted", self._name, self._left_out)
        self._left_out = 0


_log = logging.getLogger("polymux.engines")
_PIECE_BYTES = 64 << 10
#: Environment variables for engines; secrets such as API keys and proxies are not passed.
_ENVIRONMENT = (
    "PATH",
    "HOME",
    "LANG",
    "LC_ALL",
    "LC_CTYPE",
    "TMPDIR",
    "TZ",
    "LD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONOPTIMIZE",
    "CUDA_VISIBLE_DEVICES",
    "XDG_CACHE_HOME",
    "XDG_DATA_HOME",
    "LD_PRELOAD",
    "ASAN_OPTIONS",
    "PYTHONMALLOC",
    "TESSDATA_PREFIX",
)


class CrashError(Exception):
    """The process ended unexpectedly or was killed; `words` describes how."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class Connection(asyncio.Protocol):
    """Sends and receives frames without waking a task for each of them, unlike asyncio streams."""

    def __init__(self, take: Callable[[list[Frame]], None]) -> None:
        self._take = take
        self._frames = FrameReader()
        self._words = ""
        self._writable = asyncio.Event()
        self._writable.set()
        #: Error in the received data after the connection has ended; empty for no error.
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Transports of other event loops are not subclasses of asyncio.Transport.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Handle received frames; invalid data ends the connection."""
        try:
            self._take(self._frames.feed(data))
        except Exception as error:  # All errors must end waiting requests.
            self._words = f"sent an invalid message ({error!r:.200})"
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._writable.set()
        if not self.lost.done():
            self.lost.set_result(self._words)

    def pause_writing(self) -> None:
        """The process does not read fast enough: pause writing."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """The process has read most of the data: resume writing."""
        self._writable.set()

    def write(self, data: bytes) -> None:
        """Send data. Ignored if the process has ended."""
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Wait until the process has read most of the data."""
        if not self._writable.is_set():
            await self._writable.wait()

    def close(self) -> None:
        """Close the connection, which ends the process."""
        self._transport.close()


class EngineProcess:
    """A child process of an engine. It belongs to one event loop.

    Args:
        family: Name of the engine in `polymux.engines.registry`.
        options: Options for its `load`.
        threads: Number of library threads.
        confinement: Restrictions of the process; None for no restrictions.
        silence_s: The process is killed after this time without a message.
    """

    def __init__(
        self,
        family: str,
        options: Mapping[str, Any],
        *,
        threads: int,
        confinement: Mapping[str, Any] | None,
        silence_s: float,
    ) -> None:
        self._family = family
        self._options = dict(options)
        self._threads = threads
        self._confinement = confinement
        self._silence_s = silence_s
        self._requests: dict[int, asyncio.Queue[Frame | CrashError]] = {}
        #: Requests that have not ended in the process, in order; and those that were canceled and
        #: only need to stop.
        self._outstanding: dict[int, None] = {}
        self._leaving: set[int] = set()
        #: Requests that were running when the process ended.
        self.running_at_end: tuple[int, ...] = ()
        #: Requests that ran when an earlier process crashed.
        self.suspects: set[int] = set()
        #: Time of the last message about a request, by the event loop's clock.
        self.last_reply_at = 0.0
        self._number = 0
        self._ready: asyncio.Future[Frame] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stderr = StderrCapture(family)
        self._process: asyncio.subprocess.Process | None = None
        self._connection: Connection | None = None
        self._heard_at = 0.0
        self._wanted_end = False
        #: Facts that the engine reported when it was ready.
        self.facts: dict[str, Any] = {}
        self.max_concurrency = 1
        self.in_force: list[str] = []
        self.memory_bytes = 0
        #: Set after the process has ended.
        self.gone = asyncio.Event()
        self.crash: CrashError | None = None

    @property
    def pid(self) -> int | None:
        """Process ID; None before the start."""
        return None if self._process is None else self._process.pid

    @property
    def busy(self) -> int:
        return len(self._requests)

    def _begun(self) -> list[int]:
        """Return the requests that are running; later ones wait in the process."""
        return list(islice(self._outstanding, self.max_concurrency))

    @property
    def wanted(self) -> int:
        """Number of running requests that were not canceled. Only these are lost by killing it."""
        return sum(one not in self._leaving for one in self._begun())

    def has_begun(self, number: int) -> bool:
        """Whether a request is running, or was when the process ended."""
        return number in (self._begun() if self.crash is None else self.running_at_end)

    @property
    def causes(self) -> set[int]:
        """The requests that have crashed the process; empty if it is not known which one."""
        running = set(self.running_at_end)
        return running if len(running) == 1 else running & self.suspects

    def leave(self, number: int) -> None:
        """Mark a request as canceled: it only needs to stop."""
        if number in self._outstanding:
            self._leaving.add(number)

    async def start(self) -> None:
        """Start the process and wait until the engine is loaded.

        Raises:
            PolymuxError: The engine cannot be loaded, or its process ended while loading.
        """
        try:
            ours = await self._spawn()
        except OSError as error:
            self._wanted_end = True  # Not a crash.
            raise _not_started(error) from error
        try:
            loop = asyncio.get_running_loop()
            _, self._connection = await loop.create_connection(
                lambda: Connection(self._take), sock=ours
            )
            frame = await self._load()
            self.facts = dict(frame.header.get("facts") or {})
            self.max_concurrency = int(frame.header["max_concurrency"])
            self.in_force = list(frame.header["in_force"])
            if self._confinement is not None and (
                lacking := sandbox.lacking(self._confinement, self.in_force)
            ):
                words = ", ".join(lacking)
                _log.warning("engine %s: not restricted on this system: %s", self._family, words)
        except BaseException:
            self.kill()
            if not self._tasks:  # Otherwise the tasks close it.
                (self._connection or ours).close()
            # A killed process ends quickly. Its tasks must end before the event loop.
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._until_gone())
            raise

    async def _until_gone(self) -> None:
        """Wait for the end after `kill`. Also works if the tasks were canceled with the loop."""
        if self._tasks:
            await asyncio.wait(self._tasks[:1])
        if self._process is not None:
            await self._process.wait()
        self.gone.set()

    async def _spawn(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # No imports from the current directory.
                "-m",
                "polymux.engines.process.child",
                self._family,
                str(os.getpid()),
                str(theirs.fileno()),
                stdin=asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=asyncio.subprocess.PIPE,
                env=self._environment(),
                start_new_session=True,
                pass_fds=(theirs.fileno(),),
            )
            register(self)
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return ours

    async def _load(self) -> Frame:
        if self._wanted_end:
            raise engine_failed("the engine was stopped while it was loading")
        self._heard_at = asyncio.get_running_loop().time()
        self._ready = asyncio.get_running_loop().create_future()
        self._tasks = [
            asyncio.create_task(self._read()),
            asyncio.create_task(self._read_lines()),
            asyncio.create_task(self._watch()),
        ]
        await self.send(
            {"kind": "start", "options": self._options, "confinement": self._confinement}
        )
        return await asyncio.shield(self._ready)

    def _environment(self) -> dict[str, str]:
        kept = {name: os.environ[name] for name in _ENVIRONMENT if name in os.environ}
        count = str(self._threads)
        for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
            kept[name] = count
        return kept | {
            "OMP_THREAD_LIMIT": count,
            "POLYMUX_THREADS": count,
            "HF_HUB_OFFLINE": "1",
            "TRANSFORMERS_OFFLINE": "1",
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "PYTHONUNBUFFERED": "1",
        }

    async def send(self, header: Mapping[str, Any]) -> None:
        """Send a frame. Ignored if the process has ended."""
        if self._connection is None:
            return
        self._connection.write(encoded(Frame(dict(header))))
        await self._connection.drain()

    async def begin(
        self, header: Mapping[str, Any]
    ) -> tuple[int, asyncio.Queue[Frame | CrashError]]:
        """Send a request; return its number and the queue of its frames."""
        self._number += 1
        number = self._number
        frames: asyncio.Queue[Frame | CrashError] = asyncio.Queue()
        try:
            data = encoded(Frame({"kind": "run", "id": number, **header}))
        except ValueError:
            raise status_error(
                errors.RequestTooLargeError, "the request is too large for an engine process"
            ) from None
        self._requests[number] = frames
        if self.crash is not None or self._connection is None:
            frames.put_nowait(self.crash or CrashError("was not started"))
            return number, frames
        self._outstanding[number] = None
        try:
            self._connection.write(data)
            await self._connection.drain()
        except BaseException:
            self.forget(number)
            self._connection.write(encoded(Frame({"kind": "cancel", "id": number})))
            raise
        return number, frames

    def forget(self, number: int) -> None:
        self._requests.pop(number, None)
        self._end_work(number)

    def _end_work(self, number: int) -> None:
        self._outstanding.pop(number, None)
        self._leaving.discard(number)

    async def _read(self) -> None:
        assert self._connection is not None  # noqa: S101
        words = await self._connection.lost
        self.kill()
        await self._end(words)

    def _take(self, frames: list[Frame]) -> None:
        self._heard_at = asyncio.get_running_loop().time()
        for frame in frames:
            self._handle(frame)

    def _handle(self, frame: Frame) -> None:
        if frame.kind == "alive":
            self.memory_bytes = int(frame.header["memory_bytes"])
            return
        if frame.kind in ("ready", "unloadable"):
            if self._ready is None or self._ready.done():
                return
            if frame.kind == "ready":
                self._ready.set_result(frame)
            else:
                self._wanted_end = True
                self._note_detail(frame.header["error"])
                self._ready.set_exception(restored(frame.header["error"]))
            return
        number = int(frame.header["id"])
        waiting = self._requests.get(number)
        self.last_reply_at = self._heard_at
        if frame.kind in ("done", "failed", "cancelled"):
            self._end_work(number)
        if frame.kind == "failed":
            self._note_detail(frame.header["error"])
        if waiting is not None:
            waiting.put_nowait(frame)

    def _note_detail(self, error: Mapping[str, Any]) -> None:
        if error.get("detail"):
            words = printable(str(error["detail"]))
            _log.error("engine %s failed: %s", self._family, words)

    async def _read_lines(self) -> None:
        assert self._process is not None  # noqa: S101
        assert self._process.stderr is not None  # noqa: S101
        loop = asyncio.get_running_loop()
        while piece := await self._process.stderr.read(_PIECE_BYTES):
            self._stderr.take(piece, loop.time())
        self._stderr.take(b"", loop.time())

    async def _watch(self) -> None:
        loop = asyncio.get_running_loop()
        assert self._ready is not None  # noqa: S101
        # Loading may hold the GIL for long, which prevents heartbeats. It has its own time limit.
        with suppress(Exception):
            await asyncio.shield(self._ready)
        self._heard_at = loop.time()
        while True:
            silent_s = loop.time() - self._heard_at
            if silent_s > self._silence_s:
                self._stderr.lines.append(f"no message for {silent_s:.0f} s")
                self.kill()
                return
            await asyncio.sleep(max(0.05, self._silence_s - silent_s))

    async def _end(self, words: str) -> None:
        assert self._process is not None  # noqa: S101
        status = await self._process.wait()
        with suppress(Exception):
            await asyncio.wait_for(self._tasks[1], 1)  # Its last output.
        how = f"ended by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"
        last = f": {self._stderr.lines[-1]}" if self._stderr.lines else ""
        self.running_at_end = tuple(self._begun())
        self.crash = CrashError(f"{words or how}{last}")
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(
                engine_failed("the process of the engine ended while loading")
            )
            self._ready.exception()  # Avoids a warning if nothing waits for it.
            _log.error("engine %s %s while loading", self._family, self.crash.words)
        for frames in self._requests.values():
            frames.put_nowait(self.crash)
        self._tasks[2].cancel()
        if self._connection is not None:
            self._connection.close()
        with suppress(asyncio.CancelledError):
            await self._tasks[2]
        self.gone.set()

    @property
    def was_wanted(self) -> bool:
        """Whether the end was intended, so it is not a crash."""
        return self._wanted_end

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Kill the process and its children. Their memory is free when this returns."""
        # Only killing the process group also ends its children. The engine needs no cleanup.
        self.discard()
        if self._process is not None:
            await self._until_gone()

    def discard(self) -> None:
        """Kill the process intentionally; this is not a crash."""
        self._wanted_end = True
        self.kill()


def _not_started(error: OSError) -> errors.APIStatusError:
    """Return the error for a process that could not start: temporary or permanent."""
    if error.errno in EXHAUSTED:
        return status_error(
            errors.OverloadedError,
            f"cannot start an engine process: {error.strerror}. Try again later",
            retry_after_s=5,
        )
    return engine_failed(f"cannot start an engine process: {error.strerror}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_MAX_END_S = 2.0
_PAUSE_S = 0.005

_RUNNING: WeakKeyDictionary[EngineProcess, asyncio.AbstractEventLoop] = WeakKeyDictionary()
# The processes belong to the parent, not to a forked child.
os.register_at_fork(after_in_child=_RUNNING.clear)


def register(process: EngineProcess) -> None:
    """Register a started process and its event loop for `kill_all`."""
    _RUNNING[process] = asyncio.get_running_loop()


def kill_all() -> None:
    """Kill the running processes when the program exits, without an event loop.

    Processes of closed loops are idle, and the kernel kills them with this process. Killing them
    here would make asyncio log warnings.
    """
    found = [one for one, loop in list(_RUNNING.items()) if not loop.is_closed()]
    running = [(one, one.pid) for one in found if _is_there(one.pid)]
    for process, _ in running:
        process.discard()
    until = time.monotonic() + _MAX_END_S
    for _, number in running:
        while _is_there(number) and time.monotonic() < until:
            time.sleep(_PAUSE_S)


def _is_there(number: int | None) -> bool:
    """Whether a child process runs. Its exit status is not consumed."""
    if number is None:
        return False
    with suppress(ChildProcessError):
        found = os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is None
    return False
