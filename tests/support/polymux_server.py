"""A polymux server in this process: real sockets, the whole application."""

from __future__ import annotations

import json
import socket
import ssl
import struct
import threading
import urllib.parse
import urllib.request
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from polymux.runtime.settings import Limits, StoreSettings
from polymux.server.auth.api_keys import KeyFile
from polymux.server.run import serve
from polymux.server.settings.settings import ServerSettings

from support.invariants import InProcess, check_answer

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

    from polymux.service.backend import Backend

    from support.services import Scripted

CHAT = "/api/v1/fastllm/chatcompletion"
CONVERT = "/api/v1/convert2mp3"
HELLO = {"model": "default", "messages": [{"role": "user", "content": "Hi"}]}


class Box:
    """Holds the backend that the server's thread creates."""

    backend: Scripted

    def makes(self, *, hold: bool = False, max_concurrency: int = 4, **changes: Any) -> Any:
        """A function that creates the backend; with `hold` its work waits for `gate`."""

        def make() -> list[Scripted]:
            from support.services import Scripted

            self.backend = Scripted(max_concurrency=max_concurrency)
            for name, value in changes.items():
                setattr(self.backend, name, value)
            if hold:
                self.backend.gate.clear()
            return [self.backend]

        return make


@dataclass
class Answer:
    """An answer, read from a plain socket."""

    status: int
    headers: dict[str, str]
    body: bytes
    lines: list[str] = field(default_factory=list)

    def json(self) -> Any:
        return json.loads(self.body)


class Asked:
    """A server with a URL and a key, to which tests send raw requests over sockets."""

    url: str
    key: str
    answer_within_s = 60.0
    #: Whether another application serves beside polymux.
    is_hosted = False

    @property
    def secrets(self) -> tuple[str, ...]:
        return (self.key,)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").rpartition(":")
        return host, int(port)

    def connect(self) -> socket.socket:
        return socket.create_connection(self.address, self.answer_within_s)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] = (),
        *,
        key: str | None = "",
    ) -> Answer:
        return self.raw(self.written(method, path, body, headers, key=key))

    def written(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Sequence[tuple[str, str]] = (),
        *,
        key: str | None = "",
        close: bool = True,
    ) -> bytes:
        given = {name.lower() for name, _ in headers}
        lines = [f"{method} {path} HTTP/1.1"]
        if "host" not in given:
            lines.append(f"Host: {self.address[0]}:{self.address[1]}")
        if key is not None and "authorization" not in given:
            lines.append(f"Authorization: Bearer {key or self.key}")
        if body and "content-length" not in given and "transfer-encoding" not in given:
            lines.append(f"Content-Length: {len(body)}")
        lines += [f"{name}: {value}" for name, value in headers]
        if close:
            lines.append("Connection: close")
        return "\r\n".join([*lines, "", ""]).encode("latin-1") + body

    def raw(self, data: bytes, *, half_close: bool = False) -> Answer:
        """Send bytes and read until the connection is closed."""
        with self.connect() as connection:
            try:
                connection.sendall(data)
                if half_close:
                    connection.shutdown(socket.SHUT_WR)
            except (BrokenPipeError, ConnectionResetError):
                pass
            answer = read_answer(connection)
        check_answer(answer, data, self.secrets, hosted=self.is_hosted)
        return answer

    def json(
        self, path: str, value: Any, headers: Sequence[tuple[str, str]] = (), **more: Any
    ) -> Answer:
        return self.raw(self.written_json(path, value, headers, **more))

    def written_json(
        self, path: str, value: Any, headers: Sequence[tuple[str, str]] = (), **more: Any
    ) -> bytes:
        body = value if isinstance(value, bytes) else json.dumps(value).encode()
        fields = [("Content-Type", "application/json"), *headers]
        return self.written("POST", path, body, fields, **more)

    def convert(
        self, *headers: tuple[str, str], data: bytes = b"x", name: str = "a.wav", **more: Any
    ) -> Answer:
        body, kind = form(("file", (name, data)))
        return self.ask("POST", CONVERT, body, [*kind, *headers], **more)

    def link(self) -> str:
        """Convert a file and return the path of its link."""
        return str(self.convert().json()["response"]).removeprefix(self.url)


class PolymuxServer(Asked):
    """Runs a server on a thread. The end of the context stops it."""

    def __init__(
        self,
        folder: Path,
        make: Callable[[], Sequence[Backend]] | None = None,
        *,
        limits: Limits | None = None,
        **settings: Any,
    ) -> None:
        self._before = InProcess()
        self.settings = replace(
            ServerSettings(),
            port=0,
            store=StoreSettings(folder),
            limits=limits or Limits(),
            **settings,
        )
        self.keys = KeyFile(self.settings.key_file)
        self.key, _ = self.keys.add("test")
        self._first_key = self.key
        self._make = make
        self._ready = threading.Event()
        self._failure: BaseException | None = None
        self.url = ""
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            backends = None if self._make is None else self._make()
            serve(self.settings, backends=backends, on_ready=self._tell)
        except BaseException as error:
            self._failure = error
        finally:
            self._ready.set()

    def _tell(self, server: Any, address: str) -> None:
        self.server = server
        self.state = server._state
        self.loop = __import__("asyncio").get_running_loop()
        self.url = address
        self._ready.set()

    def expect_defects(self) -> None:
        """Allow tracebacks from here on, because the test provokes a crash."""
        self._before.expect_defects()

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.key, self._first_key, str(self.settings.store.folder)

    def __enter__(self) -> Self:
        self._before.begin()
        self._thread.start()
        assert self._ready.wait(60)
        if self._failure is not None:
            raise self._failure
        return self

    def stop(self) -> None:
        """Stop it as by SIGTERM."""
        import signal

        self.loop.call_soon_threadsafe(self.server.handle_exit, signal.SIGTERM, None)

    def _is_well(self) -> bool:
        """Check the health at the listening address; the public URL may be a proxy's."""
        here = self.state.settings
        scheme = "https" if here.tls_cert else "http"
        request = urllib.request.Request(
            f"{scheme}://127.0.0.1:{here.port}/healthz", headers={"Host": self._host()}
        )
        trusting = ssl._create_unverified_context()  # a self-signed certificate
        directly = urllib.request.build_opener(
            urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=trusting)
        )
        with directly.open(request, timeout=60) as answer:
            return bool(answer.status == 200)

    def _host(self) -> str:
        return urllib.parse.urlsplit(self.url).netloc

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._thread.is_alive():
            try:
                if kind is None and not self.state.stopping.is_set():
                    # I3: the server serves the next request.
                    assert self._is_well()
            finally:
                self.stop()
                self._thread.join(60)
        self._before.end()
        assert not self._thread.is_alive()
        if self._failure is not None:
            raise self._failure
        if kind is None:
            self._before.check(self.settings.store.folder, (self.key, self._first_key))


def begun(
    address: tuple[str, int],
    key: str,
    path: str,
    body: bytes,
    headers: Sequence[tuple[str, str]],
    sent: int | None = None,
) -> socket.socket:
    """A connection with a started POST: the head, and the first `sent` bytes of the body or all."""
    lines = [f"POST {path} HTTP/1.1", "Host: {}:{}".format(*address),
             f"Authorization: Bearer {key}", f"Content-Length: {len(body)}",
             *(f"{name}: {value}" for name, value in headers), "", ""]  # fmt: skip
    connection = socket.create_connection(address, 60)
    connection.sendall("\r\n".join(lines).encode() + body[:sent])
    return connection


def read_answer(connection: socket.socket) -> Answer:
    return parsed(read_all(connection))


def read_all(connection: socket.socket) -> bytes:
    pieces = []
    with suppress(ConnectionResetError):
        while piece := connection.recv(65536):
            pieces.append(piece)
    return b"".join(pieces)


def read_until(connection: socket.socket, end: bytes) -> bytes:
    data = b""
    while end not in data:
        piece = connection.recv(65536)
        assert piece, data
        data += piece
    return data


def reset_at_close(connection: socket.socket) -> None:
    """Make closing this connection send a reset."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def parsed(data: bytes) -> Answer:
    while data.startswith(b"HTTP/1.1 100"):
        data = data.partition(b"\r\n\r\n")[2]
    if not data:
        return Answer(0, {}, b"")
    head, _, body = data.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    headers = {
        name.lower(): value.strip() for name, _, value in (one.partition(":") for one in lines)
    }
    if headers.get("transfer-encoding") == "chunked":
        body = unchunked(body)
    return Answer(int(first.split()[1]), headers, body, lines)


def unchunked(data: bytes) -> bytes:
    """Decode a chunked body in linear time."""
    pieces = []
    place = 0
    while place < len(data):
        end = data.find(b"\r\n", place)
        end = len(data) if end < 0 else end
        length = int(data[place:end] or b"0", 16)
        if length == 0:
            break
        pieces.append(data[end + 2 : end + 2 + length])
        place = end + 2 + length + 2
    return b"".join(pieces)


def form(
    *fields: tuple[str, Any], boundary: str = "bbbb", end: bool = True
) -> tuple[bytes, list[tuple[str, str]]]:
    """A form body and its header. A value is a text or (file name, bytes[, type])."""
    parts = []
    for name, value in fields:
        head = f'Content-Disposition: form-data; name="{name}"'
        data = value
        if isinstance(value, tuple):
            head += f'; filename="{value[0]}"\r\nContent-Type: ' + (
                value[2] if len(value) > 2 else "application/octet-stream"
            )
            data = value[1]
        data = data.encode() if isinstance(data, str) else data
        parts.append(f"--{boundary}\r\n{head}\r\n\r\n".encode() + data + b"\r\n")
    if end:
        parts.append(f"--{boundary}--\r\n".encode())
    return b"".join(parts), [("Content-Type", f"multipart/form-data; boundary={boundary}")]
