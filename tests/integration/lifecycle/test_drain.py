"""SIGTERM and Ctrl-C during work: all clients get responses in time. Case IDs: testing.md."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.hostile_flac import silence
from support.kill_rounds import JOBS, sound
from support.polymux_server import CONVERT, Answer, begun, form
from support.serve_command import ServeCommand
from support.server_process import until

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

GRACE_S = 3.0
#: Tolerance for slow machines. The specified limit is one second.
SLACK_S = 20.0
SLOTS = """
[engines.media]
threads = 1
max_concurrency = 1
[engines.painter]
family = "support.faulty_engine:FaultyEngine"
operations = ["generate_image"]
max_concurrency = 1
threads = 1
[engines.chat]
family = "support.faulty_engine:FaultyEngine"
operations = ["chat", "free_chat"]
max_concurrency = 24
threads = 1
[engines.chat.options]
max_concurrency = 24
[engines.narrow]
family = "support.faulty_engine:FaultyEngine"
operations = ["free_chat"]
max_concurrency = 1
threads = 1
[routes]
chat = ["chat"]
free_chat = ["narrow"]
"""


def started(folder: Path, shutdown_timeout_s: float) -> ServeCommand:
    return ServeCommand(
        folder, f"shutdown_timeout_s = {shutdown_timeout_s}\n{SLOTS}", whole=True
    ).start()


@pytest.fixture
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(40) as made:
        yield made


def free_chat(program: ServeCommand, what: str) -> Answer:
    headers = [("Content-Type", "application/json")]
    body = f'{{"messages": [{{"role": "user", "content": "{what}"}}]}}'.encode()
    return program.request("POST", "/api/v1/freellm", body, headers)


def is_refused(answer: Answer) -> bool:
    assert answer.status == 503, (answer.status, answer.body[:300])
    assert answer.json()["code"] == "draining"
    return int(answer.headers["retry-after"]) >= 1


def streaming(
    program: ServeCommand, pool: ThreadPoolExecutor, what: str, count: int
) -> list[Future[Answer]]:
    """Start streams and wait until all begin. An earlier stop would be reported as a status."""
    answered: list[bool] = []

    def begin() -> Answer:
        return program.chat(what, on_head=lambda: answered.append(True), stream=True)

    streams = [pool.submit(begin) for _ in range(count)]
    until(lambda: len(answered) == count, 30)
    return streams


def test_streams_calls_jobs_and_queues(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """Each stream ends with an event and each call with a response. The exit code is 0 by the
    shutdown timeout (P01).

    One engine ignores cancellation, and a conversion would take minutes.
    """
    with started(tmp_path, GRACE_S) as program:
        assert program.chat("echo x").status == 200
        streams = streaming(program, pool, "endless 0.05", 12)
        short = [pool.submit(program.chat, "deaf 2") for _ in range(2)]
        long = [pool.submit(program.chat, "deaf 60") for _ in range(2)]
        until(lambda: program.metric("polymux_running", "chat") == 16)
        waiting = [pool.submit(free_chat, program, "freeze") for _ in range(4)]
        prefer = ("Prefer", "respond-async")
        jobs = [program.paint("deaf 60", prefer).json()["id"] for _ in range(2)]
        blocked = [pool.submit(program.paint, "paint 1") for _ in range(2)]
        blocked.append(pool.submit(program.convert, silence(3.9)))
        until(lambda: program.metric("polymux_waiting", "painter") == 3)
        until(lambda: program.metric("polymux_waiting", "narrow") == 3)
        until(lambda: program.metric("polymux_running", "media") == 1)
        began = time.monotonic()
        program.signal(signal.SIGTERM)
        for one in streams:
            body = one.result(60).body
            assert b'"code":"draining"' in body.splitlines()[-2]
            assert b"[DONE]" not in body
        assert time.monotonic() - began < SLACK_S
        # The server still accepts connections, because clients may ask for the status of their
        # jobs.
        assert is_refused(program.chat("echo x"))
        assert is_refused(program.convert(b"x" * 1000))
        assert program.request("GET", "/readyz").status == 503
        assert program.request("GET", f"{JOBS}/{jobs[0]}").json()["status"] == "processing"
        assert all(one.result(60).status == 200 for one in short)
        assert all(is_refused(one.result(60)) for one in (*long, *waiting, *blocked))
        assert program.wait() == 0, program.log_text
        took = time.monotonic() - began
        assert GRACE_S - 0.2 < took < GRACE_S + SLACK_S
        assert program.family() == []
        assert "Traceback" not in program.log_text, program.log_text[-3000:]
        assert list((program.store / "drafts").iterdir()) == []
        assert list((program.store / "media").glob("*/*")) == []
        program.start()
        for job in jobs:
            found = program.request("GET", f"{JOBS}/{job}").json()
            assert (found["status"], found.get("output")) == ("failed", None)
        # All five jobs failed because of the shutdown, including those whose clients were still
        # connected.
        listed = program.request("GET", JOBS).json()["results"]
        assert [one["status"] for one in listed] == ["failed"] * 5


def test_a_second_signal_ends_it_at_once(tmp_path: Path, pool: ThreadPoolExecutor) -> None:
    """Ends at once, whatever is running, including engines that do not stop (P02)."""
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
        program.signal(signal.SIGTERM)
        time.sleep(0.5)
        assert program.process is not None
        assert program.process.poll() is None
        began = time.monotonic()
        program.signal(signal.SIGINT)
        assert program.wait() == 130, program.log_text
        assert time.monotonic() - began < SLACK_S
        until(lambda: not program.family(), 30)
        for one in calls:
            one.result(30)
        assert "Traceback" not in program.log_text, program.log_text[-3000:]
        program.start()
        assert program.request("GET", f"{JOBS}/{job}").json()["status"] == "failed"


def upload(program: ServeCommand) -> tuple[socket.socket, bytes]:
    """A form of which one half is sent, and its other half."""
    body, headers = form(("file", ("a.wav", bytes(2_000_000))))
    headers.append(("Connection", "close"))
    half = len(body) // 2
    return begun(program.address, program.key, CONVERT, body, headers, half), body[half:]


def test_uploads_under_way(tmp_path: Path) -> None:
    """A completed upload gets an error response. An incomplete one is disconnected."""
    with started(tmp_path, 2) as program:
        ending, rest = upload(program)
        stuck, _ = upload(program)
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
        assert "Traceback" not in program.log_text, program.log_text[-3000:]


def test_a_restart_in_the_middle_of_an_upload(tmp_path: Path) -> None:
    """The client retries and sends the whole file (P13)."""
    # Large enough that half of it is reported before all of it is sent, and that its conversion
    # takes longer than the server waits for it.
    data = sound(180, 3)
    source = tmp_path / "a.wav"
    source.write_bytes(data)
    half, stopped = threading.Event(), threading.Event()

    def on_upload(done: int, _: int | None) -> None:
        if done > len(data) // 2 and not half.is_set():
            half.set()
            stopped.wait(60)

    with ServeCommand(tmp_path, shutdown_timeout_s=0.1) as program, ThreadPoolExecutor(1) as one:
        program.start()

        def convert() -> bytes:
            retry = polymux.Retry(60, first_backoff_s=0.5, max_backoff_s=2)
            with polymux.Client(program.url, program.key, retry=retry, timeout=120) as client:
                return client.convert_to_mp3(source, on_upload=on_upload).read()

        made = one.submit(convert)
        assert half.wait(60)
        assert program.stop() == 0, program.log_text
        stopped.set()
        program.start(port=program.port)
        assert made.result(120) == polymux.convert_to_mp3(data).read()
        assert list((program.store / "drafts").iterdir()) == []


LAST_RESORT = """
import sys, time
from polymux.server.run import ShutdownWatchdog
last = ShutdownWatchdog(0.3)
for one in sys.argv[2:]:
    last.close() if one == "close" else last.notify(int(one))
time.sleep(int(sys.argv[1]))
print("alive")
"""


@pytest.mark.parametrize(
    ("arguments", "status"),
    [(("0", "143", "130"), 143), (("0", "close"), None)],
)
def test_what_hangs_is_left(arguments: tuple[str, ...], status: int | None) -> None:
    """A process that hangs is killed. The watchdog does nothing after the server has closed."""
    hangs_s = "1" if status is None else "60"
    made = subprocess.run(
        [sys.executable, "-c", LAST_RESORT, hangs_s, *arguments],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert made.returncode == (status or 0), made.stderr
    assert (made.stdout == "alive\n") == (status is None)
