"""Predictions that end late, badly or more than once (O06), or are not begun at all."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from support.replicate_service import LIGHTNING, ReplicateService, replicate
from support.upstreams import IMAGES, gateway

if TYPE_CHECKING:
    from pathlib import Path

    from support.polymux_server import Answer, PolymuxServer

NEARLY: dict[str, Any] = {"status": "processing", "logs": " 98%|#########8|\n 99%|#########9|\n"}
MADE: dict[str, Any] = {"status": "succeeded", "output": ["HOST/made/one.png"]}
FAILED: dict[str, Any] = {"status": "failed", "error": "on second thoughts"}


def drawn(server: PolymuxServer) -> Answer:
    return server.json(f"{IMAGES}?model={LIGHTNING}", {"prompt": "a lighthouse"})


def test_one_that_fails_at_last(tmp_path: Path) -> None:
    """Nothing of it is kept, and what it said of itself is told."""
    with (
        ReplicateService([NEARLY, FAILED]) as service,
        gateway(tmp_path, {"r": replicate(tmp_path, service)}) as server,
    ):
        answer = drawn(server)
        assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
        assert "on second thoughts" in answer.json()["error"]
        told = server.ask("GET", f"/api/v1/predictions/{answer.json()['id']}").json()
        assert (told["status"], told["progress"]) == ("failed", 0.99)
        assert "output" not in told
        assert "99%" in told["logs"]


@pytest.mark.parametrize("second", [MADE, FAILED, {"status": "processing"}])
def test_one_that_ends_twice(tmp_path: Path, second: dict[str, Any]) -> None:
    """Its first end counts: nothing is asked or fetched again, and one result is there."""
    with (
        ReplicateService([{"status": "starting"}, MADE, second]) as service,
        gateway(tmp_path, {"r": replicate(tmp_path, service)}) as server,
    ):
        answer = drawn(server)
        assert answer.status == 200
        [prediction] = service.predictions
        assert prediction.asked == 1
        assert service.asked.count("GET /made/one.png") == 1
        again = drawn(server)
        told = server.ask("GET", f"/api/v1/predictions/{answer.json()['id']}").json()
        assert told["status"] == "succeeded"
        assert len(told["output"]) == 1
        listed = server.ask("GET", "/api/v1/predictions").json()["results"]
        assert [one["id"] for one in listed] == [again.json()["id"], answer.json()["id"]]
        assert prediction.asked == 1
