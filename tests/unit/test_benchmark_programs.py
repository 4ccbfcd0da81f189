"""The servers and peers that the benchmarks are made of do what their tables say of them."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.programs import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from benchmarks.environment import Environment  # noqa: E402 - the benchmarks are no package of ours
from benchmarks.gateway import sides, streams  # noqa: E402
from benchmarks.server import deadlines, leaving, life, overhead, refusals  # noqa: E402
from benchmarks.server.conversation import COMPLETION, body, request  # noqa: E402
from benchmarks.server.sides import FASTAPI, RAW, STARLETTE, expect, load, running  # noqa: E402

if TYPE_CHECKING:
    from benchmarks.server.sides import Running

STREAMS, TOKENS, RATE = 3, 5, 100


@pytest.fixture(autouse=True)
def own_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own FastAPI and uvicorn, not those that the benchmark installs."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(Environment, "python", sys.executable)


@pytest.mark.parametrize("side", [STARLETTE, FASTAPI, RAW])
def test_peers_answer_requests_and_streams(side: str) -> None:
    assert overhead.closed(side, 64)["statuses"] == {"200": 64}
    assert overhead.streams(side, 4, 5, 200)["tokens"] == 20


@pytest.mark.long
@pytest.mark.parametrize(("side", "kept"), [(FASTAPI, 1), (RAW, 0)])
def test_peers_differ_as_the_tables_say(side: str, kept: int) -> None:
    with running(side, keys=True) as server:
        expect(load(server, "closed", 20, 4, request(server.key, body())), 200, 20)
        expect(load(server, "closed", 20, 4, request(refusals.WRONG, body())), 401, 20)
    # FastAPI reads all of a body, and goes on with an answer that nobody waits for.
    read = refusals.large_bodies(side, 1)["read_bytes"]
    assert (read > refusals.FILE_BYTES) == kept
    assert leaving.leaving(side, 1)["kept"] == kept
    assert life.drain(side, 2)["by_event"] == 0
    if side == FASTAPI:
        assert refusals.queue_full(side, 10)["statuses"] == {"503": 10}
        assert deadlines.closing(side, 1, 1)["latest_of"] == "silent after an answer"


def test_floors_run() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.floors", "--quick"], cwd=ROOT, capture_output=True,
        text=True, check=True, timeout=300, env=environment(),
    )  # fmt: skip
    measured = json.loads(done.stdout)
    assert len(measured["floors"]) == 7
    assert all(values["cpu_us_each"] > 0 for values in measured["floors"].values())
    # Three clients and libcurl, one upload, 1,010 streams; all the uploaded bytes have come.
    assert measured["server"]["requests"] == 4 * 2_000 + 1 + 1_010
    assert measured["server"]["body_bytes"] > 8 << 20
    assert measured["server"]["events"] == 1_000 * 5 + 10 * 100


@pytest.fixture
def fake() -> Iterator[Running]:
    """The fake upstream of the gateway's benchmark."""
    with sides.upstream() as server:
        yield server


def test_streams_of_the_upstream_are_right(fake: Running) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", fake.port, timeout=10)
    fields = {"Content-Type": "application/json"}
    connection.request("POST", "/v1/chat/completions", json.dumps(body()).encode(), fields)
    assert json.loads(connection.getresponse().read()) == COMPLETION
    connection.close()
    found = streams.load(fake, STREAMS, TOKENS, RATE, 20)
    assert (found["streams"], found["wrong"], found["tokens"]) == (STREAMS, 0, STREAMS * TOKENS)


@pytest.mark.parametrize("answer", [b"data: x\n\n", b"data: [DONE]\n\n", b""])
def test_a_wrong_stream_is_seen(fake: Running, answer: bytes) -> None:
    with MisbehavingServer() as server:
        server.script(steps.event_stream(), steps.send(answer), steps.close(), times=None)
        found = streams.load(replace(fake, port=server.port), STREAMS, TOKENS, RATE, 0)
    assert (found["streams"], found["wrong"]) == (0, STREAMS)
