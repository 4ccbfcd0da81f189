"""A server suspended, short of resources, or with only bad requests. Case IDs: testing.md."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.hostile_flac import silence
from support.kill_rounds import JOBS, sound
from support.serve_command import ServeCommand
from support.server_process import until
from support.unprivileged import anybody

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

NOBODY = 64_322


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeCommand]:
    """A running server that these tests must not stop."""
    settings = "limits = { header_s = 1.0 }"
    with ServeCommand(tmp_path_factory.mktemp("shared"), settings) as program:
        program.start()
        assert program.chat("echo x").status == 200
        yield program
        assert program.stop() == 0
        assert "Traceback" not in program.log_text


def status_of(pid: int, name: str) -> int:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1])
    return 0  # The process is just ending.


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


@contextmanager
def limited(pid: int, name: str, most: int) -> Iterator[None]:
    """Temporarily limit a resource of a process, as its own user."""
    user = Path(f"/proc/{pid}").stat().st_uid
    own = (programs.find("prlimit"), f"--pid={pid}")
    if user != os.geteuid():
        own = (programs.find("setpriv"), f"--reuid={user}", f"--regid={user}", "--clear-groups",
               *own)  # fmt: skip
    columns = ("--noheadings", "--output=SOFT", f"--{name}")
    before = programs.run(*own, *columns).stdout.decode().split()[0]
    programs.run(*own, f"--{name}={most}:")
    yield
    programs.run(*own, f"--{name}={before}:")


def test_stopped_for_a_while(shared: ServeCommand) -> None:
    """Running work continues, engines are not considered dead, and deadlines have passed (P04)."""
    engines = set(shared.family())
    with ThreadPoolExecutor(2) as pool:
        stream = pool.submit(shared.chat, "stream 20", stream=True)
        job = shared.convert(sound(20, 1), ("Prefer", "respond-async")).json()["id"]
        slow = socket.create_connection(shared.address, 30)
        slow.sendall(b"POST /api/v1/convert2mp3 HTTP/1.1\r\nHost: local")
        shared.signal(signal.SIGSTOP)
        waiting = pool.submit(shared.chat, "echo y")
        time.sleep(1.5)
        shared.signal(signal.SIGCONT)
        assert waiting.result(30).json()["text"] == "y"
        assert b"[DONE]" in stream.result(30).body
    with slow:
        assert b" 408 " in slow.recv(1000)
    until(lambda: shared.request("GET", f"{JOBS}/{job}").json()["status"] == "succeeded", 60)
    assert engines <= set(shared.family()), "an engine was ended that was well"


def recovers(program: ServeCommand) -> None:
    """Check that it accepts new requests of all kinds."""

    def works(ask: Callable[[], object]) -> Callable[[], bool]:
        def done() -> bool:
            with suppress(OSError, http.client.HTTPException):
                return getattr(ask(), "status", 0) == 200
            return False

        return done

    until(works(lambda: program.chat("echo x")), 60)
    until(works(lambda: program.convert(sound(0.1, 1))), 60)


def test_no_engine_can_be_started(program: ServeCommand) -> None:
    """No file descriptor is left for an engine: 503, which is not counted as a crash (P05)."""
    program.start()
    assert program.chat("echo x").status == 200
    most = descriptors(program.pid) + 3
    with limited(program.pid, "nofile", most):
        for _ in range(5):
            answer = program.convert(sound(0.1, 1))
            assert answer.status == 503, answer.body
            assert answer.json()["code"] in ("overloaded", "store_failed")
            assert int(answer.headers["retry-after"]) >= 1
    assert program.convert(sound(0.1, 1)).status == 200
    assert program.readiness()["backends"]["media"]["state"] == "ready"


def test_few_threads(program: ServeCommand) -> None:
    """No thread can be started. The limit counts all threads of a user (P05)."""
    before: tuple[str, ...] = ()
    if os.geteuid() == 0:  # The limit does not apply to root.
        (program.folder / "state").mkdir()
        before = anybody(program.folder, NOBODY)
    program.start(before=before)
    assert program.chat("echo x").status == 200
    with limited(program.pid, "nproc", 1), ThreadPoolExecutor(10) as pool:
        answers = list(pool.map(lambda n: program.convert(sound(0.1, n)), range(10)))
        assert {one.status for one in answers} <= {200, 503}, [one.body for one in answers]
        assert 503 in {one.status for one in answers}
    recovers(program)
    assert "Traceback" not in program.log_text, program.log_text[-3000:]


def test_little_memory(program: ServeCommand) -> None:
    """512 MiB of address space for the server and for each engine (P05)."""
    if "san.so" in os.environ.get("LD_PRELOAD", ""):
        return  # Sanitizers reserve terabytes of address space.
    program.start(before=(programs.find("prlimit"), "--as=536870912"))
    assert program.chat("echo x").status == 200
    answer = program.convert(sound(0.1, 1))
    assert answer.status in (200, 500, 503), answer.body
    body = b'{"model": "default", "messages": [{"role": "user", "content": "' + b"x" * (30 << 20)
    with suppress(OSError):
        big = program.request("POST", "/api/v1/fastllm/chatcompletion", body + b'"}]}',
                              [("Content-Type", "application/json")])  # fmt: skip
        assert big.status in (200, 400, 500, 503), big.body[:300]
    assert program.chat("echo y").json()["text"] == "y"
    assert program.stop() == 0


def test_many_failed_requests(shared: ServeCommand) -> None:
    """One log line each, without slowdown or growth (P10)."""
    program = shared
    connection = http.client.HTTPConnection("127.0.0.1", program.port, timeout=30)
    chat = "/api/v1/fastllm/chatcompletion"
    key = {"Authorization": f"Bearer {program.key}", "Content-Type": "application/json"}
    kinds = [
        ("GET", "/nothing", None, {}, 404),
        ("POST", chat, b"{}", {"Content-Type": "application/json"}, 401),
        ("POST", chat, b"{", key, 400),
        ("GET", f"{JOBS}/nothing", None, key, 404),
        ("GET", "/media/" + "0" * 40 + ".mp3", None, {}, 404),
    ]

    def ask(times: int) -> float:
        began = time.monotonic()
        for number in range(times):
            method, path, body, headers, status = kinds[number % len(kinds)]
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            data = answer.read()
            assert (answer.status, data[:9]) == (status, b'{"error":'), data
            if answer.getheader("connection") == "close":
                connection.close()
        return time.monotonic() - began

    with closing(connection):
        first = ask(100)
        memory, lines = status_of(program.pid, "VmRSS"), len(program.log)
        open_ones = descriptors(program.pid)
        ask(300)
        last = ask(100)
        assert status_of(program.pid, "VmRSS") - memory < 8 << 10
        assert last < 5 * first + 5  # Tolerance for other programs on the processors.
        assert abs(descriptors(program.pid) - open_ones) <= 2
    new_lines = program.log[lines:]
    assert 300 < len(new_lines) <= 450
    assert max(map(len, new_lines)) < 300


@pytest.mark.parametrize("count", [10, pytest.param(1000, marks=pytest.mark.long)])
def test_conversions_leave_no_process(shared: ServeCommand, count: int) -> None:
    """Some are canceled. The number of processes, descriptors and threads stays constant (P11)."""
    program = shared
    long, short = silence(3.9), sound(0.1, 2)
    assert program.convert(short).status == 200
    before = set(program.family())
    figures = descriptors(program.pid), status_of(program.pid, "Threads")
    prefer = ("Prefer", "respond-async")
    for number in range(count):
        if number % 5:
            assert program.convert(short).status == 200
            continue
        job = program.convert(long, prefer).json()["id"]
        found = program.request("POST", f"{JOBS}/{job}/cancel").json()
        assert found["status"] == "canceled", found
    assert program.convert(short).status == 200
    until(lambda: len(program.family()) == len(before), 10)
    for pid in (program.pid, *program.family()):
        assert "Z" not in Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    children = Path(f"/proc/{program.pid}/task/{program.pid}/children").read_text().split()
    assert len(children) == len(before)
    assert descriptors(program.pid) <= figures[0] + 3
    assert status_of(program.pid, "Threads") <= figures[1] + 12
    assert list((program.store / "drafts").iterdir()) == []
