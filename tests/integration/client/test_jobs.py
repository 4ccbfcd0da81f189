"""Jobs: pages, progress, events and invalid arguments."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import KINDS, called
from support.client_children import KEY, start

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

PATH = "/api/v1/predictions"


def page(number: int, following: object) -> steps.Step:
    jobs = [{"id": f"j{number}", "status": "succeeded"}]
    return steps.answer(200, json.dumps({"results": jobs, "next": following}).encode())


@pytest.mark.parametrize("kind", KINDS)
def test_pages_by_any_spelling(kind: type, server: MisbehavingServer) -> None:
    """The client requests the next page from its own URL, whatever URL the server returns."""
    spellings = [
        f"{server.url}{PATH}?cursor=2",
        f"{PATH}?cursor=2",
        "?cursor=2",
        f"https://public.example/pre{PATH}/?cursor=2",
        "https://api.example/v1/predictions?cursor=2",
    ]
    for following in spellings:
        before = len(server.requests)
        server.script(page(1, following))
        server.script(page(2, None))
        jobs = called(kind, f"{server.url}/base", lambda client: client.predictions.list())
        assert [one.id for one in jobs] == ["j1", "j2"], following
        asked = [(one.path, one.query) for one in server.requests[before:]]
        assert asked == [(f"/base{PATH}", ""), (f"/base{PATH}", "cursor=2")]


@pytest.mark.parametrize(
    "following",
    [5, "https://other.example/", "http://[x/predictions", f"/x{PATH}/../keys", f"{PATH}?a=\n",
     "http://127.0.0.1:1/api/v1/keys?x=/predictions", PATH],
)  # fmt: skip
def test_pages_that_cannot_be_asked_for(
    following: object, server: MisbehavingServer, client: polymux.Client
) -> None:
    """The first page is returned. The next one raises an error without a request."""
    server.script(page(1, following), times=2)
    listed = client.predictions.list()
    assert next(listed).id == "j1"
    with pytest.raises(errors.DecodeError, match="next"):
        next(listed)
    with pytest.raises(errors.DecodeError, match="next"):
        called(polymux.AsyncClient, server.url, lambda client: client.predictions.list())
    assert len(server.requests) == 2


@pytest.mark.parametrize("job_s", [0, 2.5])
def test_progress_is_reported_up_to_the_end(
    job_s: float, reference: ReferenceServer, ours: polymux.Client
) -> None:
    """A job that ends at once reports only its end. Other jobs also report progress before."""
    reference.predictions.job_s = job_s
    reference.predictions.unfinished_status = 202
    states: list[str] = []
    job = ours.generate_image("a boat", on_progress=lambda one: states.append(one.status))
    assert job.succeeded
    assert states[-1] == "succeeded"
    assert states.count("succeeded") == 1
    assert ("processing" in states) == (job_s > 0)
    assert reference.calls[-1].request.header("prefer") == "wait=2"


def test_progress_in_a_loop(reference: ReferenceServer) -> None:
    """Callbacks may be plain or async functions."""
    reference.predictions.job_s = 0.2
    reference.predictions.unfinished_status = 202
    states: list[str] = []

    async def tell(one: polymux.Prediction) -> None:
        await asyncio.sleep(0)
        states.append(one.status)

    async def work(client: polymux.AsyncClient) -> None:
        await client.generate_image("a boat", on_progress=tell)
        waited = await client.generate_image("a boat", wait=False)
        await client.predictions.wait(waited, on_progress=tell)
        await client.generate_image("a boat", on_progress=lambda one: states.append(one.status))

    called(polymux.AsyncClient, reference.url, work)
    assert states[-1] == "succeeded"
    assert states.count("succeeded") == 3
    prefer = [one.request.header("prefer") for one in reference.calls]
    assert prefer == ["wait=2", "respond-async", "wait=2"]


def test_the_end_of_a_failing_job_is_reported(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    reference.predictions.failure = "out of paint"
    states: list[str] = []
    with pytest.raises(errors.PredictionFailedError):
        ours.generate_image("a boat", on_progress=lambda one: states.append(one.status))
    assert states == ["failed"]


EVENTS = {
    b'{"error": {"message": "the store is gone", "code": "internal", "type": "server_error",'
    b' "param": "id"}}': ("the store is gone", "internal", "server_error", "id"),
    b'{"error": "no more", "code": 5}': ("no more", "5", None, None),
    b"it broke": ("it broke", "api_error", None, None),
    b'{"a": 1}': ('{"a": 1}', "api_error", None, None),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("data", EVENTS)
def test_a_failure_among_the_events(data: bytes, kind: type, server: MisbehavingServer) -> None:
    """An error event is parsed like the body of an error response."""
    event = steps.send(b"event: error\ndata: " + data + b"\n\n")
    server.script(steps.event_stream(), event, steps.close())
    with pytest.raises(errors.APIError) as caught:
        called(kind, server.url, lambda client: client.predictions.events("a"), retry=0)
    error = caught.value
    assert (error.message, error.code, error.type, error.param) == EVENTS[data]


@pytest.mark.parametrize("kind", KINDS)
def test_events_that_end_before_the_job(kind: type, server: MisbehavingServer) -> None:
    server.script(steps.event_stream(), steps.close())
    with pytest.raises(errors.StreamInterruptedError) as caught:
        called(kind, server.url, lambda client: client.predictions.events("a"), timeout=20)
    assert caught.value.retry_safe


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["get", "cancel", "wait", "events"])
def test_what_is_no_job(name: str, kind: type, server: MisbehavingServer) -> None:
    """Invalid jobs raise an error before anything is sent."""
    for wrong in (5, None, b"a"):
        with pytest.raises(TypeError, match=r"polymux\.Prediction"):
            called(kind, server.url, lambda client: getattr(client.predictions, name)(wrong))  # noqa: B023
    for wrong in ("\ud800", "", "x" * 300):
        with pytest.raises(errors.InvalidRequestError):
            called(kind, server.url, lambda client: getattr(client.predictions, name)(wrong))  # noqa: B023
    assert not server.requests


LOOKS = """
with polymux.Client(url, key, retry=0) as client:
    client.free_chat("x")
    try:
        client.predictions.get("a")
    except polymux.NotFoundError:
        pass
"""


def test_what_a_process_writes_without_any_set_up(reference: ReferenceServer) -> None:
    """POLYMUX_LOG=debug logs one line per call and poll to standard error, and nothing else."""
    for level in ("debug", ""):
        child = start(LOOKS, reference.url, environment={"POLYMUX_LOG": level})
        stdout, stderr = child.communicate(timeout=60)
        assert child.returncode == 0, stderr
        assert not stdout
        assert stderr.count("\n") == (2 if level else 0), stderr
        assert KEY not in stderr
        for word in ("DEBUG", "free_chat", "200", "predictions", "404"):
            assert (word in stderr) == bool(level), stderr
