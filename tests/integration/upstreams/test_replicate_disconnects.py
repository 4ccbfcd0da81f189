"""Clients that leave during a prediction: the socket closes and the service is asked to cancel."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import media, steps
from support.fetches import wait_until
from support.replicate_service import BASE, LIGHTNING, PINNED, ReplicateService, replicate, whole
from support.upstreams import IMAGES, asked, gateway

if TYPE_CHECKING:
    import socket
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import PolymuxServer

SOON_S = 15.0
NAME = "n1"
CREATE, FILES = f"{BASE}/predictions", f"{BASE}/files"
#: A pinned version needs no lookup.
MODELS = {LIGHTNING: f"{LIGHTNING}:{whole(PINNED[LIGHTNING])}"}
JSON = "Content-Type: application/json"


@pytest.fixture
def service() -> Iterator[ReplicateService]:
    """A service whose prediction never ends."""
    with ReplicateService([{"status": "processing"}], receive_buffer_bytes=4096) as made:
        made.next_id = NAME
        yield made


@pytest.fixture
def server(service: ReplicateService, tmp_path: Path) -> Iterator[PolymuxServer]:
    with gateway(tmp_path, {"r": replicate(tmp_path, service, models=MODELS)}) as running:
        yield running


def drawing(server: PolymuxServer) -> socket.socket:
    body = json.dumps({"prompt": "a lighthouse"}).encode()
    return asked(server, f"{IMAGES}?model={LIGHTNING}", body, JSON)


def wait_free(server: PolymuxServer) -> None:
    wait_until(lambda: server.state.service.places["r"].running == 0)


@pytest.mark.parametrize("phase", ["before the answer", "within the answer", "within a result"])
def test_the_socket_is_closed(server: PolymuxServer, service: ReplicateService, phase: str) -> None:
    """In every phase the prediction is canceled on the service and the concurrency slot is free."""
    path = f"{CREATE}/{NAME}"
    play = [steps.stall()]
    if phase == "within the answer":
        play = [steps.wrong_content_length(1000, b'{"id":'), steps.stall()]
    if phase == "within a result":
        path = "/made/one.png"
        play = [steps.wrong_content_length(1000, media.png()), steps.stall()]
        service.output(["HOST/made/one.png"])
    service.script(*play, path=path)
    with drawing(server) as connection:
        request = service.wait_request(path)
        assert request.connection.closed_at is None
        connection.close()
        left_at = time.monotonic()
        service.wait_closed(request.connection, 5)
    assert request.connection.closed_at is not None
    assert request.connection.closed_at - left_at < SOON_S
    if phase != "within a result":
        assert service.wait_canceled() - left_at < SOON_S
    wait_free(server)


def test_a_prediction_that_is_answered_too_late(
    server: PolymuxServer, service: ReplicateService
) -> None:
    """The ID arrives after the disconnect, and the gateway uses it to cancel."""
    service.creation_s = 0.3
    with drawing(server) as connection:
        service.wait_request(CREATE)
        connection.close()
        left_at = time.monotonic()
        service.log.wait_for(lambda: bool(service.predictions), 5, "a prediction")
        assert service.wait_canceled() - left_at < SOON_S
    assert f"{CREATE}/{NAME}" not in [one.path for one in service.requests]
    wait_free(server)


def test_a_job_that_is_cancelled(server: PolymuxServer, service: ReplicateService) -> None:
    body = json.dumps({"prompt": "a lighthouse"}).encode()
    fields = [("Content-Type", "application/json"), ("Prefer", "respond-async")]
    begun = server.ask("POST", f"{IMAGES}?model={LIGHTNING}", body, fields).json()
    service.wait_request(f"{CREATE}/{NAME}")
    server.ask("POST", f"/api/v1/predictions/{begun['id']}/cancel")
    service.wait_canceled()
    job: Any = server.ask("GET", f"/api/v1/predictions/{begun['id']}").json()
    assert job["status"] == "canceled"


def test_a_prediction_that_takes_too_long(service: ReplicateService, tmp_path: Path) -> None:
    """The gateway cancels it. The service would also stop it by its own deadline."""
    settings = replicate(tmp_path, service, models=MODELS, total_s=1)
    with gateway(tmp_path, {"r": settings}) as server:
        answer = server.json(f"{IMAGES}?model={LIGHTNING}", {"prompt": "a lighthouse"})
    assert (answer.status, answer.json()["code"]) == (504, "upstream_timeout")
    assert service.predictions[-1].canceled
    assert service.wait_request(CREATE).header("cancel-after") == "5s"


def test_a_server_that_stops(service: ReplicateService, tmp_path: Path) -> None:
    upstreams = {"r": replicate(tmp_path, service, models=MODELS)}
    with gateway(tmp_path, upstreams, shutdown_timeout_s=0.2) as server, drawing(server):
        service.wait_request(f"{CREATE}/{NAME}")
        server.stop()
        service.wait_canceled()
