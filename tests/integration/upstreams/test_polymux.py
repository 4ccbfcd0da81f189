"""Another polymux server as the upstream."""

from __future__ import annotations

import io
import json
import logging
import math
import struct
import wave
from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.client.methods.results import JOBS
from polymux.runtime.settings import EngineSettings
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.chat_model import model_path
from support.polymux_server import CHAT, CONVERT, HELLO, PolymuxServer, form
from support.server_process import until
from support.services import Scripted
from support.upstreams import FREE, MESSAGES, before_reference, events_of, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.reference import ReferenceServer
    from support.polymux_server import Answer

PREDICTIONS = "/api/v1/predictions"
STT = "/api/v1/modelhost/stt"


def tone(seconds: float = 1.0) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(44100)
        count = int(44100 * seconds)
        samples = (int(9000 * math.sin(number / 20)) for number in range(count))
        file.writeframes(struct.pack(f"<{count}h", *samples))
    return buffer.getvalue()


@pytest.fixture(scope="module")
def far(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """A server with engines. Its own public URL is not resolvable."""
    chat = {"model": str(model_path()), "aliases": ["small"], "context": 512, "batch": 32}
    engines = {
        "media": EngineSettings("media", threads=1),
        "chat": EngineSettings("chat", chat, threads=1),
    }
    folder = tmp_path_factory.mktemp("far")
    with PolymuxServer(folder, engines=engines, public_url="https://far.example") as running:
        running.url = f"http://127.0.0.1:{running.state.settings.port}"
        yield running


@pytest.fixture(scope="module")
def near(far: PolymuxServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """A server without engines."""
    folder = tmp_path_factory.mktemp("near")
    attic = upstream(folder, far.url, kind="polymux", key=far.key)
    with gateway(folder, {"attic": attic}) as running:
        yield running


def fetched(server: PolymuxServer, url: str) -> Answer:
    return server.ask("GET", url.removeprefix(server.url), key=None)


def test_a_conversion_over_two_machines(near: PolymuxServer, far: PolymuxServer) -> None:
    """Returns the same bytes as the other server, with a link of this server."""
    body, head = form(("file", ("Töne.wav", tone(2))), ("bitrate", "64k"))
    answer = near.ask("POST", CONVERT, body, head)
    assert answer.status == 200
    result = answer.json()
    assert result["response"].startswith(f"{near.url}/media/")
    assert result["report"]["duration_s"] == pytest.approx(2, abs=0.1)
    file = fetched(near, result["response"])
    assert file.headers["content-type"] == "audio/mpeg"
    assert "T%C3%B6n" in file.headers["content-disposition"]
    direct = far.ask("POST", CONVERT, body, head).json()["response"]
    there = far.ask("GET", direct.removeprefix("https://far.example"), key=None)
    assert file.body == there.body
    assert len(file.body) > 12_000


def test_a_job_is_watched_and_cancelled(tmp_path: Path) -> None:
    """Progress, logs, cancellations and the final status are forwarded. Chats are unchanged."""
    backend = Scripted(max_concurrency=4)
    backend.gate.clear()
    body, head = form(("file", ("a.wav", b"x")))
    with PolymuxServer(tmp_path / "far", lambda: [backend]) as far:
        attic = upstream(tmp_path, far.url, kind="polymux", key=far.key)
        with gateway(tmp_path, {"attic": attic}) as near:
            asked = near.ask("POST", CONVERT, body, [*head, ("Prefer", "respond-async")])
            assert asked.status == 202
            path = f"{PREDICTIONS}/{asked.json()['id']}"
            until(lambda: near.ask("GET", path).json().get("progress") == 0.5)
            assert near.ask("GET", path).json()["logs"] == "begun"
            assert near.ask("POST", f"{path}/cancel").json()["status"] == "canceled"
            assert until(lambda: backend.ended) < 10
            assert backend.ended == ["cancelled"]
            far.loop.call_soon_threadsafe(backend.gate.set)
            done = near.ask("POST", CONVERT, body, head)
            assert fetched(near, done.json()["response"]).body == backend.data
            jobs = near.ask("GET", PREDICTIONS).json()["results"]
            assert (jobs[0]["version"], jobs[0]["metrics"]["frames"]) == ("v1", 3)
            chunk = {"choices": [{"index": 0, "delta": {"content": "a"}}], "odd": 1}
            backend.chunks = [chunk, {"choices": []}]
            answer = near.json(CHAT, HELLO | {"stream": True})
            assert events_of(answer) == [*backend.chunks, "[DONE]"]
            backend.chunks = [{"response": "one "}, {"response": "two"}]
            answer = near.json(FREE, {"messages": MESSAGES, "stream": True})
            assert events_of(answer) == [*backend.chunks, "[DONE]"]
            assert backend.began[-1].operation == "free_chat"


def test_what_the_other_left_out_is_reported_here(far: PolymuxServer, near: PolymuxServer) -> None:
    """Warnings are forwarded once, word for word, for plain and streaming responses."""
    for more in ({}, {"stream": True}):
        asked = {**HELLO, "max_completion_tokens": 4, "service_tier": "flex", **more}
        there, here = (one.json(CHAT, asked).headers["polymux-warnings"] for one in (far, near))
        assert here == there
        assert "service_tier" in here


#: The request of each operation, as a form or JSON.
ASKED: dict[str, dict[str, Any]] = {
    "chat": HELLO,
    "free_chat": {"messages": MESSAGES},
    "search_music": {"song": "Danube", "limit": 2},
    "generate_image": {"prompt": "a boat", "num_outputs": 2},
    "upscale_image": {"image": ("a.png", b"picture"), "scale": "2.5"},
    "transcribe": {"audio": ("a.wav", b"sound"), "language": "de"},
    "generate_video": {"prompt": "a boat"},
    "generate_music": {"prompt_a": "a boat"},
    "identify_song": {"file": ("a.wav", b"sound")},
    "download_video": {"url": "https://page.example/v"},
    "summarize_video": {"url": "https://page.example/v"},
    "download_music": {"query": "Danube"},
    "convert_to_mp3": {"file": ("a.wav", b"sound"), "bitrate": "64k"},
    "read_text": {"file": ("a.png", b"picture")},
}


@pytest.fixture(scope="module")
def before(
    reference: ReferenceServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    with before_reference(tmp_path_factory.mktemp("before"), reference) as running:
        yield running


@pytest.mark.parametrize("name", [one.name for one in contract.operations()])
def test_every_operation(before: PolymuxServer, reference: ReferenceServer, name: str) -> None:
    """The fields arrive at the other server and its result arrives here."""
    server, described = before, contract.operation(name)
    given, path = ASKED[name], described.path
    shape = described.variants[-1] if name == "upscale_image" else described.variants[0]
    if shape.model:
        path += f"?model={shape.model}"
    if shape.encoding == "json":
        answer = server.json(path, given)
    else:
        body, head = form(*given.items())
        answer = server.ask("POST", path, body, head)
    assert answer.status == 200, answer.body
    call = reference.calls[-1]
    assert call.path == described.path.removeprefix("/api/v1/")
    assert call.model == (shape.model or "")
    for field, value in given.items():
        if isinstance(value, tuple):
            file = call.body.file(field)
            assert file is not None
            assert (file.file_name, file.content) == value
        elif field != "limit":
            assert call.body.get(field) == value
    text = answer.body.decode()
    assert reference.url not in text
    if name in JOBS and name not in ("transcribe", "summarize_video"):
        links = [one for one in strings(answer.json()) if one.startswith(f"{server.url}/media/")]
        assert len(links) == (2 if name in ("generate_image", "generate_music") else 1)
        for link in links:
            assert fetched(server, link).status == 200
        assert all(one.header("authorization") is None for one in reference.media.requests)


def strings(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in strings(one)]
    if isinstance(value, list):
        return [text for one in value for text in strings(one)]
    return [value] if isinstance(value, str) else []


def prediction(status: str, **more: Any) -> dict[str, Any]:
    return {"id": "job1", "status": status, "model": "m", "version": "v", "input": {}} | more


def test_events_that_break_off_are_taken_up_again(tmp_path: Path) -> None:
    """Logs and progress are reported once. The stream's end is not the job's end."""
    lines = ["one", "two", "three"]

    def event(status: str, count: int, **more: Any) -> steps.Step:
        job = prediction(status, logs="\n".join(lines[:count]), progress=count / 4, **more)
        return steps.send(f"data: {json.dumps(job)}\n\n".encode())

    output = {"text": "Hi", "chunks": []}
    with MisbehavingServer() as other:
        other.script(steps.answer(202, json.dumps(prediction("starting")).encode()), path=STT)
        path = f"{PREDICTIONS}/job1/events"
        other.script(steps.event_stream(), event("processing", 1), steps.reset(), path=path)
        other.script(steps.answer(502, b"{}"), path=path, times=2)
        other.script(steps.event_stream(), event("processing", 2), steps.close(), path=path)
        other.script(steps.event_stream(), event("succeeded", 3, output=output), path=path)
        attic = upstream(tmp_path, other.url, kind="polymux")
        with gateway(tmp_path, {"attic": attic}) as near:
            body, head = form(("audio", ("a.wav", b"x")))
            result = near.ask("POST", STT, body, head).json()
        assert result["output"] == output
        assert result["logs"].split("\n") == lines
        posts = [one for one in other.requests if one.method == "POST"]
        assert len(posts) == 1
        assert posts[0].header("idempotency-key")
        assert other.unscripted == []


@pytest.fixture
def other(ports: list[int]) -> Iterator[MisbehavingServer]:
    with MisbehavingServer(port=ports[0]) as running:
        yield running


@pytest.fixture(scope="module")
def behind(ports: list[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """A gateway whose upstream is `other`."""
    folder = tmp_path_factory.mktemp("behind")
    attic = upstream(folder, f"http://127.0.0.1:{ports[0]}", kind="polymux")
    with gateway(folder, {"attic": attic}) as running:
        yield running


@pytest.mark.parametrize(
    ("end", "status", "code"),
    [
        (prediction("failed", error="nobody speaks", error_code="no_speech"), 422, "no_speech"),
        (prediction("failed", error="at http://10.0.0.7/", error_code="engine_failed"), 502,
         "upstream_failed"),
        (prediction("canceled"), 502, "upstream_failed"),
    ],
)  # fmt: skip
def test_jobs_that_fail_there(
    behind: PolymuxServer, other: MisbehavingServer, end: dict[str, Any], status: int, code: str
) -> None:
    other.script(steps.answer(202, json.dumps(prediction("starting")).encode()), path=STT)
    sent = steps.send(f"data: {json.dumps(end)}\n\n".encode())
    other.script(steps.event_stream(), sent, path=f"{PREDICTIONS}/job1/events")
    answer = behind.ask("POST", STT, *form(("audio", ("a.wav", b"x"))))
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert b"10.0.0.7" not in answer.body


@pytest.mark.parametrize(
    "value",
    [
        None, {}, prediction("succeeded"), prediction("succeeded", output={"response": 3}),
        prediction("succeeded", output="http://127.0.0.1:1/media/x.mp3"),
        {"response": "file:///etc/passwd"}, {"response": None},
    ],
)  # fmt: skip
def test_answers_that_are_none(behind: PolymuxServer, other: MisbehavingServer, value: Any) -> None:
    """Files are downloaded only from the upstream itself."""
    other.script(steps.answer(200, json.dumps(value).encode()), path=CONVERT)
    other.script(steps.answer(404, b""), path="/media/x.mp3")
    answer = behind.ask("POST", CONVERT, *form(("file", ("a.wav", b"x"))))
    assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
    assert list((behind.settings.store.folder / "drafts").iterdir()) == []


def test_the_other_s_key_stays_between_the_two(
    far: PolymuxServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Neither a valid nor an invalid key appears in responses or logs."""
    caplog.set_level(logging.DEBUG)
    canary = "pmx_canary_0123456789abcdefghijklmnop"
    known, unknown = (
        upstream(tmp_path / name, far.url, kind="polymux", key=key)
        for name, key in (("known", far.key), ("unknown", canary))
    )
    for settings, status in ((known, 200), (unknown, 502)):
        with gateway(tmp_path / str(status), {"attic": settings}) as near:
            body, head = form(("file", ("a.wav", tone())))
            answer = near.ask("POST", CONVERT, body, head)
            assert answer.status == status
            responses = answer.body + near.ask("GET", PREDICTIONS).body
            responses += near.ask("GET", "/readyz").body
        kept = [one for one in (tmp_path / str(status) / "gateway").rglob("*") if one.is_file()]
        for data in (responses, caplog.text.encode(), *(one.read_bytes() for one in kept)):
            assert canary.encode() not in data
            assert far.key.encode() not in data
