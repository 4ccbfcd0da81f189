"""Another polymux server fails: at the request, while a job is watched, or at a download."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import CONVERT, form
from support.upstream_faults import FAILED, NO_ANSWER, broken, of
from support.upstreams import CANARY, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import Answer, PolymuxServer
    from support.upstream_faults import Fault

#: The total is much longer than any fault takes: the other limits must detect it.
LIMITS: dict[str, float] = {"connect_s": 1, "first_byte_s": 0.5, "idle_s": 0.5, "total_s": 40}
#: In seconds. Five interruptions with two tries each, including the pauses, take half of it.
MAX_S = 36.0
JOB = "/api/v1/predictions/job1"
EVENTS, CANCEL, FILE = f"{JOB}/events", f"{JOB}/cancel", "/media/x.mp3"
MP3 = media.mp3()
NAMES = ("shorter", "page")


def prediction(status: str, **more: Any) -> bytes:
    fields = {"id": "job1", "status": status, "model": "m", "version": "v", "input": {}}
    return json.dumps(fields | more).encode()


DONE = prediction("succeeded", output="https://far.example/media/x.mp3")
END = steps.send(b"data: " + DONE + b"\n\n")
AS_ASKED = of(NO_ANSWER, "reset", "silent") | of(broken(DONE), *NAMES)
#: Every response has the end of the job, except the newline that ends the event.
AS_WATCHED = of(NO_ANSWER, "silent") | of(
    broken(b"data: " + DONE[:-1], "text/event-stream"), *NAMES
)
AS_FETCHED = (
    of(NO_ANSWER, "reset", "silent")
    | of(broken(MP3, "audio/mpeg"), *NAMES)
    | {"another kind": ([steps.answer(200, media.png(), content_type="audio/mpeg")], FAILED)}
)


@pytest.fixture(scope="module")
def running(
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[tuple[PolymuxServer, int]]:
    """A gateway whose upstream port each test uses for a different server."""
    folder = tmp_path_factory.mktemp("faults")
    with MisbehavingServer() as first:
        port = first.port
    attic = upstream(folder, f"http://127.0.0.1:{port}", kind="polymux", **LIMITS)
    with gateway(folder, {"attic": attic}) as server:
        yield server, port


@pytest.fixture
def other(running: tuple[PolymuxServer, int]) -> Iterator[MisbehavingServer]:
    """The upstream in its initial state, without scripts of an earlier test."""
    with MisbehavingServer(port=running[1]) as server:
        server.script(steps.answer(200, prediction("canceled")), path=CANCEL, times=None)
        yield server


@pytest.fixture
def server(running: tuple[PolymuxServer, int]) -> PolymuxServer:
    return running[0]


def converted(server: PolymuxServer) -> Answer:
    body, head = form(("file", ("a.wav", media.wav())))
    return server.ask("POST", CONVERT, body, head)


def assert_failed(
    server: PolymuxServer, other: MisbehavingServer, fault: Fault, path: str
) -> list[str]:
    """Check that the fault at this path causes its error in time. Returns the requested paths."""
    play, expected = fault
    other.script(*play, path=path, times=None)
    began = time.monotonic()
    answer = converted(server)
    assert time.monotonic() - began < MAX_S
    assert (answer.status, answer.json()["code"]) == expected, answer.body
    assert "attic" in answer.json()["error"]
    for secret in (CANARY, str(other.port), "far.example", "/media/"):
        assert secret not in answer.body.decode()
    folder = server.settings.store.folder
    assert list(folder.glob("drafts/*")) == list(folder.glob("media/*/*")) == []
    assert server.state.service.store.media.used_bytes == 0
    assert other.unscripted == []
    for request in other.requests:
        if request.path == path and play not in (AS_ASKED["page"][0], AS_WATCHED["page"][0]):
            other.wait_closed(request.connection, 15)
    return [one.path for one in other.requests]


@pytest.mark.parametrize("fault", AS_ASKED)
def test_as_it_is_asked(server: PolymuxServer, other: MisbehavingServer, fault: str) -> None:
    """At most two tries with one Idempotency-Key: one job. Partial responses are not followed."""
    paths = assert_failed(server, other, AS_ASKED[fault], CONVERT)
    assert set(paths) == {CONVERT}
    assert len(paths) <= 2
    assert len({one.header("idempotency-key") for one in other.requests}) == 1


@pytest.mark.parametrize("fault", AS_WATCHED)
def test_while_a_job_is_watched(
    server: PolymuxServer, other: MisbehavingServer, fault: str
) -> None:
    """Gives up after a few tries and cancels the job on the other server."""
    other.script(steps.answer(202, prediction("starting")), path=CONVERT)
    paths = assert_failed(server, other, AS_WATCHED[fault], EVENTS)
    assert (paths.count(CONVERT), paths.count(CANCEL)) == (1, 1)
    assert 1 < paths.count(EVENTS) <= 12
    assert FILE not in paths


def test_who_may_not_watch_yet_waits(server: PolymuxServer, other: MisbehavingServer) -> None:
    """A rate limit on watching is not a reason to cancel the job, even if repeated."""
    other.script(steps.answer(202, prediction("starting")), path=CONVERT)
    busy = b'{"error": "ask again", "code": "rate_limited"}'
    other.script(steps.answer(429, busy, headers=[("Retry-After", "1")]), path=EVENTS, times=2)
    other.script(steps.event_stream(), END, steps.close(), path=EVENTS)
    other.script(steps.answer(200, MP3, content_type="audio/mpeg"), path=FILE)
    began = time.monotonic()
    answer = converted(server)
    assert answer.status == 200, answer.body
    assert time.monotonic() - began >= 2
    paths = [one.path for one in other.requests]
    assert (paths.count(EVENTS), paths.count(CANCEL)) == (3, 0)
    # Other tests expect no jobs.
    for one in server.ask("GET", "/api/v1/predictions").json()["results"]:
        assert server.ask("DELETE", f"/api/v1/predictions/{one['id']}").status == 204


@pytest.mark.parametrize("fault", AS_FETCHED)
def test_as_a_result_is_fetched(
    server: PolymuxServer, other: MisbehavingServer, fault: str
) -> None:
    """The result is complete or missing, never partial."""
    other.script(steps.answer(202, prediction("starting")), path=CONVERT)
    other.script(steps.event_stream(), END, path=EVENTS)
    paths = assert_failed(server, other, AS_FETCHED[fault], FILE)
    assert (paths.count(CONVERT), paths.count(FILE)) == (1, 1)


def test_as_a_result_that_came_at_once_is_fetched(
    server: PolymuxServer, other: MisbehavingServer
) -> None:
    response = json.dumps({"response": "https://far.example/media/x.mp3"}).encode()
    other.script(steps.answer(200, response), path=CONVERT)
    paths = assert_failed(server, other, AS_FETCHED["shorter"], FILE)
    assert (paths.count(CONVERT), paths.count(FILE)) == (1, 1)
