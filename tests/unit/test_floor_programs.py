"""The cheap server and the floor programs of the benchmarks do the work that they say they did."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from support.programs import environment

if TYPE_CHECKING:
    from collections.abc import Iterator

    from benchmarks.floors.programs import FloorServer

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[FloorServer]:
    monkeypatch.syspath_prepend(ROOT)
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    from benchmarks.floors.programs import floor_server

    with floor_server() as server:
        yield server


def test_every_floor_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.floors", "--quick"], cwd=ROOT, capture_output=True,
        text=True, check=True, timeout=300, env=environment(),
    )  # fmt: skip
    measured = json.loads(done.stdout)
    assert len(measured["floors"]) == 7
    for values in measured["floors"].values():
        assert values["cpu_s"] == pytest.approx(values["user_s"] + values["system_s"], abs=1e-5)
        assert values["cpu_us_each"] > 0
    # Three clients and libcurl, one upload, 1,010 streams; all the uploaded bytes have come.
    assert measured["server"]["requests"] == 4 * 2_000 + 1 + 1_010
    assert measured["server"]["body_bytes"] > 8 << 20
    assert measured["server"]["events"] == 1_000 * 5 + 10 * 100
    streams = measured["floors"]["1000 streams at 10/s"]
    assert streams["events"] == 1_000 * (5 + 1)  # `[DONE]` is one, too
    assert streams["wall_s"] >= 0.39


def test_answers_of_the_cheap_server(server: FloorServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)

    def post(target: str, body: Any, *, encode_chunked: bool = False) -> bytes:
        headers = {"Transfer-Encoding": "chunked"} if encode_chunked else {}
        connection.request("POST", target, body, headers, encode_chunked=encode_chunked)
        response = connection.getresponse()
        assert response.status == 200
        return response.read()

    small = post("/api/v1/anything", b"{}")
    assert len(small) == 683
    assert json.loads(small)["choices"][0]["finish_reason"] == "stop"
    taken = json.loads(post("/sink", bytes(3_000_001)))
    assert taken == {"status": "succeeded", "received_bytes": 3_000_001}
    pieces = [bytes([65 + number % 26]) * number for number in range(1, 300)]
    chunked = post("/sink", iter(pieces), encode_chunked=True)
    assert json.loads(chunked)["received_bytes"] == sum(map(len, pieces))
    assert json.loads(post("/sink", b""))["received_bytes"] == 0
    connection.close()


def test_streams_of_the_cheap_server(server: FloorServer) -> None:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=10)
    for rate in (0, 50, 5_000):
        started = time.monotonic()
        connection.request("POST", f"/stream?tokens=20&rate={rate}&stamp=1", b"{}")
        events = connection.getresponse().read().decode().split("\n\n")
        assert events[-2:] == ["data: [DONE]", ""]
        chunks = [json.loads(event.removeprefix("data: ")) for event in events[:-2]]
        times = [int(chunk["choices"][0]["delta"]["content"]) for chunk in chunks]
        assert len(times) == 20
        assert times == sorted(times)
        assert times[0] / 1e9 >= started
        if rate == 50:
            assert times[-1] / 1e9 >= started + 19 * 0.02 - 0.002
    connection.close()
