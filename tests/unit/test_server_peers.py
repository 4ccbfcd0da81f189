"""The peers of the server's benchmark do what its tables say of them; no test times anything."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT))

from benchmarks.environment import Environment  # noqa: E402 - the benchmarks are no package of ours
from benchmarks.server import (  # noqa: E402
    deadlines,
    leaving,
    life,
    memory,
    overhead,
    refusals,
    uploads,
)
from benchmarks.server.conversation import body, request  # noqa: E402
from benchmarks.server.sides import FASTAPI, RAW, STARLETTE, expect, load, running  # noqa: E402

BOTH = pytest.mark.parametrize("side", [FASTAPI, RAW])


@pytest.fixture(autouse=True)
def own_packages(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server's own FastAPI and uvicorn, not those that the benchmark installs."""
    monkeypatch.delenv("LD_PRELOAD", raising=False)
    monkeypatch.setattr(Environment, "python", sys.executable)


@pytest.mark.parametrize("side", [STARLETTE, FASTAPI, RAW])
def test_requests_and_streams_are_answered(side: str) -> None:
    assert overhead.closed(side, 64)["statuses"] == {"200": 64}
    assert overhead.streams(side, 4, 5, 200)["tokens"] == 20


def test_fastapi_reads_what_the_application_by_hand_does_not() -> None:
    assert refusals.large_bodies(FASTAPI, 1)["read_bytes"] > refusals.FILE_BYTES
    assert refusals.large_bodies(RAW, 1)["read_bytes"] < 1 << 20


@BOTH
def test_wrong_keys_are_refused_and_right_ones_let_in(side: str) -> None:
    with running(side, keys=True) as server:
        expect(load(server, "closed", 20, 4, request(server.key, body())), 200, 20)
        expect(load(server, "closed", 20, 4, request(refusals.WRONG, body())), 401, 20)


def test_uvicorn_turns_away_whom_it_has_no_place_for() -> None:
    assert refusals.queue_full(FASTAPI, 10)["statuses"] == {"503": 10}


def test_uvicorn_closes_idle_connections_alone() -> None:
    found = deadlines.closing(FASTAPI, 1, 1)
    assert found["open"] == 5
    assert found["latest_of"] == "silent after an answer"


def test_whole_answers_of_fastapi_go_on_for_nobody() -> None:
    found: dict[str, Any] = leaving.leaving(FASTAPI, 1)
    assert found["kept"] == 1
    assert "streaming_max_s" in found
    assert "whole_max_s" not in found
    assert leaving.leaving(RAW, 1)["kept"] == 0


@BOTH
def test_files_are_kept_and_mixed_requests_all_answered(side: str) -> None:
    assert uploads.uploads(side, 2, 1)["bytes"] == 2 << 20
    assert memory.mixed(side, 200)["count"] == 200


@BOTH
def test_they_start_and_stop(side: str) -> None:
    assert life.start(side, 1)["ready_max_s"] > 0
    found = life.drain(side, 2)
    assert found["by_event"] == 0
    assert found["status"] != 0
