"""The process of an engine: ``python -m polymux.engines.process.child FAMILY PARENT DESCRIPTOR``.

The supervisor starts it; the descriptor is its end of a socket pair. One thread reads frames, one
tells that the process lives, and as many as the engine has slots do the work: for one slot, that is
the main thread, as some libraries want it.
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
#: A chunk in so many bytes is one whose taking the server tells of; two may be untaken.
_MARK_BYTES = 64 << 10
_MAX_UNACKNOWLEDGED_CHUNKS = 2
_MAX_TEMPORARY_FILE_WAIT_S = 60.0


class _Flow:
    """The chunks of one piece of work: no more are sent than somebody takes."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._bytes = 0
        self._untaken = 0

    def wait(self, token: Token) -> None:
        """Until another chunk may be sent, or nobody wants one any more."""
        with self._changed:
            while self._untaken >= _MAX_UNACKNOWLEDGED_CHUNKS and not token.cancelled:
                self._changed.wait()

    def is_marked(self, size_bytes: int) -> bool:
        """Counts a chunk; gives whether it is one whose taking is to be told of."""
        with self._changed:
            self._bytes += size_bytes
            if self._bytes < _MARK_BYTES:
                return False
            self._bytes = 0
            self._untaken += 1
            return True

    def taken(self, count: int) -> None:
        """Such a chunk was taken; with 0, whoever waits looks again."""
        with self._changed:
            self._untaken -= count
            self._changed.notify_all()


class _Work:
    """One piece of work, from when it is sent until its end is told."""

    def __init__(self) -> None:
        self.token = Token()
        self.flow = _Flow()
        #: None is for whoever waits when the work is cancelled.
        self.drafts: queue.SimpleQueue[Frame | None] = queue.SimpleQueue()
        self.has_begun = False
        #: Cancelled before anybody took it up.
        self.is_gone = False
        self.token.on_cancel(lambda: self.flow.taken(0))
        # The server gives no more drafts to work that nobody waits for.
        self.token.on_cancel(lambda: self.drafts.put(None))


class Child:
    """The process's side of the connection."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._reader = FrameReader()
        self._sending = threading.Lock()
        self._works: dict[int, _Work] = {}
        self._waiting: queue.SimpleQueue[Frame] = queue.SimpleQueue()

    def send(self, header: Mapping[str, Any], payload: bytes = b"") -> None:
        """Sends a frame. Any thread. Without a server there is nothing left to live for."""
        self._send(encoded(Frame(dict(header), payload)))

    def _send(self, data: bytes) -> None:
        try:
            with self._sending:
                self._connection.sendall(data)
        except OSError:
            os._exit(0)

    def chunk(self, number: int, data: Mapping[str, Any]) -> None:
        """Sends a piece of a streamed answer, once there is room for it; to nobody, none."""
        work = self._works.get(number)
        if work is None:
            return  # It is over.
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
            self.send({"kind": "unloadable", "error": _told(error)})
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
        """The next frames, which may be none yet; the process ends with its connection."""
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
        """Never returns: the process ends with its connection."""
        try:
            while True:
                for frame in frames:
                    self._handle(frame)
                frames = self._receive()
        except BaseException as error:
            print(f"the connection to the server failed: {error!r}", file=sys.stderr)  # noqa: T201
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
            return  # It is over.
        elif frame.kind == "taken":
            work.flow.taken(1)
        elif frame.kind == "draft":
            work.drafts.put(frame)
        elif frame.kind == "cancel" and work.has_begun:
            # Callbacks of an engine may take their time; other frames must not wait for them.
            threading.Thread(target=work.token.cancel, daemon=True).start()
        elif frame.kind == "cancel":
            # Nobody has taken it up, and nobody will.
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
                told = _told(error)
                told["message"] = _without_paths(told["message"], frame.header)
                self.send({"kind": "failed", "id": number, "error": told})
        finally:
            del self._works[number]

    def draft(self, number: int, expected_bytes: int) -> Path:
        """Asks the server for a place to write to.

        Raises:
            Cancelled: Nobody waits for the work any more.
            PolymuxError: There is no room.
        """
        work = self._works.get(number)
        if work is None:
            raise Cancelled  # It is over.
        self.send({"kind": "draft", "id": number, "bytes": expected_bytes})
        frame = work.drafts.get(timeout=_MAX_TEMPORARY_FILE_WAIT_S)
        if frame is None:
            work.drafts.put(None)  # Other threads of the work may wait as well.
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


def _told(error: Exception) -> dict[str, Any]:
    told = described(error)
    if told["code"] in ("internal", StoreError.code):
        # For the server's log; a caller is told of an engine that failed, and no more.
        told["detail"] = f"{type(error).__name__}: {error}"[:2000]
    if told["code"] == "internal":
        told["code"], told["message"] = "engine_failed", "the engine failed at this"
    return told


def _without_paths(text: str, header: Mapping[str, Any]) -> str:
    """Files as their senders call them: where they lie is nobody's business."""
    for given, *rest in header["files"].values():
        path, name = Path(given), display_name(rest[0]) or "the file"
        for place in (os.fspath(path), display_name(os.fspath(path))):
            text = text.replace(place, name)
        # A long path may have been shortened in other ways; its end is always there.
        text = name.join(re.split(rf"\S*{re.escape(path.name)}", text))
    return text


def _memory_bytes() -> int:
    with suppress(OSError, ValueError, IndexError):
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[1])
        return pages * resource.getpagesize()
    return 0


def _confine(header: Mapping[str, Any]) -> list[str]:
    """Takes this process's rights; gives what is in force.

    Of a process with one way out, the options get its address as ``proxy``.
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
        )
    )


def main() -> None:
    sandbox.die_with_parent(int(sys.argv[2]))
    connection = socket.socket(fileno=int(sys.argv[3]))
    connection.set_inheritable(False)  # What an engine starts has no business with it.
    Child(connection).serve(sys.argv[1])


if __name__ == "__main__":
    main()
