"""`polymux serve` in a separate process, with its own home, temporary folder and test engine.

Chats use the engine of `support.faulty_engine`, which obeys the message. MP3 conversion is real.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from support.faulty_engine import FAMILY
from support.invariants import check_answer, check_log
from support.invariants import until as comes_true
from support.polymux_server import Answer, form

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Self

TESTS = Path(__file__).parents[1]
#: Only a hanging server takes this long to start, even on a busy machine.
START_S = 180.0
SETTINGS = f"""
shutdown_timeout_s = %(shutdown_timeout_s)g
[engines.media]
threads = 1
max_concurrency = 2
[engines.chat]
family = "{FAMILY}"
operations = ["chat", "free_chat"]
max_concurrency = 2
threads = 1
[engines.chat.options]
max_concurrency = 2
"""


class ServeCommand:
    """Starts, calls, kills and checks the process of one server.

    Args:
        folder: The folder of its home, store and temporary files.
        settings: More lines of the settings, or with `whole` all of them.
        shutdown_timeout_s: How long work may continue after a signal to stop.
        whole: Whether `settings` is the complete file.
    """

    def __init__(
        self,
        folder: Path,
        settings: str = "",
        *,
        shutdown_timeout_s: float = 10,
        whole: bool = False,
    ) -> None:
        self.folder = folder
        self.store = folder / "state" / "polymux" / "server"
        self.temporary = folder / "tmp"
        self.temporary.mkdir(parents=True, exist_ok=True)
        self.settings = folder / "polymux.toml"
        head, _, engines = (SETTINGS % {"shutdown_timeout_s": shutdown_timeout_s}).partition(
            "[engines.media]"
        )
        own = settings if whole else f"{head}{settings}\n[engines.media]{engines}"
        self.settings.write_text(own)
        self.process: subprocess.Popen[bytes] | None = None
        #: Whether tracebacks are allowed, such as asyncio's if descriptors run out.
        self.defects = False
        self.log: list[str] = []
        self.url = ""
        self.port = 0

    @property
    def environment(self) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("POLYMUX")}
        return kept | {
            "HOME": str(self.folder),
            "XDG_STATE_HOME": str(self.folder / "state"),
            "TMPDIR": str(self.temporary),
            "PYTHONPATH": str(TESTS),
        }

    def start(
        self,
        *,
        port: int = 0,
        before: Sequence[str] = (),
        environment: Mapping[str, str] | None = None,
        ready: bool = True,
        arguments: Sequence[str] = (),
        **options: Any,
    ) -> Self:
        """Start it, and wait until it serves.

        Args:
            port: The port; 0 for any free port.
            before: A command that runs the server.
            environment: Replaces its environment.
            ready: Whether to wait.
            arguments: Extra command-line arguments.
            options: Options of `subprocess.Popen`.
        """
        command = [*before, sys.executable, "-m", "polymux", "serve", "--port", str(port),
                   "--config", str(self.settings), *arguments]  # fmt: skip
        plain: dict[str, Any] = {
            "stdin": subprocess.DEVNULL,
            "stdout": subprocess.DEVNULL,
            "stderr": subprocess.PIPE,
            "env": self.environment if environment is None else dict(environment),
        }
        self.process = subprocess.Popen(command, **(plain | options))
        self._serving = threading.Event()
        if self.process.stderr is not None:
            reader = threading.Thread(target=self._read, args=(self.process.stderr,), daemon=True)
            reader.start()
            self._reader = reader
        if ready:
            assert self._serving.wait(START_S), self.log_text
            assert self.url, self.log_text
        return self

    def _read(self, pipe: Any) -> None:
        for line in pipe:
            text = line.decode("utf-8", "replace").rstrip()
            self.log.append(text)
            if found := re.match(r"polymux: [^:]* (https?://[^\s;]+)", text):
                self.url = found[1]
                self.port = int(self.url.rpartition(":")[2])
                self._serving.set()
        self._serving.set()
        pipe.close()

    @property
    def log_text(self) -> str:
        return "\n".join(self.log)

    @property
    def key(self) -> str:
        """The key that the server made for this account."""
        path = self.folder / "state" / "polymux" / "local-key"
        return path.read_text().split()[0]

    @property
    def address(self) -> tuple[str, int]:
        return "127.0.0.1", self.port

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def signal(self, number: int) -> None:
        assert self.process is not None
        self.process.send_signal(number)

    def wait(self, max_s: float = 60) -> int:
        assert self.process is not None
        status = self.process.wait(max_s)
        if self.process.stderr is not None:
            self._reader.join(5)
        return status

    def kill(self) -> None:
        """Kill it with SIGKILL, like the kernel does when memory runs out."""
        self.signal(signal.SIGKILL)
        self.wait()

    def stop(self) -> int:
        self.signal(signal.SIGTERM)
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self.process is None:
            return
        with suppress(ProcessLookupError):
            self.process.kill()
        self.wait()
        if kind is None:
            # I2, I4, I7: no process is left, and the log contains no key.
            path = self.folder / "state" / "polymux" / "local-key"
            keys = path.read_text().split()[:1] if path.exists() else ()
            check_log(self.log_text, keys, defects=self.defects)
            assert comes_true(lambda: not self.family()), self.family()

    def family(self) -> list[int]:
        """The processes of this server and their children, recognized by their home directory."""
        mark = f"HOME={self.folder}".encode()
        found = []
        for one in Path("/proc").iterdir():
            with suppress(OSError, ValueError):
                pid = int(one.name)
                if pid not in (os.getpid(), self.pid) and mark in (
                    one / "environ"
                ).read_bytes().split(b"\0"):
                    found.append(pid)
        return found

    def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        headers: Sequence[tuple[str, str]] = (),
        *,
        timeout_s: float = 60,
        key: str | None = None,
        on_head: Callable[[], object] = lambda: None,
    ) -> Answer:
        """Send one request on a new connection.

        Args:
            on_head: Called after the head of the answer; a stream sends it with its first piece.
        """
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        with closing(connection):
            own = {"Authorization": f"Bearer {key or self.key}", "Connection": "close"}
            connection.request(method, path, body, own | dict(headers))
            answer = connection.getresponse()
            on_head()
            data = answer.read()
            header_lines = [f"{name}: {value}" for name, value in answer.getheaders()]
            fields = {name.lower(): value for name, value in answer.getheaders()}
            found = Answer(answer.status, fields, data, header_lines)
            secrets = (own["Authorization"].removeprefix("Bearer "), str(self.store))
            check_answer(found, f"{method} {path}\r\n".encode() + (body or b""), secrets)
            return found

    def chat(self, what: str, on_head: Callable[[], object] = lambda: None, **more: Any) -> Answer:
        value = {"model": "default", "messages": [{"role": "user", "content": what}], **more}
        headers = [("Content-Type", "application/json")]
        path = "/api/v1/fastllm/chatcompletion"
        body = json.dumps(value).encode()
        return self.request("POST", path, body, headers, on_head=on_head)

    def paint(self, what: str, *headers: tuple[str, str]) -> Answer:
        """Submit an image job whose prompt contains instructions for the engine."""
        own = [("Content-Type", "application/json"), *headers]
        body = json.dumps({"prompt": what}).encode()
        return self.request("POST", "/api/v1/modelhost/imagegeneration", body, own)

    def convert(self, data: bytes, *headers: tuple[str, str], **fields: str) -> Answer:
        body, own = form(("file", ("a.wav", data)), *fields.items())
        return self.request("POST", "/api/v1/convert2mp3", body, [*own, *headers])

    def readiness(self) -> Any:
        return self.request("GET", "/readyz").json()

    def metric(self, name: str, backend: str) -> float:
        text = self.request("GET", "/metrics").body.decode()
        (line,) = (
            one for one in text.splitlines() if one.startswith(f'{name}{{backend="{backend}"}}')
        )
        return float(line.split()[-1])
