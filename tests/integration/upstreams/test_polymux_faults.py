"""Another polymux that fails as it is asked, while a job is watched, or as a file is fetched."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import CONVERT, form
from support.upstreams import CANARY, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.steps import Step
    from support.polymux_server import Answer, PolymuxServer

#: The total is far above what any fault may cost, so that none is found by it alone.
LIMITS: dict[str, float] = {"connect_s": 1, "first_byte_s": 1, "idle_s": 1, "total_s": 40}
#: Five interruptions of two tries of a second each, and the pauses between them.
MAX_S = 18.0
JOB = "/api/v1/predictions/job1"
EVENTS, CANCEL, FILE = f"{JOB}/events", f"{JOB}/cancel", "/media/x.mp3"
MP3 = media.mp3()
FAILED, LATE = (502, "upstream_failed"), (504, "upstream_timeout")
PAGE = b"<html><body>data: see the manual</body></html>"


def prediction(status: str, **more: Any) -> bytes:
    told = {"id": "job1", "status": status, "model": "m", "version": "v", "input": {}}
    return json.dumps(told | more).encode()


DONE = prediction("succeeded", output="https://far.example/media/x.mp3")


def faults(good: bytes, content_type: str) -> dict[str, tuple[list[Step], tuple[int, str]]]:
    """What comes in the place of a right answer, and how callers are told."""
    head = steps.head(200, [("Content-Type", content_type), ("Content-Length", len(good) + 1)])
    return {
        "reset": ([steps.reset()], FAILED),
        "closed": ([steps.close()], FAILED),
        "silent": ([steps.stall()], LATE),
        "short": ([head, steps.send(good), steps.close()], FAILED),
        "reset within": ([head, steps.send(good), steps.reset()], FAILED),
        "stalled": ([head, steps.send(good), steps.stall()], LATE),
        "chunks cut": (
            [steps.chunked_head(200, content_type), steps.chunk(good), steps.close()], FAILED,
        ),
        "page": ([steps.answer(200, PAGE, content_type="text/html")], FAILED),
        "page by another name": ([steps.answer(200, PAGE, content_type=content_type)], FAILED),
        "nothing": ([steps.answer(200, b"", content_type=content_type)], FAILED),
    }  # fmt: skip


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[PolymuxServer, list[str]]]:
    """A gateway before an address that every test gives another server to."""
    folder = tmp_path_factory.mktemp("faults")
    with MisbehavingServer() as first:
        port = first.port
    attic = upstream(folder, f"http://127.0.0.1:{port}", kind="polymux", **LIMITS)
    with gateway(folder, {"attic": attic}) as server:
        yield server, [str(port)]


@pytest.fixture
def other(running: tuple[PolymuxServer, list[str]]) -> Iterator[MisbehavingServer]:
    """As good as new: scripts of an earlier test are gone."""
    with MisbehavingServer(port=int(running[1][0])) as server:
        server.script(steps.answer(200, prediction("canceled")), path=CANCEL, times=None)
        yield server


@pytest.fixture
def server(running: tuple[PolymuxServer, list[str]]) -> PolymuxServer:
    return running[0]


def converted(server: PolymuxServer) -> Answer:
    body, head = form(("file", ("a.wav", media.wav())))
    return server.ask("POST", CONVERT, body, head)


def assert_failed(
    server: PolymuxServer, other: MisbehavingServer, began: float, expected: tuple[int, str]
) -> None:
    answer = converted(server)
    assert time.monotonic() - began < MAX_S
    assert (answer.status, answer.json()["code"]) == expected, answer.body
    assert answer.json()["error"].startswith("the upstream attic ")
    for secret in (CANARY, str(other.port), "far.example", "/media/"):
        assert secret not in answer.body.decode()
    folder = server.settings.store.folder
    assert list(folder.glob("drafts/*")) == list(folder.glob("media/*/*")) == []
    assert server.state.service.store.media.used_bytes == 0
    assert other.unscripted == []


def assert_let_go(other: MisbehavingServer, path: str) -> None:
    for request in other.requests:
        if request.path == path:
            other.wait_closed(request.connection, 1)


@pytest.mark.parametrize("fault", faults(b"", ""))
def test_as_it_is_asked(server: PolymuxServer, other: MisbehavingServer, fault: str) -> None:
    """Twice at most, under one key: it does it once. Nothing is fetched of half an answer."""
    play, expected = faults(DONE, "application/json")[fault]
    other.script(*play, path=CONVERT, times=None)
    assert_failed(server, other, time.monotonic(), expected)
    assert {one.path for one in other.requests} == {CONVERT}
    assert len(other.requests) <= 2
    assert len({one.header("idempotency-key") for one in other.requests}) == 1
    if "page" not in fault and fault != "nothing":
        assert_let_go(other, CONVERT)


@pytest.mark.parametrize("fault", faults(b"", ""))
def test_while_a_job_is_watched(
    server: PolymuxServer, other: MisbehavingServer, fault: str
) -> None:
    """Tried a few times and given up; what nobody waits for any more is cancelled there.

    The end of the job comes in each answer, but for the line by which an event ends.
    """
    cut = b"data: " + DONE[:-1]
    play, expected = faults(cut, "text/event-stream")[fault]
    other.script(steps.answer(202, prediction("starting")), path=CONVERT)
    other.script(*play, path=EVENTS, times=None)
    assert_failed(server, other, time.monotonic(), expected)
    paths = [one.path for one in other.requests]
    assert (paths.count(CONVERT), paths.count(CANCEL)) == (1, 1)
    assert 1 < paths.count(EVENTS) <= 12
    assert FILE not in paths
    if "page" not in fault and fault != "nothing":
        assert_let_go(other, EVENTS)


@pytest.mark.parametrize("status", [429, 503])
def test_who_may_not_watch_yet_waits(
    server: PolymuxServer, other: MisbehavingServer, status: int
) -> None:
    """The job is there and goes on: it is no reason to end it, however often it comes."""
    other.script(steps.answer(202, prediction("starting")), path=CONVERT)
    busy = b'{"error": "ask again", "code": "rate_limited"}'
    for _ in range(3):
        other.script(steps.answer(status, busy, headers=[("Retry-After", "1")]), path=EVENTS)
    end = steps.send(b"data: " + DONE + b"\n\n")
    other.script(steps.event_stream(), end, steps.close(), path=EVENTS)
    other.script(steps.answer(200, MP3, content_type="audio/mpeg"), path=FILE)
    began = time.monotonic()
    answer = converted(server)
    assert answer.status == 200, answer.body
    assert time.monotonic() - began >= 3
    paths = [one.path for one in other.requests]
    assert (paths.count(EVENTS), paths.count(CANCEL)) == (4, 0)
    for one in server.ask("GET", "/api/v1/predictions").json()["results"]:  # Others look for none.
        assert server.ask("DELETE", f"/api/v1/predictions/{one['id']}").status == 204


@pytest.mark.parametrize("watched", [False, True], ids=["at once", "job"])
@pytest.mark.parametrize("fault", [*faults(b"", ""), "another kind"])
def test_as_a_result_is_fetched(
    server: PolymuxServer, other: MisbehavingServer, fault: str, watched: bool
) -> None:
    """Whole, or not at all."""
    more = {"another kind": ([steps.answer(200, media.png(), content_type="audio/mpeg")], FAILED)}
    play, expected = (faults(MP3, "audio/mpeg") | more)[fault]
    if watched:
        other.script(steps.answer(202, prediction("starting")), path=CONVERT)
        event = steps.send(b"data: " + DONE + b"\n\n")
        other.script(steps.event_stream(), event, path=EVENTS)
    else:
        response = json.dumps({"response": "https://far.example/media/x.mp3"}).encode()
        other.script(steps.answer(200, response), path=CONVERT)
    other.script(*play, path=FILE, times=None)
    assert_failed(server, other, time.monotonic(), expected)
    paths = [one.path for one in other.requests]
    assert paths.count(CONVERT) == 1
    assert paths.count(FILE) == 1
    assert_let_go(other, FILE)
