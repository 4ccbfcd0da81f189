"""An engine that fails in every way, for tests of the supervisor. It runs in the child process."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Engine, Output, Produced
from polymux.errors import UndecodableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Request, Token

FAMILY = "support.faulty_engine:FaultyEngine"


class FaultyEngine(Engine):
    """Obeys the first message of a chat, the prompt of an image, or a file name."""

    def __init__(self) -> None:
        self.max_concurrency = int(os.environ.get("FAULTY_SLOTS", "1"))
        self._kept: list[Any] = []

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self._options = options
        self.max_concurrency = options.get("max_concurrency", 1)
        fault = options.get("load", "")
        if fault == "crash":
            os.abort()
        if fault == "raise":
            raise UndecodableError("the model's file is broken")
        if fault == "defect":
            raise ZeroDivisionError("secret-canary")
        if fault == "slow":
            time.sleep(60)
        if fault == "exit":
            os._exit(3)
        if fault == "segfault":
            os.kill(os.getpid(), signal.SIGSEGV)
        if fault == "silent":
            ctypes.PyDLL(None).sleep(4)
        if options.get("once"):
            # Crashes only at the first start; the file marks that start.
            mark = Path(options["once"])
            if not mark.exists():
                mark.touch()
                self._options = {**options, "crash_now": True}
        return {"loaded": True}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        wanted = _wanted(request)
        sink.log(f"asked to {wanted}")
        name, _, rest = wanted.partition(" ")
        if self._options.get("crash_now"):
            os.abort()
        return getattr(self, f"do_{name}")(rest, sink, token)

    def do_echo(self, rest: str, sink: EngineSink, token: Token) -> Output:
        sink.report(0.5)
        return Output({"text": rest, "pid": os.getpid()}, "v1", {"n": 1})

    def do_stream(self, rest: str, sink: EngineSink, token: Token) -> Output:
        for number in range(int(rest)):
            token.check()
            sink.chunk({"n": number})
        return Output({"pid": os.getpid()})

    def do_endless(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Send endless pieces at the given interval in seconds."""
        number = 0
        while True:
            token.check()
            sink.chunk({"n": number})
            number += 1
            time.sleep(float(rest or 0.005))

    def do_deaf(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Ignore cancellation."""
        sink.chunk({"begun": True})
        time.sleep(float(rest or 60))
        return Output({"pid": os.getpid()})

    def do_tell(self, rest: str, sink: EngineSink, token: Token) -> Output:
        pause_s, times = rest.split()
        for number in range(int(times)):
            time.sleep(float(pause_s))
            sink.report(number / int(times))
        return Output({"text": "done"})

    def do_write(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Write only a file, beside the finished one."""
        pause_s, times = rest.split()
        path = sink.draft(int(times))
        beside = path.with_name(f".{path.name}.part")
        for number in range(int(times)):
            time.sleep(float(pause_s))
            beside.write_bytes(b"x" * (number + 1))
        beside.rename(path)
        return Output({"text": "done"})

    def do_touch(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Create a file to show the start, then ignore cancellation."""
        Path(rest).touch()
        time.sleep(60)
        raise AssertionError

    def do_second(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Hang the first time; a file marks it."""
        if not Path(rest).exists():
            Path(rest).touch()
            time.sleep(60)
        return Output({"text": "done"})

    def do_note(self, rest: str, sink: EngineSink, token: Token) -> Output:
        path, _, word = rest.partition(" ")
        with Path(path).open("a") as file:
            file.write(f"{word} ")
        time.sleep(0.05)
        return Output({"text": word})

    def do_file(self, rest: str, sink: EngineSink, token: Token) -> Output:
        path = sink.draft(int(rest))
        path.write_bytes(b"x" * int(rest))
        return Output({"response": Produced(path, "audio/mpeg", "a.mp3")})

    def do_late(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Request a file after the given seconds, and ignore cancellation until then."""
        sink.report(0.1)
        time.sleep(float(rest))
        return self.do_file("10", sink, token)

    def do_paint(self, rest: str, sink: EngineSink, token: Token) -> Output:
        paths = [sink.draft(1000) for _ in range(int(rest))]
        for number, path in enumerate(paths):
            path.write_bytes(bytes((number,)) * 1000)
        return Output([Produced(path, "image/png", "a.png") for path in paths])

    def do_steal(self, rest: str, sink: EngineSink, token: Token) -> Output:
        return Output({"response": Produced(Path(rest), "audio/mpeg", "a.mp3")})

    def do_raise(self, rest: str, sink: EngineSink, token: Token) -> Output:
        if rest == "defect":
            raise ZeroDivisionError("secret-canary")
        raise UndecodableError("broken input")

    def do_crash(self, rest: str, sink: EngineSink, token: Token) -> Output:
        if rest == "late":
            sink.chunk({"begun": True})
        print("last words", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
        time.sleep(10)
        raise AssertionError

    def do_abort(self, rest: str, sink: EngineSink, token: Token) -> Output:
        os.abort()

    def do_close(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Close the connection to the server, but keep running."""
        sink._child._connection.shutdown(socket.SHUT_WR)
        time.sleep(60)
        raise AssertionError

    def do_send(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Send a well-formed frame with invalid content."""
        header = json.loads(rest)
        sink._child.send({"id": sink._number, **header})
        time.sleep(60)
        raise AssertionError

    def do_exit(self, rest: str, sink: EngineSink, token: Token) -> Output:
        os._exit(int(rest))

    def do_freeze(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Hold the GIL. No thread of the process can then report that it is alive."""
        ctypes.PyDLL(None).sleep(60)
        raise AssertionError

    def do_garbage(self, rest: str, sink: EngineSink, token: Token) -> Output:
        sink._child._connection.sendall(bytes.fromhex(rest))
        time.sleep(10)
        raise AssertionError

    def do_grow(self, rest: str, sink: EngineSink, token: Token) -> Output:
        self._kept.append(bytearray(os.urandom(int(rest))))
        return Output({"bytes": len(self._kept[-1])})

    def do_spawn(self, rest: str, sink: EngineSink, token: Token) -> Output:
        import subprocess

        child = subprocess.Popen(["sleep", "60"])
        return Output({"pid": child.pid})

    def do_facts(self, rest: str, sink: EngineSink, token: Token) -> Output:
        open_ones = []
        for one in Path("/proc/self/fd").iterdir():
            # Skip the folder itself and files that another thread is reading.
            with contextlib.suppress(FileNotFoundError):
                if not str(one.readlink()).startswith("/proc/"):
                    open_ones.append(int(one.name))
        return Output({"environment": dict(os.environ), "descriptors": sorted(open_ones)})

    def do_try(self, rest: str, sink: EngineSink, token: Token) -> Output:
        """Try what a sandboxed process may still do."""
        done = {}
        for path in rest.split(","):
            try:
                with Path(path).open("rb") as file:
                    file.read(1)
                done[f"read {path}"] = True
            except OSError:
                done[f"read {path}"] = False
            try:
                with Path(f"{path}.written").open("wb") as file:
                    file.write(b"x")
                done[f"write {path}"] = True
            except OSError:
                done[f"write {path}"] = False
        port = int(self._options.get("port", 9))
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            done["connect"] = True
        except OSError:
            done["connect"] = False
        return Output(done)


def _wanted(request: Request) -> str:
    values = request.values
    if values.get("messages"):
        return str(values["messages"][0]["content"])
    return str(values["prompt"]) if "prompt" in values else str(values["file"].file_name)
