"""The process of an engine: ``python -m polymux.engines.process.child FAMILY PARENT DESCRIPTOR``.

The supervisor starts it; the descriptor is one end of a socket pair. One thread reads frames, one
sends heartbeats, and `max_concurrency` threads run requests. The main thread is one of them,
because some libraries require it.
"""

from __future__ import annotations

import os
import queue
import re
import resource
import socket
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.memory import freeze_gc
from polymux._util.text import display_name
from polymux.engines.base import Cancelled, EngineSink, Produced, Request, Token
from polymux.engines.process import egress, sandbox
from polymux.engines.process.framing import Frame, FrameReader, encoded
from polymux.engines.registry import engine_of
from polymux.service.errors import StoreError, described, restored
from polymux.service.model import LARGEST_PREVIEW_BYTES, Upload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import Engine, Output

_PIECE_BYTES = 1 << 20
_HEARTBEAT_S = 1.0
#: A chunk is marked after this many bytes. The server acknowledges marked chunks, of which two may
#: be unacknowledged.
_MARK_BYTES = 64 << 10
_MAX_UNACKNOWLEDGED_CHUNKS = 2
_MAX_TEMPORARY_FILE_WAIT_S = 60.0


class _Flow:
    """Flow control for the chunks of a request: limits unacknowledged chunks."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._bytes = 0
        self._untaken = 0

    def wait(self, token: Token) -> None:
        """Wait until another chunk may be sent, or the request is canceled."""
        with self._changed:
            while self._untaken >= _MAX_UNACKNOWLEDGED_CHUNKS and not token.cancelled:
                self._changed.wait()

    def is_marked(self, size_bytes: int) -> bool:
        """Count a chunk, and return whether it must be marked for acknowledgment."""
        with self._changed:
            self._bytes += size_bytes
            if self._bytes < _MARK_BYTES:
                return False
            self._bytes = 0
            self._untaken += 1
            return True

    def taken(self, count: int) -> None:
        """Acknowledge marked chunks. With 0, waiting threads only check for cancellation."""
        with self._changed:
            self._untaken -= count
            self._changed.notify_all()


class _Work:
    """One request, from its arrival until its last frame is sent."""

    def __init__(self) -> None:
        self.token = Token()
        self.flow = _Flow()
        #: Answers to requests for output files. None wakes up waiting threads on cancellation.
        self.drafts: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self.has_begun = False
        #: Whether it was canceled before a thread started it.
        self.is_gone = False
        self.token.on_cancel(lambda: self.flow.taken(0))
        # The server does not answer after cancellation.
        self.token.on_cancel(lambda: self.drafts.put(None))


class Child:
    """The child's side of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = FrameReader()
        self._sending = threading.Lock()
        self._works: dict[int, _Work] = {}
        self._waiting: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Send a frame, from any thread. Exits if the server has ended."""
        self._send(encoded(Frame(dict(header), payload)))

    def _send(self, data: bytes) -> None:
        try:
            with self._sending:
                self._connection.sendall(data)
        except OSError:
            os._exit(0)

    def chunk(self, number: int, data: Mapping[str, Any]) -> None:
        """Send a chunk when the flow control allows it. Does nothing after cancellation."""
        work = self._works.get(number)
        if work is None:
            return  # The request has ended.
        work.flow.wait(work.token)
        if work.token.cancelled:
            return
        header = {"kind": "chunk", "id": number, "data": data}
        frame = encoded(Frame(header))
        if work.flow.is_marked(len(frame)):
            frame = encoded(Frame(header | {"mark": True}))
        self._send(frame)

    def serve(self, family: str) -> None:
        frames: list[Frame] = []
        while not frames:
            frames = self._receive()
        start = frames.pop(0)
        in_force = _confine(start.header)
        threading.Thread(target=self._tell_life, daemon=True).start()
        engine = engine_of(family)
        try:
            facts = engine.load(start.header["options"])
        except Exception as error:
            self.send({"kind": "unloadable", "error": _error_fields(error)})
            return
        freeze_gc()
        self.send(
            {
                "kind": "ready",
                "facts": facts,
                "max_concurrency": engine.max_concurrency,
                "in_force": in_force,
            }
        )
        threading.Thread(target=self._read, args=(frames,), daemon=True).start()
        others = [
            threading.Thread(target=self._work_off, args=(engine,), daemon=True)
            for _ in range(engine.max_concurrency - 1)
        ]
        for other in others:
            other.start()
        self._work_off(engine)

    def _receive(self) -> list[Frame]:
        """Receive the next frames, possibly none. Exits if the connection is closed."""
        piece = self._connection.recv(_PIECE_BYTES)
        if not piece:
            os._exit(0)
        return self._reader.feed(piece)

    def _tell_life(self) -> None:
        pause = threading.Event()
        while True:
            self.send({"kind": "alive", "memory_bytes": _memory_bytes()})
            pause.wait(_HEARTBEAT_S)

    def _read(self, frames: list[Frame]) -> None:
        """Handle frames until the process exits."""
        try:
            while True:
                for frame in frames:
                    self._handle(frame)
                frames = self._receive()
        except BaseException as error:
            print(f"the connection of the engine to the server failed: {error!r}", file=sys.stderr)  # noqa: T201
            os._exit(1)

    def _handle(self, frame: Frame) -> None:
        number = frame.header.get("id", 0)
        work = self._works.get(number)
        if frame.kind == "run":
            self._works[number] = _Work()
            self._waiting.put(frame)
        elif frame.kind == "end":
            os._exit(0)
        elif work is None:
            return  # The request has ended.
        elif frame.kind == "taken":
            work.flow.taken(1)
        elif frame.kind == "draft":
            work.drafts.put(frame)
        elif frame.kind == "cancel" and work.has_begun:
            # Cancellation callbacks may take long and must not block other frames.
            threading.Thread(target=work.token.cancel, daemon=True).start()
        elif frame.kind == "cancel":
            # No thread has started it, and none will.
            work.token.cancel()
            work.is_gone = True
            self.send({"kind": "cancelled", "id": number})

    def _work_off(self, engine: Engine) -> None:
        while True:
            self._run(engine, self._waiting.get())

    def _run(self, engine: Engine, frame: Frame) -> None:
        number = frame.header["id"]
        work = self._works[number]
        work.has_begun = True
        token = work.token
        if work.is_gone:
            del self._works[number]
            return
        try:
            token.check()
            output = engine.run(_request(frame.header), _Sink(self, number), token)
            token.check()
            self.send({"kind": "done", "id": number, **_described(output)})
        except Cancelled:
            self.send({"kind": "cancelled", "id": number})
        except Exception as error:
            if token.cancelled:
                self.send({"kind": "cancelled", "id": number})
            else:
                fields = _error_fields(error)
                fields["message"] = _without_paths(fields["message"], frame.header)
                self.send({"kind": "failed", "id": number, "error": fields})
        finally:
            del self._works[number]

    def draft(self, number: int, expected_bytes: int) -> Path:
        """Request an output file from the server.

        Raises:
            Cancelled: The request was canceled.
            PolymuxError: There is not enough space.
        """
        work = self._works.get(number)
        if work is None:
            raise Cancelled  # The request has ended.
        self.send({"kind": "draft", "id": number, "bytes": expected_bytes})
        frame = work.drafts.get(timeout=_MAX_TEMPORARY_FILE_WAIT_S)
        if frame is None:
            work.drafts.put(None)  # Wake other threads of the request too.
            raise Cancelled
        if "error" in frame.header:
            raise restored(frame.header["error"])
        return Path(frame.header["path"])


class _Sink(EngineSink):
    def __init__(self, child: Child, number: int) -> None:
        self._child = child
        self._number = number

    def log(self, line: str) -> None:
        self._child.send({"kind": "log", "id": self._number, "line": line})

    def warn(self, line: str) -> None:
        self._child.send({"kind": "log", "id": self._number, "line": line, "warning": True})

    def report(self, progress: float) -> None:
        self._child.send({"kind": "progress", "id": self._number, "progress": progress})

    def chunk(self, data: Mapping[str, Any]) -> None:
        self._child.chunk(self._number, data)

    def preview(self, data: bytes, content_type: str) -> None:
        if len(data) <= LARGEST_PREVIEW_BYTES:
            header = {"kind": "preview", "id": self._number, "content_type": content_type}
            self._child.send(header, data)

    def draft(self, expected_bytes: int = 0) -> Path:
        return self._child.draft(self._number, expected_bytes)


def _request(header: Mapping[str, Any]) -> Request:
    files = {name: Upload(Path(path), *rest) for name, (path, *rest) in header["files"].items()}
    given = frozenset(header["given"])
    values = header["values"] | files
    return Request(header["operation"], header["variant"], header["model"], values, given)


def _described(output: Output) -> dict[str, Any]:
    return {
        "value": _plain(output.value),
        "version": output.version,
        "metrics": dict(output.metrics),
        "model": output.model,
    }


def _plain(value: Any) -> Any:
    if isinstance(value, Produced):
        rest = [value.content_type, value.file_name]
        return {"polymux": "made", "path": os.fspath(value.path), "rest": rest}
    if isinstance(value, (list, tuple)):
        return [_plain(one) for one in value]
    if isinstance(value, dict):
        return {name: _plain(one) for name, one in value.items()}
    return value


def _error_fields(error: Exception) -> dict[str, Any]:
    fields = described(error)
    if fields["code"] in ("internal", StoreError.code):
        # The detail is for the server's log. Clients only get a general message.
        fields["detail"] = f"{type(error).__name__}: {error}"[:2000]
    if fields["code"] == "internal":
        fields["code"], fields["message"] = (
            "engine_failed",
            "the engine failed unexpectedly. See the server's log",
        )
    return fields


def _without_paths(text: str, header: Mapping[str, Any]) -> str:
    """Replace paths of files with the client's file names: clients must not see paths."""
    for given, *rest in header["files"].values():
        path, name = Path(given), display_name(rest[0]) or "the file"
        for place in (os.fspath(path), display_name(os.fspath(path))):
            text = text.replace(place, name)
        # A long path may have been shortened; its end is always there.
        text = name.join(re.split(rf"\S*{re.escape(path.name)}", text))
    return text


def _memory_bytes() -> int:
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    return 0


def _confine(header: Mapping[str, Any]) -> list[str]:
    """Restrict this process, and return the restrictions in force.

    If its network access is limited to a proxy, the options get the proxy's URL as ``proxy``.
    """
    wanted = header.get("confinement")
    if wanted is None:
        return []
    in_force: list[str] = []
    ports: tuple[int, ...] = ()
    if wanted.get("outlet"):
        port = egress.open_outlet(wanted["outlet"]["socket"])
        if port is None:
            ports = (int(wanted["outlet"]["port"]),)
            header["options"]["proxy"] = wanted["outlet"]["url"]
        else:
            in_force.append(egress.ONE_WAY_OUT)
            header["options"]["proxy"] = f"http://127.0.0.1:{port}"
    return in_force + sandbox.confine(
        sandbox.Confinement(
            tuple(wanted["readable"]),
            tuple(wanted["writable"]),
            wanted["network"],
            wanted["limits"],
            ports,
            tuple(wanted.get("families") or ()),
        )
    )


def main() -> None:
    sandbox.die_with_parent(int(sys.argv[2]))
    connection = socket.socket(fileno=int(sys.argv[3]))
    connection.set_inheritable(False)  # Programs started by engines must not get it.
    Child(connection).serve(sys.argv[1])


if __name__ == "__main__":
    main()
