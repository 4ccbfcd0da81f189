"""SIGTERM and Ctrl-C with work under way: everybody is told, and the process is gone in time."""

from __future__ import annotations

import signal
import socket
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
from support.hostile_flac import silence
from support.kill_rounds import JOBS, sound
from support.polymux_server import CONVERT, Answer, form
from support.served import until
from support.serving import ServedProgram

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

GRACE_S = 3.0
#: For a slow machine; the contract has a second.
SLACK_S = 5.0
SLOTS = """
[engines.media]
threads = 1
max_concurrency = 1
[engines.painter]
family = "support.engines:FaultyEngine"
operations = ["generate_image"]
max_concurrency = 1
threads = 1
[engines.chat]
family = "support.engines:FaultyEngine"
operations = ["chat", "free_chat"]
max_concurrency = 24
threads = 1
[engines.chat.options]
max_concurrency = 24
[engines.narrow]
family = "support.engines:FaultyEngine"
operations = ["free_chat"]
max_concurrency = 1
threads = 1
[routes]
chat = ["chat"]
free_chat = ["narrow"]
"""


def started(folder: Path, shutdown_timeout_s: float) -> ServedProgram:
    return ServedProgram(
        folder, f"shutdown_timeout_s = {shutdown_timeout_s}\n{SLOTS}", whole=True
    ).start()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(40) as made:
        yield made


def free_chat(program: ServedProgram, what: str) -> Answer:
    headers = [("Content-Type", "application/json")]
    body = f'{{"messages": [{{"role": "user", "content": "{what}"}}]}}'.encode()
    return program.request("POST", "/api/v1/freellm", body, headers)


def is_refused(answer: Answer) -> bool:
    assert answer.status == 503, (answer.status, answer.body[:300])
    assert answer.json()["code"] == "draining"
    return int(answer.headers["retry-after"]) >= 1


def streaming(
    program: ServedProgram, pool: ThreadPoolExecutor, what: str, count: int
) -> list[Future[Answer]]:
    """So many streams, each of which has begun: until then a stop is told by a status."""
    begun: list[bool] = []

    def begin() -> Answer:
        return program.chat(what, on_head=lambda: begun.append(True), stream=True)

    streams = [pool.submit(begin) for _ in range(count)]
    until(lambda: len(begun) == count, 30)
    return streams


def test_streams_calls_jobs_and_queues(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """P01: each stream is ended by an event, each call by an answer; exit 0 by the grace limit."""
    with started(tmp_path, GRACE_S) as program:
        assert program.chat("echo x").status == 200
        streams = streaming(program, pool, "endless", 12)
        short = [pool.submit(program.chat, "deaf 2") for _ in range(2)]
        long = [pool.submit(program.chat, "deaf 60") for _ in range(2)]
        until(lambda: program.metric("polymux_running", "chat") == 16)
        waiting = [pool.submit(free_chat, program, "deaf 60") for _ in range(4)]
        prefer = ("Prefer", "respond-async")
        jobs = [program.paint("deaf 60", prefer).json()["id"] for _ in range(2)]
        blocked = [pool.submit(program.paint, "paint 1") for _ in range(2)]
        until(lambda: program.metric("polymux_waiting", "painter") == 3)
        until(lambda: program.metric("polymux_waiting", "narrow") == 3)
        began = time.monotonic()
        program.signal(signal.SIGTERM)
        for one in streams:
            body = one.result(60).body
            assert b'"code":"draining"' in body.splitlines()[-2]
            assert b"[DONE]" not in body
        assert time.monotonic() - began < SLACK_S
        # The door is open meanwhile, for those who ask what becomes of their jobs.
        assert is_refused(program.chat("echo x"))
        assert is_refused(program.convert(b"x" * 1000))
        assert program.request("GET", "/readyz").status == 503
        assert program.request("GET", f"{JOBS}/{jobs[0]}").json()["status"] == "processing"
        assert all(one.result(60).status == 200 for one in short)
        assert all(is_refused(one.result(60)) for one in (*long, *waiting, *blocked))
        assert program.wait() == 0, program.told
        took = time.monotonic() - began
        assert GRACE_S - 0.2 < took < GRACE_S + SLACK_S
        assert program.family() == []
        assert "Traceback" not in program.told, program.told[-3000:]
        program.start()
        for job in jobs:
            found = program.request("GET", f"{JOBS}/{job}").json()
            assert (found["status"], found.get("output")) == ("failed", None)
        # Those whose callers were still there as well: the server gave them up, not they.
        listed = program.request("GET", JOBS).json()["results"]
        assert [one["status"] for one in listed] == ["failed"] * 4


def test_fifty_streams_and_five_conversions(tmp_path: Path) -> None:
    """P01: no new work is taken; each stream is told, each conversion ends or is told that it was.

    Two conversions are of minutes, three of hours, one of which waits for its turn.
    """
    shutdown_timeout_s = 5.0
    max_concurrency = SLOTS.replace("max_concurrency = 24", "max_concurrency = 50").replace(
        "max_concurrency = 1", "max_concurrency = 4", 1
    )
    settings = f"shutdown_timeout_s = {shutdown_timeout_s}\n{max_concurrency}"
    with (
        ThreadPoolExecutor(60) as pool,  # Outside: its threads end with the server's streams.
        ServedProgram(tmp_path, settings, whole=True).start() as program,
    ):
        streams = streaming(program, pool, "endless 0.2", 50)
        assert program.metric("polymux_running", "chat") == 50
        calls: list[Future[Answer]] = []

        def come() -> float:
            """The last step first: one that goes on meanwhile is not counted twice."""
            found: float = sum(map(Future.done, calls))
            found += program.metric("polymux_running", "media")
            return found + program.metric("polymux_waiting", "media")

        def are_at_work() -> bool:
            """A slot is no processor: the long ones must not be taken up before the short ones."""
            listed = program.request("GET", JOBS).json()["results"]
            jobs = [program.request("GET", f"{JOBS}/{one['id']}").json() for one in listed]
            return all(one.get("progress") or one.get("completed_at") for one in jobs)

        for hours in (0.2, 0.2, 3.9, 3.9, 3.9):
            calls.append(pool.submit(program.convert, silence(hours)))
            until(lambda: come() >= len(calls), 30)
            if len(calls) == 2:
                until(are_at_work, 30)
        began = time.monotonic()
        program.signal(signal.SIGTERM)
        for one in streams:
            lines = one.result(60).body.splitlines()
            assert lines[0].startswith(b"data: ")
            assert b'"code":"draining"' in lines[-2]
            assert b"data: [DONE]" not in lines
        assert time.monotonic() - began < SLACK_S
        assert is_refused(program.chat("echo x"))
        assert is_refused(program.convert(b"x" * 1000))
        made = [one.result(60) for one in calls]
        assert [one.status for one in made[:2]] == [200, 200]
        assert all(one.status == 200 or is_refused(one) for one in made)
        assert program.wait() == 0, program.told
        assert time.monotonic() - began < shutdown_timeout_s + SLACK_S
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", program.port), 5)
        assert program.family() == []
        assert list((program.store / "drafts").iterdir()) == []
        kept = list((program.store / "media").glob("*/*"))
        assert len(kept) == sum(one.status == 200 for one in made)


def test_with_nothing_to_do_it_is_gone_at_once(program: ServedProgram) -> None:
    program.start()
    assert program.chat("echo x").status == 200
    with socket.create_connection(("127.0.0.1", program.port), 10) as idle:
        began = time.monotonic()
        assert program.stop() == 0, program.told
        assert time.monotonic() - began < SLACK_S
        assert idle.recv(10) == b""
    assert program.family() == []


def test_callers_who_come_in_the_moment_of_stopping(program: ServedProgram) -> None:
    """Who is taken up while the door is shut says nothing, and holds nobody up."""
    program.start()
    come: list[socket.socket] = []
    shut = threading.Event()

    def knock() -> None:
        while not shut.is_set() and len(come) < 400:
            with suppress(OSError):
                come.append(socket.create_connection(("127.0.0.1", program.port), 5))
            time.sleep(0.001)

    knocking = threading.Thread(target=knock)
    knocking.start()
    until(lambda: len(come) > 20)
    began = time.monotonic()
    try:
        assert program.stop() == 0, program.told
        assert time.monotonic() - began < SLACK_S
    finally:
        shut.set()
        knocking.join()
        for one in come:
            one.close()


def test_a_job_that_ends_within_the_grace(program: ServedProgram) -> None:
    program.start()
    answer = program.convert(sound(20, 1), ("Prefer", "respond-async"))
    assert answer.status == 202
    assert program.stop() == 0, program.told
    program.start()
    found = program.request("GET", f"{JOBS}/{answer.json()['id']}").json()
    assert found["status"] == "succeeded", found


@pytest.mark.parametrize(
    ("signals", "status"),
    [
        ((signal.SIGTERM, signal.SIGTERM), 143),
        ((signal.SIGINT, signal.SIGINT), 130),
        ((signal.SIGTERM, signal.SIGINT), 130),
    ],
)
def test_a_second_signal_ends_it_at_once(
    tmp_path: Path, pool: ThreadPoolExecutor, signals: tuple[int, int], status: int
) -> None:
    """P02: whatever is under way, and engines that do not stop."""
    with started(tmp_path, 60) as program:

        def broken(call: Any, *arguments: Any) -> bool:
            try:
                call(*arguments)
            except OSError:
                return True
            return False

        calls = [pool.submit(broken, program.chat, "deaf 60") for _ in range(3)]
        calls.append(pool.submit(broken, free_chat, program, "freeze"))
        job = program.paint("deaf 60", ("Prefer", "respond-async")).json()["id"]
        until(lambda: program.metric("polymux_running", "chat") == 3)
        until(lambda: program.metric("polymux_running", "narrow") == 1)
        program.signal(signals[0])
        time.sleep(0.5)
        assert program.process is not None
        assert program.process.poll() is None
        began = time.monotonic()
        program.signal(signals[1])
        assert program.wait() == status, program.told
        assert time.monotonic() - began < SLACK_S
        until(lambda: not program.family(), 2)
        for one in calls:
            one.result(30)
        assert "Traceback" not in program.told, program.told[-3000:]
        program.start()
        assert program.request("GET", f"{JOBS}/{job}").json()["status"] == "failed"


def test_an_engine_that_does_not_stop(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """It hears nothing, and the server ends by its grace all the same."""
    with started(tmp_path, 1) as program:
        call = pool.submit(free_chat, program, "freeze")
        until(lambda: program.metric("polymux_running", "narrow") == 1)
        time.sleep(0.5)
        began = time.monotonic()
        program.signal(signal.SIGTERM)
        assert is_refused(call.result(60))
        assert program.wait() == 0
        assert time.monotonic() - began < 1 + SLACK_S
        assert program.family() == []


def upload(program: ServedProgram, size: int) -> tuple[socket.socket, bytes]:
    """A form of which half was sent, and the other half."""
    body, headers = form(("file", ("a.wav", bytes(size))))
    lines = [f"POST {CONVERT} HTTP/1.1", f"Host: 127.0.0.1:{program.port}",
             f"Authorization: Bearer {program.key}", f"Content-Length: {len(body)}",
             "Connection: close", *(f"{name}: {value}" for name, value in headers),
             "", ""]  # fmt: skip
    connection = socket.create_connection(("127.0.0.1", program.port), 30)
    connection.sendall("\r\n".join(lines).encode() + body[: size // 2])
    return connection, body[size // 2 :]


def test_uploads_under_way(tmp_path: Path) -> None:
    """One that comes to its end is told why it is not taken; one that does not is cut."""
    with started(tmp_path, 2) as program:
        ending, rest = upload(program, 2_000_000)
        stuck, _ = upload(program, 2_000_000)
        drafts = program.store / "drafts"
        until(lambda: len(list(drafts.iterdir())) == 2)
        began = time.monotonic()
        program.signal(signal.SIGTERM)
        time.sleep(0.3)
        ending.sendall(rest)
        head = ending.recv(65536)
        assert b" 503 " in head.splitlines()[0]
        assert b"retry-after: " in head
        ending.close()
        assert program.wait() == 0
        assert time.monotonic() - began < 2 + SLACK_S
        stuck.close()
        assert list(drafts.iterdir()) == []
        assert "Traceback" not in program.told, program.told[-3000:]


def test_a_restart_in_the_middle_of_an_upload(tmp_path: Path) -> None:
    """P13: the client tries again by itself, and the new server has the whole file."""
    import polymux

    data = sound(60, 3)
    with ServedProgram(tmp_path, shutdown_timeout_s=0.5) as program:
        program.start()
        half = threading.Event()

        class Slow:
            """A file that is read slowly the first time."""

            name = "a.wav"

            def __init__(self) -> None:
                self.at = 0

            def read(self, size: int = -1) -> bytes:
                if self.at > len(data) // 2 and not half.is_set():
                    half.set()
                    time.sleep(2)
                size = len(data) if size < 0 else min(size, 65536)
                piece = data[self.at : self.at + size]
                self.at += len(piece)
                return piece

            def seek(self, at: int, whence: int = 0) -> int:
                self.at = at + (len(data) if whence == 2 else 0)
                return self.at

            def tell(self) -> int:
                return self.at

            def seekable(self) -> bool:
                return True

        retry = polymux.Retry(8, first_backoff_s=0.5)
        with (
            polymux.Client(program.url, program.key, retry=retry, timeout=120) as client,
            ThreadPoolExecutor(1) as one,
        ):
            made = one.submit(client.convert_to_mp3, ("a.wav", Slow()))
            assert half.wait(30)
            program.signal(signal.SIGTERM)
            assert program.wait() == 0
            program.start(port=program.port)
            assert made.result(120).read() == polymux.convert_to_mp3(data).read()


@pytest.mark.parametrize(
    "size_bytes",
    [64 << 20, pytest.param(1 << 30, marks=[pytest.mark.long, pytest.mark.slow])],
)
def test_a_restart_in_the_middle_of_a_large_upload(tmp_path: Path, size_bytes: int) -> None:
    """P13: of 64 MiB, 1 GiB with --long; tried again by itself, or a failure of its own class."""
    import polymux

    engine = """
shutdown_timeout_s = 0.5
[engines.media]
family = "support.engines:FaultyEngine"
operations = ["convert_to_mp3"]
"""
    with ServedProgram(tmp_path, engine, whole=True) as program:
        program.start()
        sent = threading.Event()
        stopped = threading.Event()

        def on_upload(done: int, _: int | None) -> None:
            if done > size_bytes // 2 and not sent.is_set():
                sent.set()
                stopped.wait(60)

        def convert(retry: Any) -> Any:
            with polymux.Client(program.url, program.key, retry=retry, timeout=300) as client:
                return client.convert_to_mp3(source, on_upload=on_upload)

        source = tmp_path / "file 1000"
        with source.open("wb") as file:
            file.truncate(size_bytes)
        for retry in (0, polymux.Retry(8, first_backoff_s=0.5)):
            sent.clear()
            stopped.clear()
            with ThreadPoolExecutor(1) as one:
                made = one.submit(convert, retry)
                assert sent.wait(60)
                program.signal(signal.SIGTERM)
                assert program.wait() == 0
                stopped.set()
                if retry == 0:
                    failure = made.exception(60)
                    told = (polymux.OverloadedError, polymux.TransportError)
                    assert isinstance(failure, told), failure
                    program.start(port=program.port)
                    continue
                program.start(port=program.port)
                assert len(made.result(300).read()) == 1000
        assert list((program.store / "drafts").iterdir()) == []


LAST_RESORT = """
import sys, time
from polymux.server.run import ShutdownWatchdog
last = ShutdownWatchdog(0.3)
for one in sys.argv[1:]:
    last.close() if one == "close" else last.notify(int(one))
time.sleep(4)
print("alive")
"""


@pytest.mark.parametrize(
    ("told", "status"),
    [(("0",), 0), (("0", "143"), 143), (("0", "143", "130"), 143), (("0", "close"), None),
     (("close",), None), ((), None)],
)  # fmt: skip
def test_what_hangs_is_left(told: tuple[str, ...], status: int | None) -> None:
    """A process that does not end by itself is ended; one whose server has closed goes on."""
    made = subprocess.run(
        [sys.executable, "-c", LAST_RESORT, *told], capture_output=True, text=True, check=False
    )
    assert made.returncode == (status or 0), made.stderr
    assert (made.stdout == "alive\n") == (status is None)
