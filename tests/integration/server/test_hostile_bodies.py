"""Bodies that are expensive to process must not delay other requests or use much memory."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import pytest
from support.hostile_check import PATIENCE
from support.polymux_server import CHAT
from support.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

READ_TEXT = "/api/v1/image2text"
MAX_S = 0.25 * PATIENCE
PROBE_EVERY_S = 0.05
TRIES = 4
MIB = 1 << 20
PART = b'--bbbb\r\nContent-Disposition: form-data; name="%s"%s\r\n\r\n'
FILE = PART % (b"file", b'; filename="a.png"')
END = b"\r\n--bbbb--\r\n"


def _parts(more: bytes) -> bytes:
    """The maximum number of parts, with extra header fields."""
    return b"\r\n".join(PART % (b"a%d" % n, more) + b"x" for n in range(999)) + END


#: Form -> (function that creates it, allowed statuses). Valid forms return 415, because the file is
#: not an image.
FORMS: dict[str, tuple[Callable[[], bytes], tuple[int, ...]]] = {
    "M07, line ends before": (lambda: b"\r\n" * (4 * MIB) + FILE + b"x" + END, (400, 415)),
    "M08, bytes behind": (lambda: FILE + b"x" + END + b"x" * (4 * MIB), (400, 415)),
    "M09, headers": (lambda: b"--bbbb\r\n" + b"a: b\r\n" * 20_000 + b"\r\nx" + END, (400,)),
    "M10, one header": (lambda: b"--bbbb\r\na: " + b"b" * (8 * MIB) + b"\r\n\r\nx" + END, (400,)),
    "M11, parts": (lambda: b"\r\n".join([PART % (b"a", b"")] * 100_000) + END, (400, 413)),
    "many parameters": (lambda: _parts(b"; a=b" * 800), (400,)),
    "many in quotes": (lambda: _parts(b'; b="%s"' % (b";" * 4000)), (400,)),
    "M18, returns": (lambda: FILE + b"\r" * (8 * MIB) + END, (415,)),
    "M18, nearer boundaries": (lambda: FILE + b"\r\n--bbb" * MIB + END, (415,)),
}
DOCUMENTS: dict[str, tuple[Callable[[], bytes], tuple[int, ...]]] = {
    "J07, a number": (lambda: b'{"max_tokens":%s}' % (b"9" * MIB), (400,)),
    "J08, objects": (lambda: b'{"a":' * MIB, (400,)),
    "J14, messages": (lambda: b'{"messages":[%s]}' % b",".join([b"{}"] * 1_000_000), (400, 413)),
    "J14, keys": (
        lambda: b"{%s}" % b",".join(b'"%d":1' % number for number in range(1_000_000)), (400, 413),
    ),
    "escapes": (lambda: b'{"model":"%s"}' % (rb"\u00e9" * (4 * MIB)), (400, 413)),
}  # fmt: skip


@pytest.fixture(scope="module")
def forms(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A separate server process. Its memory is checked at the end."""
    with ServerProcess(tmp_path_factory.mktemp("forms")) as running:
        yield running


@pytest.fixture(scope="module")
def documents(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A chat of up to 32 MiB is in memory three times: as received, joined and parsed."""
    with ServerProcess(tmp_path_factory.mktemp("documents"), more_bytes=192 * MIB) as running:
        yield running


class Probe(threading.Thread):
    """Repeatedly requests the server's health.

    Attributes:
        max_s: The longest response time in seconds.
    """

    def __init__(self, server: ServerProcess) -> None:
        super().__init__(daemon=True)
        self._server = server
        self._ended = threading.Event()
        self.max_s = 0.0

    def run(self) -> None:
        while not self._ended.wait(PROBE_EVERY_S):
            began = time.monotonic()
            assert self._server.ask("GET", "/healthz", key=None).status == 200
            self.max_s = max(self.max_s, time.monotonic() - began)

    def end(self) -> float:
        self._ended.set()
        self.join()
        return self.max_s


def harmless(
    server: ServerProcess, path: str, kind: str, body: bytes, statuses: tuple[int, ...]
) -> None:
    """Send the body and check that other requests are not delayed. Tries several times, because
    other programs may cause delays.
    """
    waited = []
    for _ in range(TRIES):
        probe = Probe(server)
        probe.start()
        answer = server.ask("POST", path, body, [("Content-Type", kind)])
        waited.append(probe.end())
        assert answer.status in statuses, answer.body
        if waited[-1] <= MAX_S:
            return
    raise AssertionError(f"others waited for {waited} s")


@pytest.mark.parametrize("name", FORMS)
def test_forms(forms: ServerProcess, name: str) -> None:
    make, statuses = FORMS[name]
    harmless(forms, READ_TEXT, "multipart/form-data; boundary=bbbb", make(), statuses)


@pytest.mark.parametrize("name", DOCUMENTS)
def test_documents(documents: ServerProcess, name: str) -> None:
    make, statuses = DOCUMENTS[name]
    harmless(documents, CHAT, "application/json", make(), statuses)
