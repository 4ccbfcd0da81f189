"""Webhooks of /replicate/v1: content, signatures and SSRF protection."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import json
import stat
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.fetch.fetcher import FetchPolicy
from polymux.server.compat.replicate import webhooks
from replicate.exceptions import ReplicateError
from replicate.webhook import InvalidSignatureError, Webhooks
from servers import steps
from servers.certificates import Authority
from servers.misbehaving import MisbehavingServer
from support.polymux_server import Box, PolymuxServer
from support.replicate_compat import ScriptedModels, of, scripted_server
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.records import Request

BASE = "/replicate/v1"
CONVERT = "polymux/convert-to-mp3"
FILE = {"file": "data:,x"}
ALL = ["start", "output", "logs", "completed"]


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(webhooks, "PAUSES_S", (0.05, 0.05))


@pytest.fixture(scope="module")
def port() -> int:
    with MisbehavingServer() as first:
        return first.port


@pytest.fixture
def receiver(port: int) -> Iterator[MisbehavingServer]:
    with MisbehavingServer(port=port) as running:
        running.script(steps.answer(200, b"{}"), times=None)
        yield running


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture(scope="module")
def settings(port: int) -> dict[str, Any]:
    return {"fetch": FetchPolicy(allowed_hosts=(f"127.0.0.1:{port}",))}


def begun(server: PolymuxServer, hook: str, wanted: Any = None, **more: Any) -> Any:
    given = {"version": CONVERT, "input": FILE} | more
    if wanted is not None:
        given["webhook_events_filter"] = wanted
    return of(server).predictions.create(webhook=hook, **given)


def release(server: PolymuxServer, backend: ScriptedModels) -> None:
    server.loop.call_soon_threadsafe(backend.gate.set)


def wait_until_sent(server: PolymuxServer, receiver: MisbehavingServer) -> None:
    """Wait for a further webhook, after which all earlier ones have been sent."""
    begun(server, f"{receiver.url}/last", ["completed"])
    until(lambda: any(one.path == "/last" and one.body_complete for one in receiver.requests))
    until(lambda: not watching(server))


def watching(server: PolymuxServer) -> bool:
    """Whether any webhook task is running."""

    async def names() -> list[str]:
        return [one.get_name() for one in asyncio.all_tasks()]

    found = asyncio.run_coroutine_threadsafe(names(), server.loop).result(10)
    return any(one.startswith("webhook of") for one in found)


def verified(server: PolymuxServer, request: Request, key: str | None = None) -> Any:
    """The prediction in a webhook. Two verifiers check its signature."""
    secret = of(server, key=key).webhooks.default.secret()
    headers = {name.decode(): value.decode() for name, value in request.headers}
    Webhooks.validate(headers=headers, body=request.body.decode(), secret=secret, tolerance=60)
    message, moment = request.header("webhook-id"), request.header("webhook-timestamp")
    signed = f"{message}.{moment}.".encode() + request.body
    digest = hmac.new(base64.b64decode(secret.key[6:]), signed, hashlib.sha256).digest()
    assert request.header("webhook-signature") == f"v1,{base64.b64encode(digest).decode()}"
    assert (request.method, request.header("content-type")) == ("POST", "application/json")
    assert request.header("authorization") is None
    assert request.header("proxy-authorization") is None
    return json.loads(request.body)


def bodies(receiver: MisbehavingServer) -> list[Any]:
    return [json.loads(one.body) for one in receiver.requests if one.body_complete] or [
        {"status": None, "output": None}
    ]


def test_the_end(server: PolymuxServer, receiver: MisbehavingServer) -> None:
    created = begun(server, f"{receiver.url}/hook?x=1", ["completed"], wait=True)
    (request,) = receiver.wait_requests(1)
    assert request.target == "/hook?x=1"
    prediction = verified(server, receiver.wait_complete(request))
    path = created.urls["get"].removeprefix(server.url)
    assert prediction == server.ask("GET", path).json()
    assert prediction["status"] == "succeeded"
    assert prediction["webhook"] == f"{receiver.url}/hook?x=1"
    assert prediction["webhook_events_filter"] == ["completed"]
    # Uses the older field name.
    body = {"version": CONVERT, "input": FILE, "webhook_completed": receiver.url}
    assert server.json(f"{BASE}/predictions", body).status == 201
    request = receiver.wait_requests(2)[1]
    assert verified(server, receiver.wait_complete(request))["status"] == "succeeded"


def test_everything_in_its_order(
    server: PolymuxServer, backend: ScriptedModels, receiver: MisbehavingServer
) -> None:
    """At most two webhooks per second. Changes in between are combined."""
    backend.pieces = [f"{number} " for number in range(100)]
    backend.gate.clear()
    prediction = begun(server, receiver.url, version="polymux/chat", input={"prompt": "Hi"})
    receiver.wait_requests(1)
    until(lambda: of(server).predictions.get(prediction.id).output == ["0 "])
    release(server, backend)
    until(lambda: bodies(receiver)[-1]["status"] == "succeeded")
    statuses = [one["status"] for one in bodies(receiver)]
    assert statuses[0] == "processing"
    assert statuses.count("succeeded") == 1
    outputs = ["".join(one["output"] or ()) for one in bodies(receiver)]
    assert outputs == sorted(outputs, key=len)
    assert outputs[-1] == "".join(backend.pieces)
    names = [one.header("webhook-id") for one in receiver.requests]
    assert len(set(names)) == len(names)
    for request in receiver.requests:
        verified(server, request)
    times = [one.arrived_at for one in receiver.requests[1:-1]]
    assert all(b - a >= webhooks.EVERY_S * 0.9 for a, b in pairwise(times))


@pytest.mark.parametrize("wanted", [["start"], []])
def test_only_what_is_wanted(
    server: PolymuxServer, backend: ScriptedModels, receiver: MisbehavingServer, wanted: list[str]
) -> None:
    backend.gate.clear()
    begun(server, receiver.url, wanted)
    if wanted:
        receiver.wait_requests(1)
    release(server, backend)
    wait_until_sent(server, receiver)
    statuses = [json.loads(one.body)["status"] for one in receiver.requests if one.path != "/last"]
    assert statuses == (["processing"] if wanted else [])


def test_the_end_is_tried_again(server: PolymuxServer, receiver: MisbehavingServer) -> None:
    receiver.script(steps.answer(500, b""), path="/hook")
    receiver.script(steps.reset(), path="/hook")
    receiver.script(steps.answer(204, b""), path="/hook")
    begun(server, f"{receiver.url}/hook", ["completed"])
    requests = receiver.wait_requests(3)
    assert len({one.header("webhook-id") for one in requests}) == 1
    for one in (requests[0], requests[2]):
        assert verified(server, receiver.wait_complete(one))["status"] == "succeeded"
    wait_until_sent(server, receiver)
    assert len(receiver.requests) == 4


def test_tries_end(server: PolymuxServer, receiver: MisbehavingServer) -> None:
    receiver.script(steps.answer(503, b""), path="/gone", times=None)
    assert begun(server, f"{receiver.url}/gone", ALL, wait=True).status == "succeeded"
    until(lambda: [one["status"] for one in bodies(receiver)].count("succeeded") == 3)
    until(lambda: not watching(server))


def test_redirects_are_not_followed(server: PolymuxServer, receiver: MisbehavingServer) -> None:
    with MisbehavingServer() as decoy:
        for status in (301, 307):
            receiver.script(steps.redirect(status, decoy.url), path=f"/{status}", times=None)
            begun(server, f"{receiver.url}/{status}", ["completed"])
        until(lambda: len(receiver.requests) == 6)
        until(lambda: not watching(server))
        assert decoy.connections == []


@pytest.mark.parametrize(
    "hook",
    [
        "http://hooks.example/x", "https://localhost/x", "https://[::1]/x", "https://0x7f000001/",
        "https://169.254.169.254/latest", "https://hooks.example:22/", "",
    ],
)  # fmt: skip
def test_addresses_that_are_refused(
    server: PolymuxServer, backend: ScriptedModels, hook: str
) -> None:
    with pytest.raises(ReplicateError) as refused:
        begun(server, hook)
    assert refused.value.status == 422
    assert "webhook" in str(refused.value.detail)
    assert backend.began == []


def test_no_decoy_is_ever_hit(
    server: PolymuxServer, receiver: MisbehavingServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Covers a URL that passes the first check, but then resolves to a private address."""
    with MisbehavingServer() as decoy:
        addresses = (decoy.url, decoy.url.replace("http://", "https://"))
        for hook in addresses:
            with pytest.raises(ReplicateError):
                begun(server, hook)

        async def judged_well(*_: object, **__: object) -> None:
            pass

        monkeypatch.setattr(webhooks.Webhooks, "check", judged_well)
        for hook in addresses:
            begun(server, hook)
        until(lambda: not watching(server))
        # The proxy checks again when it connects.
        monkeypatch.setattr(webhooks, "ajudged", judged_well)
        for hook in addresses:
            begun(server, hook)
        wait_until_sent(server, receiver)
        assert decoy.connections == []


def test_over_tls(tmp_path: Path) -> None:
    """Certificates are verified with the operator's CA bundle."""
    (tmp_path / "one").mkdir()
    (tmp_path / "two").mkdir()
    known, unknown = Authority(tmp_path / "one"), Authority(tmp_path / "two")
    with (
        MisbehavingServer(tls=known.certificate().context()) as good,
        MisbehavingServer(tls=unknown.certificate().context()) as bad,
    ):
        good.script(steps.answer(200, b"{}"), times=None)
        hosts = tuple(f"127.0.0.1:{one.port}" for one in (good, bad))
        policy = FetchPolicy(allowed_hosts=hosts, certificate_bundle=known.ca)
        with scripted_server(tmp_path, Box(), fetch=policy) as server:
            begun(server, bad.url, ["start"])
            begun(server, good.url, ["completed"])
            (request,) = good.wait_requests(1)
            assert verified(server, good.wait_complete(request))["status"] == "succeeded"
            # An idle connection would count toward the limit for all webhooks.
            good.wait_closed(request.connection, 5)
            until(lambda: not watching(server))
            assert bad.requests == []


def test_a_receiver_that_is_silent_holds_up_nothing(tmp_path: Path, port: int) -> None:
    """It delays neither its job, nor other webhooks, nor the shutdown."""
    policy = FetchPolicy(allowed_hosts=(f"127.0.0.1:{port}",))
    with MisbehavingServer(port=port) as receiver:
        receiver.script(steps.answer(200, b"{}"), times=None)
        receiver.script(steps.read_body(), steps.stall(), path="/silent", times=None)
        with scripted_server(tmp_path, Box(), fetch=policy) as server:
            prediction = begun(server, f"{receiver.url}/silent", ALL, wait=True)
            assert prediction.status == "succeeded"
            begun(server, f"{receiver.url}/other", ["completed"])
            until(lambda: any(one.path == "/other" for one in receiver.requests))
            request = next(one for one in receiver.requests if one.path == "/silent")
            began = time.monotonic()
        assert time.monotonic() - began < 20  # The receiver stays silent for much longer.
        receiver.wait_closed(request.connection)


def test_failures_and_cancellation_are_ends(
    server: PolymuxServer, backend: ScriptedModels, receiver: MisbehavingServer
) -> None:
    backend.failure = polymux.errors.NoAudioError("there is no sound in it")
    begun(server, receiver.url, ["completed"])
    (request,) = receiver.wait_requests(1)
    prediction = verified(server, receiver.wait_complete(request))
    assert (prediction["status"], prediction["error"]) == ("failed", "there is no sound in it")
    backend.gate.clear()
    begun(server, receiver.url, ["completed"]).cancel()
    request = receiver.wait_requests(2)[1]
    assert verified(server, receiver.wait_complete(request))["status"] == "canceled"


def test_each_key_has_its_own_secret(
    server: PolymuxServer, receiver: MisbehavingServer, other_key: str
) -> None:
    """The secret's file is readable only by the server's user."""
    path = server.settings.store.folder / "webhook-secret"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    begun(server, receiver.url, ["completed"])
    (request,) = receiver.wait_requests(1)
    verified(server, receiver.wait_complete(request))
    with pytest.raises(InvalidSignatureError):
        verified(server, request, other_key)
    body = server.ask("GET", f"{BASE}/webhooks/default/secret").body.decode()
    assert path.read_text().strip() not in body
