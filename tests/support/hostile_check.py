"""The requirements after every hostile input, whatever its outcome.

- A typed error names the input and repeats little of it.
- The outcome arrives within five seconds.
- No other file is opened, no connection is made, and no file is left behind.
- Memory, descriptors and threads are as before.
- The next good file converts as before.
"""

from __future__ import annotations

import ctypes
import json
import os
import re
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

from support.hostile import CANARY, OK, Case, Clips, Site
from support.hostile_wav import Wave, chunk, list_chunk

#: Sanitizers need far more time and memory, so their runs do not check limits.
SANITIZED = "san.so" in os.environ.get("LD_PRELOAD", "")
PATIENCE = 10 if SANITIZED else 1
ANSWER_S = 5.0 * PATIENCE
ECHO_CHARACTERS = 200
MESSAGE_CHARACTERS = 2048
IN_OPEN = 0x20
_TESTS = Path(__file__).resolve().parents[1]


class Decoy:
    """Listens on one local port, TCP and UDP, and counts connections and packets."""

    def __init__(self) -> None:
        self._tcp = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._tcp.getsockname()[1]
        self._udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._udp.bind(("127.0.0.1", self.port))
        self._tcp.setblocking(False)
        self._udp.setblocking(False)

    def hits(self) -> int:
        count = 0
        for take in (self._accept, self._receive):
            while take():
                count += 1
        return count

    def _accept(self) -> bool:
        try:
            self._tcp.accept()[0].close()
        except BlockingIOError:
            return False
        return True

    def _receive(self) -> bool:
        try:
            self._udp.recv(65_536)
        except BlockingIOError:
            return False
        return True

    def close(self) -> None:
        self._tcp.close()
        self._udp.close()


class Watch:
    """Counts how often a file is opened (inotify)."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(None, use_errno=True)
        self._descriptor = library.inotify_init1(os.O_NONBLOCK)
        if (
            self._descriptor < 0
            or library.inotify_add_watch(self._descriptor, os.fsencode(path), IN_OPEN) < 0
        ):
            raise OSError(ctypes.get_errno(), f"cannot watch {path}")

    def openings(self) -> int:
        """The number of openings since the start. Call this once."""
        try:
            return len(os.read(self._descriptor, 65_536)) // struct.calcsize("iIII")
        except BlockingIOError:
            return 0
        finally:
            os.close(self._descriptor)


def canary_wave() -> bytes:
    """A playable file with the canary: following a reference to it would succeed."""
    title = list_chunk(b"INFO", chunk(b"INAM", CANARY.encode()))
    return Wave(extra=title).to_bytes()


class Laboratory:
    """Builds cases, runs them in `hostile_child`, and checks the requirements."""

    def __init__(self, clips: Clips) -> None:
        self.clips = clips
        self.decoy = Decoy()
        self._good = clips.path("wav-short")
        program = [sys.executable, "-m", "support.hostile_child", str(self._good)]
        environment = dict(os.environ)
        folders = [str(_TESTS), environment.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
        self._child = subprocess.Popen(
            program, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, text=True
        )

    def close(self) -> None:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        self._child.stdin.close()
        self._child.wait(timeout=30)
        self._child.stdout.close()
        self.decoy.close()

    def request(self, **fields: Any) -> dict[str, Any]:
        assert self._child.stdin is not None
        assert self._child.stdout is not None
        fields = {"good": str(self._good), "patience": PATIENCE} | fields
        self._child.stdin.write(json.dumps(fields) + "\n")
        self._child.stdin.flush()
        line = self._child.stdout.readline()
        assert line, "the child of the bad-input tests ended; see its standard error"
        outcome: dict[str, Any] = json.loads(line)
        return outcome

    def check(self, case: Case, folder: Path) -> dict[str, Any]:
        """Run a case in `folder`; check the requirements and the allowed outcomes."""
        canary = folder / "canary.wav"
        canary.write_bytes(canary_wave())
        source = case.build(Site(folder, canary, self.decoy.port, self.clips))
        return self.check_file(
            source,
            folder,
            allowed=case.allowed,
            limits=dict(case.limits),
            duration_s=case.duration_s,
            tolerance_s=case.tolerance_s,
            memory_mib=case.memory_mib,
            canary=canary,
        )

    def check_file(
        self,
        source: Path,
        folder: Path,
        *,
        allowed: frozenset[str],
        limits: dict[str, float] | None = None,
        duration_s: float | None = None,
        tolerance_s: float = 0.1,
        memory_mib: int = 64,
        canary: Path | None = None,
    ) -> dict[str, Any]:
        """Run an existing file; check the requirements and return the child's report."""
        results = folder / "results"
        results.mkdir()
        content = source.read_bytes()
        before = _listing(folder)
        watch = Watch(canary) if canary else None
        outcome = self.request(
            source=str(source),
            destination=str(results / "out.mp3"),
            folder=str(folder),
            limits=limits or {},
        )
        assert outcome["outcome"] in allowed, outcome
        check_messages(outcome, source, content)
        check_resources(outcome, memory_mib)
        assert self.decoy.hits() == 0, "a hostile input made polymux connect"
        if watch:
            assert watch.openings() == 0, "a hostile input made polymux open another file"
        assert source.read_bytes() == content, "the input was changed"
        made = {results / "out.mp3"} if outcome["outcome"] == OK else set()
        assert _listing(folder) - before == made, "files were left behind"
        if made:
            check_output(results / "out.mp3")
            if duration_s is not None:
                assert abs(outcome["made"]["duration_s"] - duration_s) <= tolerance_s, outcome
        return outcome


def check_messages(outcome: dict[str, Any], source: Path, content: bytes) -> None:
    """Check that every failure is a PolymuxError, names the input, and repeats little of it."""
    for result in (outcome, outcome["probe"]):
        assert result["typed"], result
        if result["outcome"] == OK:
            continue
        message = result["message"]
        assert source.name in message, message
        assert len(message) <= MESSAGE_CHARACTERS
        assert CANARY not in message
        assert "Traceback" not in message
        assert not re.search(r"0x[0-9a-fA-F]{6}", message), f"a memory address in: {message}"
        assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", message), "control characters"
        echo = ECHO_CHARACTERS + 1
        if len(message) >= echo:
            text = content.decode("latin-1")
            assert not any(message[at : at + echo] in text for at in range(len(message) - echo + 1))


def check_resources(outcome: dict[str, Any], memory_mib: int) -> None:
    """Check time, memory, descriptors, threads, and the conversion of the next good file."""
    assert outcome["elapsed_s"] <= ANSWER_S, outcome
    if not SANITIZED:
        assert outcome["memory"] <= memory_mib * 1024 * 1024, outcome
    assert outcome["descriptors"] <= 0, outcome
    assert outcome["threads"] <= 0, outcome
    assert outcome["alive"], "a good file no longer converts as it did"


def check_output(path: Path) -> None:
    data = path.read_bytes()
    assert data[:3] == b"ID3" or data[:1] == b"\xff"
    assert CANARY.encode() not in data


def _listing(folder: Path) -> set[Path]:
    return {path for path in folder.rglob("*") if not path.is_dir()}
