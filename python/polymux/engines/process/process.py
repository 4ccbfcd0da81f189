"""One process of an engine, as the server sees it: started, spoken to, and gone."""

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
from polymux.engines.process.framing import Frame, FrameReader, encoded
from polymux.service.errors import EXHAUSTED, engine_failed, restored, status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping


_KEPT_LINES = 50
_MAX_LINE_CHARACTERS = 500
#: Of lines, that are logged in so many seconds: a library that warns of each frame fills a disk.
_LOGGED_LINES = 500
_WITHIN_S = 10.0


class StderrCapture:
    """Takes what comes through the pipe, however much that is.

    Attributes:
        lines: The last ones, for people.
    """

    def __init__(self, name: str) -> None:
        self.lines: deque[str] = deque(maxlen=_KEPT_LINES)
        self._name = name
        self._rest = b""
        self._since = 0.0
        self._logged = 0
        self._left_out = 0

    def take(self, piece: bytes, now: float) -> None:
        """A piece of any length.

        Args:
            piece: Bytes; empty at the end, when what has no end of a line is one too.
            now: By any clock that only goes forward, in seconds.
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
            _log.info("%s: %d more lines", self._name, self._left_out)
        self._left_out = 0


_log = logging.getLogger("polymux.engines")
_PIECE_BYTES = 64 << 10
#: Of this process, that engines need; keys and proxies stay here.
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
    """The process ended, or had to be ended; `words` says how."""

    def __init__(self, words: str) -> None:
        super().__init__(words)
        self.words = words


class Connection(asyncio.Protocol):
    """Frames in and out; a stream's reader would wake a task for each of them."""

    def __init__(self, take: Callable[[list[Frame]], None]) -> None:
        self._take = take
        self._frames = FrameReader()
        self._words = ""
        self._writable = asyncio.Event()
        self._writable.set()
        #: What was wrong with what came, once the connection has ended; empty for nothing.
        self.lost: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # Other event loops' are no subclasses.
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Gives its frames on; what is no message ends the connection."""
        try:
            self._take(self._frames.feed(data))
        except Exception as error:  # Whatever it sends, those who wait must be told.
            self._words = f"sent what is no message ({error!r:.200})"
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:  # noqa: ARG002
        self._writable.set()
        if not self.lost.done():
            self.lost.set_result(self._words)

    def pause_writing(self) -> None:
        """The process has enough to read."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """It has read most of it."""
        self._writable.set()

    def write(self, data: bytes) -> None:
        """Sends; to a process that is gone, nothing."""
        if not self._transport.is_closing():
            self._transport.write(data)

    async def drain(self) -> None:
        """Waits until the process has taken most of what was sent."""
        if not self._writable.is_set():
            await self._writable.wait()

    def close(self) -> None:
        """The process is told by it that nobody is there any more."""
        self._transport.close()


class EngineProcess:
    """A child process. Belongs to one event loop.

    Args:
        family: As `polymux.engines.registry` knows it.
        options: What its `load` gets.
        confinement: What it may still do; None for everything.
        silence_s: After how long without a sign of life it is ended.
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
        #: Work that has not ended there, in the order in which it came; and that of which nobody
        #: waits any more but for it to stop.
        self._outstanding: dict[int, None] = {}
        self._leaving: set[int] = set()
        #: When it last told anything of work, by the event loop's clock.
        self.told_at = 0.0
        self._number = 0
        self._ready: asyncio.Future[Frame] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._stderr = StderrCapture(family)
        self._process: asyncio.subprocess.Process | None = None
        self._connection: Connection | None = None
        self._heard_at = 0.0
        self._wanted_end = False
        #: What it told when it was ready.
        self.facts: dict[str, Any] = {}
        self.max_concurrency = 1
        self.in_force: list[str] = []
        self.memory_bytes = 0
        #: Set once it is gone.
        self.gone = asyncio.Event()
        self.crash: CrashError | None = None

    @property
    def pid(self) -> int | None:
        """Of the process; None before it is started."""
        return None if self._process is None else self._process.pid

    @property
    def busy(self) -> int:
        return len(self._requests)

    def _begun(self) -> list[int]:
        """The work that was taken up; the rest waits in the process."""
        return list(islice(self._outstanding, self.max_concurrency))

    @property
    def wanted(self) -> int:
        """How many it has begun for somebody who waits: others lose nothing by its end."""
        return sum(one not in self._leaving for one in self._begun())

    def has_begun(self, number: int) -> bool:
        """Whether it works on this, or did when it ended."""
        return number in self._begun()

    def leave(self, number: int) -> None:
        """Nobody waits for the end of this work any more, but for it to stop."""
        if number in self._outstanding:
            self._leaving.add(number)

    async def start(self) -> None:
        """Starts it and waits until it has loaded.

        Raises:
            PolymuxError: It cannot load what it needs, or ended before it had.
        """
        try:
            ours = await self._spawn()
        except OSError as error:
            self._wanted_end = True  # Nothing of it has crashed.
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
        except BaseException:
            self.kill()
            if not self._tasks:  # Which would close it.
                (self._connection or ours).close()
            # Killed, it is gone in no time; what watches it must not outlive the event loop.
            with suppress(asyncio.CancelledError):
                await asyncio.shield(self._until_gone())
            raise

    async def _until_gone(self) -> None:
        """Once it was killed. Whoever ends the event loop cancels also what would tell of it."""
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
                "-P",  # Nothing out of the current folder.
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
            raise engine_failed("an engine was given up before it was loaded")
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
        """Sends a frame; to a process that is gone, nothing."""
        if self._connection is None:
            return
        self._connection.write(encoded(Frame(dict(header))))
        await self._connection.drain()

    async def begin(
        self, header: Mapping[str, Any]
    ) -> tuple[int, asyncio.Queue[Frame | CrashError]]:
        """Sends work; gives its number, and where its frames come."""
        self._number += 1
        number = self._number
        frames: asyncio.Queue[Frame | CrashError] = asyncio.Queue()
        try:
            data = encoded(Frame({"kind": "run", "id": number, **header}))
        except ValueError:
            raise status_error(
                errors.RequestTooLargeError, "this is more than an engine takes at once"
            ) from None
        self._requests[number] = frames
        if self.crash is not None or self._connection is None:
            frames.put_nowait(self.crash or CrashError("was never started"))
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
        self.told_at = self._heard_at
        if frame.kind in ("done", "failed", "cancelled"):
            self._end_work(number)
        if frame.kind == "failed":
            self._note_detail(frame.header["error"])
        if waiting is not None:
            waiting.put_nowait(frame)

    def _note_detail(self, error: Mapping[str, Any]) -> None:
        if error.get("detail"):
            words = printable(str(error["detail"]))
            _log.error("the engine %s failed: %s", self._family, words)

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
        # Libraries may hold the interpreter's lock while they load: that has its own deadline.
        with suppress(Exception):
            await asyncio.shield(self._ready)
        self._heard_at = loop.time()
        while True:
            silent_s = loop.time() - self._heard_at
            if silent_s > self._silence_s:
                self._stderr.lines.append(f"no sign of life for {silent_s:.0f} s")
                self.kill()
                return
            await asyncio.sleep(max(0.05, self._silence_s - silent_s))

    async def _end(self, words: str) -> None:
        assert self._process is not None  # noqa: S101
        status = await self._process.wait()
        with suppress(Exception):
            await asyncio.wait_for(self._tasks[1], 1)  # What it said last.
        how = f"ended by {_signal_name(-status)}" if status < 0 else f"ended with status {status}"
        last = f": {self._stderr.lines[-1]}" if self._stderr.lines else ""
        self.crash = CrashError(f"{words or how}{last}")
        if self._ready is not None and not self._ready.done():
            self._ready.set_exception(engine_failed("an engine ended while it was loaded"))
            self._ready.exception()  # Retrieved here, where nobody may wait for it any more.
            _log.error("the engine %s %s while it was loaded", self._family, self.crash.words)
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
        """Whether its end was asked for, and so is no crash."""
        return self._wanted_end

    def kill(self) -> None:
        if self._process is not None and self._process.returncode is None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)

    async def stop(self) -> None:
        """Ends it and what it started; its memory is free when this returns."""
        # Asked to end, it would leave behind what it started, and has nothing else to put away.
        self.discard()
        if self._process is not None:
            await self._until_gone()

    def discard(self) -> None:
        """Ends it because nobody wants it any more: no crash."""
        self._wanted_end = True
        self.kill()


def _not_started(error: OSError) -> errors.APIStatusError:
    """Why there is no process: for now, or because something is wrong with this installation."""
    if error.errno in EXHAUSTED:
        return status_error(
            errors.OverloadedError,
            f"this machine has no room for an engine's process now: {error.strerror}",
            retry_after_s=5,
        )
    return engine_failed(f"an engine's process cannot be started: {error.strerror}")


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"


_MAX_END_S = 2.0
_PAUSE_S = 0.005

_RUNNING: WeakKeyDictionary[EngineProcess, asyncio.AbstractEventLoop] = WeakKeyDictionary()
# A forked process has none of them; they are its parent's.
os.register_at_fork(after_in_child=_RUNNING.clear)


def register(process: EngineProcess) -> None:
    """Keeps in mind a process that was started, and the event loop that it belongs to."""
    _RUNNING[process] = asyncio.get_running_loop()


def kill_all() -> None:
    """Ends all that may be at work when this program ends; no event loop takes part.

    Those of a closed loop have no work, and the system ends them with this process: asyncio would
    complain of each that ends before.
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
    """Whether a child of that number runs. Its status is left to whoever waits for it."""
    if number is None:
        return False
    with suppress(ChildProcessError):
        found = os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is None
    return False
