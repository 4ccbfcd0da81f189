"""The benchmark of the gateway runs, and the programs that it is made of see what is wrong."""

from __future__ import annotations

import http.client
import json
import socket
import subprocess
import sys
import threading
import time
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.programs import environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from benchmarks.server.sides import Running

ROOT = Path(__file__).resolve().parents[2]
STREAMS, TOKENS, RATE = 3, 5, 100
_FIELDS = {"Content-Type": "application/json"}


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[Running]:
    """The fake upstream."""
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    from benchmarks.gateway.sides import upstream

    with upstream() as server:
        yield server


@contextmanager
def spoiled(port: int, change: Callable[[bytes], bytes]) -> Iterator[int]:
    """A way to a server on which what it says is changed, one connection after the other."""
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def pass_on(caller: socket.socket) -> None:
            with caller, socket.create_connection(("127.0.0.1", port)) as server:
                server.sendall(caller.recv(1 << 16))
                while data := server.recv(1 << 16):
                    caller.sendall(change(data))
                    if data.endswith(b"0\r\n\r\n"):
                        return

        passing: list[threading.Thread] = []

        def serve() -> None:
            with suppress(OSError):  # The listener is closed at the end.
                while True:
                    caller, _ = listener.accept()
                    passing.append(threading.Thread(target=pass_on, args=(caller,), daemon=True))
                    passing[-1].start()

        serving = threading.Thread(target=serve, daemon=True)
        serving.start()
        try:
            yield listener.getsockname()[1]
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            for one in (serving, *passing):
                one.join(10)


def test_the_benchmark_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.gateway", "--quick"], cwd=ROOT, capture_output=True,
        text=True, check=False, timeout=300, env=environment(),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    found = json.loads((ROOT / "build" / "bench" / "gateway-quick.json").read_text())["results"]
    counts = {title: found[title]["polymux"][0]["count"] for title in found}
    assert counts == {
        "200 requests a second": 80,
        "300 requests a second": 80,
        "40 streams of 20 tokens a second": 400,
    }
    (streams,) = found["40 streams of 20 tokens a second"]["polymux"]
    assert (streams["streams"], streams["wrong"]) == (40, 0)
    assert streams["peak_bytes"] >= streams["idle_bytes"] > 0
    assert "As published, and not measured here" in done.stdout
    for goal in ("overhead p50", "overhead p99", "gap off its period", "peak RSS"):
        assert goal in done.stdout


def test_the_upstream_answers_whole_and_on_time(fake: Running) -> None:
    from benchmarks.server.conversation import COMPLETION, body

    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)
    connection.request("POST", "/v1/chat/completions", json.dumps(body()).encode(), _FIELDS)
    assert json.loads(connection.getresponse().read()) == COMPLETION
    texts = []
    for number in (1, 2):
        began_ns = time.monotonic_ns()
        order = body(f"stream {number:06} {TOKENS:06} {RATE:06} {began_ns:020}", stream=True)
        connection.request("POST", "/v1/chat/completions", json.dumps(order).encode(), _FIELDS)
        events = connection.getresponse().read().decode().split("\n\n")
        assert time.monotonic_ns() >= began_ns + TOKENS * 1_000_000_000 // RATE
        assert events[-2:] == ["data: [DONE]", ""]
        chunks = [json.loads(one.removeprefix("data: ")) for one in events[:-2]]
        choices = [one["choices"][0] for one in chunks]
        assert [one["finish_reason"] for one in choices] == [None] * TOKENS + ["stop"]
        texts += [one["delta"]["content"] for one in choices[:-1]]
    assert len(set(texts)) == 2 * TOKENS
    connection.close()


def test_streams_as_they_were_sent_are_right(fake: Running) -> None:
    from benchmarks.gateway.streams import load

    found = load(fake, STREAMS, TOKENS, RATE, 20)
    assert (found["streams"], found["wrong"], found["tokens"]) == (STREAMS, 0, STREAMS * TOKENS)
    assert found["lag_p50_s"] >= 0
    assert found["gap_max_s"] >= 0.5 / RATE


@pytest.mark.parametrize(
    "change",
    [
        lambda data: data.replace(b'"delta":{}', b'"delta":[]'),
        lambda data: data.replace(b'"chatcmpl-1"', b'"chatcmpl-2"'),
        lambda data: data.replace(b"data: [DONE]\n\n", b"data: [DONE]\n\r"),
        lambda data: data.replace(b" 200 OK", b" 203 OK"),
        lambda data: data + b"x" if data.endswith(b"0\r\n\r\n") else data,
    ],
    ids=["end", "another's", "last byte", "status", "more"],
)
def test_a_wrong_byte_is_seen(fake: Running, change: Callable[[bytes], bytes]) -> None:
    from dataclasses import replace

    from benchmarks.gateway.streams import load

    with spoiled(fake.port, change) as port:
        found = load(replace(fake, port=port), STREAMS, TOKENS, RATE, 0)
    assert found["wrong"] >= 1
    assert found["streams"] + found["wrong"] == STREAMS


def test_a_stream_that_breaks_off_is_wrong(fake: Running) -> None:
    from dataclasses import replace

    from benchmarks.gateway.streams import load

    def ended(data: bytes) -> bytes:
        return data.partition(b"data: [DONE]")[0]

    with spoiled(fake.port, ended) as port:
        found = load(replace(fake, port=port), STREAMS, TOKENS, RATE, 0)
    assert (found["streams"], found["wrong"]) == (0, STREAMS)


def test_an_answer_that_is_another_is_not_measured(fake: Running) -> None:
    from dataclasses import replace

    from benchmarks.gateway.overhead import compare

    compare(fake)
    with (
        spoiled(fake.port, lambda data: data.replace(b"total_tokens", b"total_talken")) as port,
        pytest.raises(SystemExit, match="not what the upstream has answered"),
    ):
        compare(replace(fake, port=port))
