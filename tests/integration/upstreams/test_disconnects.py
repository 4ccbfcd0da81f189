"""Clients leave in every phase: the upstream's socket closes within 1 s. Case IDs: testing.md."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest
from polymux.fetch.fetcher import FetchPolicy
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from servers.reference import ReferenceServer
from servers.steps import Stage, Step
from support.polymux_server import CHAT, CONVERT, form
from support.server_process import until
from support.upstreams import (
    ASKED,
    FREE,
    IMAGES,
    MESSAGES,
    STT,
    asked,
    chunk,
    event,
    gateway,
    upstream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.records import Connection
    from support.polymux_server import PolymuxServer

SOON_S = 15.0
SPEECH = "turian/insanely-fast-whisper-with-video"
LIGHTNING = "bytedance/sdxl-lightning-4step"
JSON = "Content-Type: application/json"


@pytest.fixture(scope="module")
def slow(bad: MisbehavingServer) -> MisbehavingServer:
    return bad


@pytest.fixture(scope="module")
def servers(
    slow: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, PolymuxServer]]:
    """A gateway for an upstream with the OpenAI API and for another polymux server."""
    with ExitStack() as running:
        found = {}
        for kind in ("openai", "polymux"):
            folder = tmp_path_factory.mktemp(kind)
            made = upstream(folder, slow.url, kind=kind, models={"fast": "m"})
            found[kind] = running.enter_context(gateway(folder, {"slow": made}))
        yield found


def assert_let_go(
    server: PolymuxServer, slow: MisbehavingServer, connection: Connection, ended_at: float
) -> None:
    """Check that the socket closes soon and that the concurrency slot is free."""
    slow.wait_closed(connection, 30)
    assert connection.closed_at is not None
    assert connection.closed_at - ended_at < SOON_S
    assert until(lambda: server.state.service.places["slow"].running == 0) < SOON_S


@pytest.mark.parametrize(("kind", "path"), [("openai", CHAT), ("polymux", FREE)])
@pytest.mark.parametrize("phase", ["before the answer", "before the first piece", "within"])
def test_chats(
    servers: dict[str, PolymuxServer], slow: MisbehavingServer, phase: str, kind: str, path: str
) -> None:
    """Cases C32 to C34."""
    server, before = servers[kind], len(slow.requests)
    texts = kind == "polymux" and path == FREE
    first_event = event({"response": "Hel"} if texts else chunk("Hel"))
    plays = {
        "before the answer": [steps.stall()],
        "before the first piece": [steps.event_stream(), steps.stall()],
        "within": [steps.event_stream(), steps.send(first_event), steps.stall()],
    }
    slow.script(*plays[phase])
    given = dict(ASKED) if path == CHAT else {"messages": MESSAGES}
    body = json.dumps(given | {"stream": phase != "before the answer"}).encode()
    with asked(server, path, body, JSON) as connection:
        sent = slow.wait_requests(before + 1)[-1]
        slow.wait_complete(sent)
        data = b""
        while phase == "within" and b"Hel" not in data:
            data += connection.recv(65536)
        assert sent.connection.closed_at is None
        connection.close()
        assert_let_go(server, slow, sent.connection, time.monotonic())


FILES = {
    "transcribe": (STT, ("audio", ("a.wav", media.wav(50_000)))),
    "generate_image": (f"{IMAGES}?model={LIGHTNING}", ("prompt", "a house")),
}


@pytest.fixture(scope="module")
def maker(
    slow: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("maker")
    models = {SPEECH: "whisper", LIGHTNING: "painter", "fast": "m"}
    made = upstream(folder, slow.url, models=models, operations=(*FILES, "chat"))
    policy = FetchPolicy(allowed_hosts=(slow.url.removeprefix("http://"),))
    with gateway(folder, {"slow": made}, fetch=policy) as running:
        yield running


@pytest.mark.parametrize(("way", "phase"), [("left", "before the answer"), ("cancelled", "within")])
@pytest.mark.parametrize("operation", FILES)
def test_a_recording_and_a_picture(
    maker: PolymuxServer, slow: MisbehavingServer, operation: str, phase: str, way: str
) -> None:
    """The job has no waiting client any more, or is canceled by its ID."""
    path, field = FILES[operation]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
    slow.script(*([] if phase == "before the answer" else [steps.send(head)]), steps.stall())
    body, fields = form(field)
    before = len(slow.requests)
    if way == "left":
        with asked(maker, path, body, *(f"{name}: {value}" for name, value in fields)):
            request = slow.wait_requests(before + 1)[-1]
            slow.wait_complete(request)
            assert request.connection.closed_at is None
        ended_at = time.monotonic()
    else:
        begun = maker.ask("POST", path, body, [*fields, ("Prefer", "respond-async")]).json()
        request = slow.wait_requests(before + 1)[-1]
        slow.wait_complete(request)
        ended_at = time.monotonic()
        answer = maker.ask("POST", f"/api/v1/predictions/{begun['id']}/cancel")
        assert answer.json()["status"] == "canceled"
    assert_let_go(maker, slow, request.connection, ended_at)


@pytest.mark.parametrize("what", ["what was made", "what a chat shows"])
@pytest.mark.parametrize("begun", [False, True], ids=["before the answer", "within"])
def test_a_picture_that_is_fetched(
    maker: PolymuxServer, slow: MisbehavingServer, what: str, begun: bool
) -> None:
    """Image URLs from an upstream and from a client. The SSRF proxy closes its connection."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 999\r\n\r\n\x89PNG"
    slow.script(*([steps.send(head)] if begun else []), steps.stall(), path="/seen.png")
    address = f"{slow.url}/seen.png"
    path, value = FILES["generate_image"][0], {"prompt": "a house", "num_outputs": 1}
    if what == "what was made":
        data = json.dumps({"data": [{"url": address}]}).encode()
        slow.script(steps.answer(200, data), path="/v1/images/generations")
    else:
        content = [{"type": "image_url", "image_url": {"url": address}}]
        path, value = CHAT, ASKED | {"messages": [{"role": "user", "content": content}]}
    before = len(slow.requests)
    with asked(maker, path, json.dumps(value).encode(), JSON):
        until(lambda: any(one.path == "/seen.png" for one in slow.requests[before:]))
        fetching = slow.requests[-1].connection
        assert fetching.closed_at is None
    assert_let_go(maker, slow, fetching, time.monotonic())
    until(lambda: not any((maker.settings.store.folder / "drafts").iterdir()))


def test_a_job_of_another_polymux_is_cancelled_there(tmp_path: Path) -> None:
    with ReferenceServer() as other:
        other.predictions.job_s = 30
        attic = upstream(tmp_path, other.url, kind="polymux", key=other.token)
        with gateway(tmp_path, {"attic": attic}) as server:
            body, [(_, content_type)] = form(("audio", ("a.wav", media.wav())))
            with asked(server, STT, body, f"Content-Type: {content_type}") as connection:
                until(lambda: any(one.path.endswith("/events") for one in other.requests))
                connection.close()
                left_at = time.monotonic()
                [job] = other.predictions.jobs.values()
                until(lambda: job.status == "canceled")
                assert time.monotonic() - left_at < SOON_S
            watching = next(one for one in other.requests if one.path.endswith("/events"))
            other.wait_closed(watching.connection, SOON_S)


def test_a_reader_who_does_not_read(
    servers: dict[str, PolymuxServer], slow: MisbehavingServer
) -> None:
    """The gateway stops reading from the upstream and buffers a limited amount (C35)."""
    sent_bytes = 0
    block = event(chunk("x" * 1000)) * 64

    async def flood(stage: Stage) -> None:
        nonlocal sent_bytes
        while True:
            await stage.send(block)
            sent_bytes += len(block)

    slow.script(steps.event_stream(), Step(flood))
    body = json.dumps(ASKED | {"stream": True}).encode()
    with asked(servers["openai"], CHAT, body, JSON):
        until(lambda: sent_bytes > 0)
        before = -1
        while before < sent_bytes:
            before = sent_bytes
            time.sleep(1)
        # Most of it is in the kernel buffers of four sockets.
        assert sent_bytes < 24 << 20
        connection = slow.requests[-1].connection
    slow.wait_closed(connection, 2)


def test_an_upload_on_its_way(tmp_path: Path) -> None:
    with MisbehavingServer(receive_buffer_bytes=4096) as other:
        other.script(steps.read_slowly(4e6), steps.stall())
        attic = upstream(tmp_path, other.url, kind="polymux")
        with gateway(tmp_path, {"attic": attic}) as server:
            body, [(_, content_type)] = form(("file", ("a.wav", b"x" * (32 << 20))))
            with asked(server, CONVERT, body, f"Content-Type: {content_type}") as connection:
                request = other.wait_requests(1)[0]
                connection.close()
                assert until(lambda: server.state.service.places["attic"].running == 0) < SOON_S
                # Data in the kernel's buffer still arrives.
                other.wait_closed(request.connection, 8)
            assert not request.body_complete
            assert request.body_bytes < 16 << 20
