"""Callers who leave: the upstream's socket is closed within a second, wherever the work is."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from polymux.fetch.fetcher import FetchPolicy
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from servers.reference import ReferenceServer
from servers.steps import Stage, Step
from support.polymux_server import CHAT, CONVERT, form
from support.served import until
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

    from support.polymux_server import PolymuxServer

SOON_S = 1.0
SPEECH = "turian/insanely-fast-whisper-with-video"
LIGHTNING = "bytedance/sdxl-lightning-4step"


@pytest.fixture(scope="module")
def slow() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        yield server


def behind(
    kind: str, slow: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("leaving")
    made = upstream(folder, slow.url, kind=kind, models={"fast": "m"})
    with gateway(folder, {"slow": made}) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    slow: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    yield from behind("openai", slow, tmp_path_factory)


@pytest.fixture(scope="module")
def attic(
    slow: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    """The same before another polymux."""
    yield from behind("polymux", slow, tmp_path_factory)


@pytest.mark.parametrize("path", [CHAT, FREE])
@pytest.mark.parametrize("kind", ["server", "attic"], ids=["openai", "polymux"])
@pytest.mark.parametrize("phase", ["before the answer", "before the first piece", "within"])
def test_chats(
    request: pytest.FixtureRequest, slow: MisbehavingServer, phase: str, kind: str, path: str
) -> None:
    """C32 to C34, and the place is free again."""
    server: PolymuxServer = request.getfixturevalue(kind)
    before = len(slow.requests)
    texts = kind == "attic" and path == FREE
    said = event({"response": "Hel"} if texts else chunk("Hel"))
    plays = {
        "before the answer": [steps.stall()],
        "before the first piece": [steps.event_stream(), steps.stall()],
        "within": [steps.event_stream(), steps.send(said), steps.stall()],
    }
    slow.script(*plays[phase])
    given = dict(ASKED) if path == CHAT else {"messages": MESSAGES}
    body = json.dumps(given | {"stream": phase != "before the answer"}).encode()
    with asked(server, path, body, "Content-Type: application/json") as connection:
        sent = slow.wait_requests(before + 1)[-1]
        slow.wait_complete(sent)
        data = b""
        while phase == "within" and b"Hel" not in data:
            data += connection.recv(65536)
        assert sent.connection.closed_at is None
        connection.close()
        left_at = time.monotonic()
        slow.wait_closed(sent.connection, 5)
    assert sent.connection.closed_at is not None
    assert sent.connection.closed_at - left_at < SOON_S
    assert until(lambda: server.state.service.places["slow"].running == 0) < SOON_S


FILES = {
    "transcribe": (STT, ("audio", ("a.wav", media.wav(50_000)))),
    "generate_image": (f"{IMAGES}?model={LIGHTNING}", ("prompt", "a house")),
}


@pytest.mark.parametrize("phase", ["before the answer", "within"])
@pytest.mark.parametrize("operation", FILES)
def test_a_recording_and_a_picture(
    slow: MisbehavingServer, tmp_path: Path, operation: str, phase: str
) -> None:
    """A job that nobody waits for any more, or that is cancelled by its name."""
    models = {SPEECH: "whisper", LIGHTNING: "painter"}
    made = upstream(tmp_path, slow.url, models=models, operations=tuple(FILES))
    path, field = FILES[operation]
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 999\r\n\r\n{"
    play = [steps.stall()] if phase == "before the answer" else [steps.send(head), steps.stall()]
    body, fields = form(field)
    with gateway(tmp_path, {"slow": made}) as server:
        for way in ("left", "cancelled"):
            before = len(slow.requests)
            slow.script(*play)
            if way == "left":
                lines = [f"{name}: {value}" for name, value in fields]
                with asked(server, path, body, *lines) as connection:
                    request = slow.wait_requests(before + 1)[-1]
                    slow.wait_complete(request)
                    assert request.connection.closed_at is None
                    connection.close()
                    ended_at = time.monotonic()
                    slow.wait_closed(request.connection, 30)
            else:
                later = [*fields, ("Prefer", "respond-async")]
                begun = server.ask("POST", path, body, later).json()
                request = slow.wait_requests(before + 1)[-1]
                slow.wait_complete(request)
                ended_at = time.monotonic()
                answer = server.ask("POST", f"/api/v1/predictions/{begun['id']}/cancel")
                assert answer.json()["status"] == "canceled"
                slow.wait_closed(request.connection, 30)
            assert request.connection.closed_at is not None
            assert request.connection.closed_at - ended_at < SOON_S
        assert until(lambda: server.state.service.places["slow"].running == 0) < SOON_S
        slow.script(steps.answer(200, b'{"text": "heard"}'))
        sound, fields = form(FILES["transcribe"][1])
        assert server.ask("POST", STT, sound, fields).json()["output"]["text"] == "heard"


@pytest.mark.parametrize("what", ["what was made", "what a chat shows"])
@pytest.mark.parametrize("begun", [False, True], ids=["before the answer", "within"])
def test_a_picture_that_is_fetched(
    slow: MisbehavingServer, tmp_path: Path, what: str, begun: bool
) -> None:
    """At the address that an upstream names, and at that of a caller: the guard lets go as well."""
    models = {LIGHTNING: "painter", "fast": "m"}
    made = upstream(tmp_path, slow.url, models=models, operations=("generate_image", "chat"))
    head = b"HTTP/1.1 200 OK\r\nContent-Type: image/png\r\nContent-Length: 999\r\n\r\n\x89PNG"
    slow.script(*([steps.send(head)] if begun else []), steps.stall(), path="/seen.png")
    address = f"{slow.url}/seen.png"
    if what == "what was made":
        data = json.dumps({"data": [{"url": address}]}).encode()
        slow.script(steps.answer(200, data), path="/v1/images/generations")
        path, value = f"{IMAGES}?model={LIGHTNING}", {"prompt": "a house", "num_outputs": 1}
    else:
        content = [{"type": "image_url", "image_url": {"url": address}}]
        path, value = CHAT, {"model": "fast", "messages": [{"role": "user", "content": content}]}
    policy = FetchPolicy(allowed_hosts=(slow.url.removeprefix("http://"),))
    with gateway(tmp_path, {"slow": made}, fetch=policy) as server:
        before = len(slow.requests)
        body = json.dumps(value).encode()
        with asked(server, path, body, "Content-Type: application/json") as connection:
            until(lambda: any(one.path == "/seen.png" for one in slow.requests[before:]))
            fetching = slow.requests[-1].connection
            time.sleep(0.1)
            assert fetching.closed_at is None
            connection.close()
            left_at = time.monotonic()
            slow.wait_closed(fetching, 5)
        assert fetching.closed_at is not None
        assert fetching.closed_at - left_at < SOON_S
        assert until(lambda: server.state.service.places["slow"].running == 0) < SOON_S
        until(lambda: not any((server.settings.store.folder / "drafts").iterdir()))


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


def test_a_job_that_takes_too_long_is_cancelled_there(tmp_path: Path) -> None:
    with ReferenceServer() as other:
        other.predictions.job_s = 30
        attic = upstream(tmp_path, other.url, kind="polymux", key=other.token, total_s=1)
        with gateway(tmp_path, {"attic": attic}) as server:
            body, head = form(("audio", ("a.wav", media.wav())))
            answer = server.ask("POST", STT, body, head)
            assert (answer.status, answer.json()["code"]) == (504, "upstream_timeout")
            [job] = other.predictions.jobs.values()
            assert job.status == "canceled"


def test_a_reader_who_does_not_read(server: PolymuxServer, slow: MisbehavingServer) -> None:
    """C35: the upstream is not read on; what waits here is bounded."""
    sent_bytes = 0
    block = event(chunk("x" * 1000)) * 64

    async def flood(stage: Stage) -> None:
        nonlocal sent_bytes
        while True:
            await stage.send(block)
            sent_bytes += len(block)

    slow.script(steps.event_stream(), Step(flood))
    body = json.dumps(ASKED | {"stream": True}).encode()
    with asked(server, CHAT, body, "Content-Type: application/json"):
        until(lambda: sent_bytes > 0)
        before = -1
        while before < sent_bytes:
            before = sent_bytes
            time.sleep(1)
        # Almost all of it is in the kernel, of four sockets.
        assert sent_bytes < 24 << 20
        connection = slow.requests[-1].connection
    slow.wait_closed(connection, 2)


def test_an_upload_on_its_way(tmp_path: Path) -> None:
    """To a server that takes its time to read it."""
    with MisbehavingServer(receive_buffer_bytes=4096) as other:
        other.script(steps.read_slowly(4e6), steps.stall())
        attic = upstream(tmp_path, other.url, kind="polymux")
        with gateway(tmp_path, {"attic": attic}) as server:
            body, [(_, content_type)] = form(("file", ("a.wav", b"x" * (32 << 20))))
            with asked(server, CONVERT, body, f"Content-Type: {content_type}") as connection:
                request = other.wait_requests(1)[0]
                connection.close()
                assert until(lambda: server.state.service.places["attic"].running == 0) < SOON_S
                # What the kernel had taken before arrives still.
                other.wait_closed(request.connection, 8)
            assert not request.body_complete
            assert request.body_bytes < 16 << 20
