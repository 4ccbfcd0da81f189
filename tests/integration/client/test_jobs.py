"""Jobs looked at: their pages, their progress, their events, and what is no job."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from servers.listeners import refusing_port
from support.client_children import KEY, start

if TYPE_CHECKING:
    from collections.abc import Iterator

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

PATH = "/api/v1/predictions"
NO_JOB = r"is a polymux\.Prediction or its id"


@pytest.fixture
def ours(reference: ReferenceServer) -> Iterator[polymux.Client]:
    with polymux.Client(reference.url, KEY, timeout=60) as made:
        yield made


def page(number: int, following: object) -> steps.Step:
    jobs = [{"id": f"j{number}", "status": "succeeded"}]
    return steps.answer(200, json.dumps({"results": jobs, "next": following}).encode())


def spellings(url: str) -> list[str]:
    return [
        f"{url}{PATH}?cursor=2",
        f"{PATH}?cursor=2",
        "?cursor=2",
        url.replace("127.0.0.1", "localhost") + f"{PATH}?cursor=2",
        f"https://tunnel.example{PATH}/?cursor=2",
        f"https://public.example/pre{PATH}?cursor=2",
        "https://api.example/v1/predictions?cursor=2",
        f"/pre{PATH}?cursor=2",
    ]


def ids(server: MisbehavingServer, *, asynchronous: bool) -> list[str | None]:
    if not asynchronous:
        with polymux.Client(f"{server.url}/base", KEY, retry=0) as client:
            return [one.id for one in client.predictions.list()]

    async def main() -> list[str | None]:
        async with polymux.AsyncClient(f"{server.url}/base", KEY, retry=0) as client:
            return [one.id async for one in client.predictions.list()]

    return asyncio.run(main())


@pytest.mark.parametrize("asynchronous", [False, True])
def test_pages_by_any_spelling(server: MisbehavingServer, *, asynchronous: bool) -> None:
    """However the server calls itself, the client's own address is asked."""
    for following in spellings(server.url):
        before = len(server.requests)
        server.script(page(1, following))
        server.script(page(2, None))
        assert ids(server, asynchronous=asynchronous) == ["j1", "j2"], following
        asked = [(one.path, one.query) for one in server.requests[before:]]
        assert asked == [(f"/base{PATH}", ""), (f"/base{PATH}", "cursor=2")]


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize(
    "following",
    [5, {"a": 1}, "x", "https://other.example/", "javascript:/predictions", "http://[x/predictions",
     "/predictions?a b", "/predictions?ü", f"/x{PATH}/../keys", f"{PATH}?a=\n", f"{PATH}x?a=1",
     "http://127.0.0.1:1/api/v1/keys?x=/predictions", PATH],
)  # fmt: skip
def test_pages_that_cannot_be_asked_for(
    following: object, server: MisbehavingServer, *, asynchronous: bool
) -> None:
    """The jobs of the first page are given; then it says so, and asks for nothing."""
    server.script(page(1, following))
    jobs: list[str | None] = []

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            jobs.extend([one.id async for one in client.predictions.list()])

    with polymux.Client(server.url, KEY, retry=0) as client:
        listed = client.predictions.list()
        with pytest.raises(errors.DecodeError, match="next: leads to"):  # noqa: PT012
            if asynchronous:
                asyncio.run(main())
            jobs.append(next(listed).id)
            next(listed)
    assert len(server.requests) == 1
    assert asynchronous or jobs == ["j1"]


@pytest.mark.parametrize("job_s", [0, 0.2, 3])
def test_progress_is_told_up_to_the_end(
    job_s: float, reference: ReferenceServer, ours: polymux.Client
) -> None:
    """Of a job that ends at once its end, of another what comes before, too; both clients."""
    reference.predictions.job_s = job_s
    reference.predictions.unfinished_status = 202
    states: list[str] = []
    job = ours.generate_image("a boat", on_progress=lambda one: states.append(one.status))
    assert job.succeeded
    assert states[-1] == "succeeded"
    assert states.count("succeeded") == 1
    assert job_s < 2 or "processing" in states
    awaited: list[str] = []

    async def tell(one: polymux.Prediction) -> None:
        await asyncio.sleep(0)
        awaited.append(one.status)

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY) as client:
            await client.generate_image("a boat", on_progress=tell)
            waited = await client.generate_image("a boat", wait=False)
            await client.predictions.wait(waited, on_progress=tell)
            plain: list[str] = []
            await client.generate_image("a boat", on_progress=lambda one: plain.append(one.status))
            assert plain[-1] == "succeeded"

    asyncio.run(main())
    assert awaited.count("succeeded") == 2
    prefer = [one.request.header("prefer") for one in reference.calls]
    assert prefer == ["wait=2", "wait=2", "respond-async", "wait=2"]


def test_the_end_of_a_job_that_fails_is_told(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    reference.predictions.failure = "out of paint"
    states: list[str] = []
    with pytest.raises(errors.PredictionFailedError):
        ours.generate_image("a boat", on_progress=lambda one: states.append(one.status))
    assert states == ["failed"]
    with pytest.raises(errors.PredictionFailedError):
        ours.generate_image("a boat")
    assert reference.calls[-1].request.header("prefer") == "wait=50"


def test_callbacks_that_nobody_awaits(
    reference: ReferenceServer, ours: polymux.Client, tmp_path: Any
) -> None:
    """Refused, instead of being made and dropped."""
    picture = ours.generate_image("a boat").images[0]
    sent = len(reference.requests)

    async def tell(*_: object) -> None:
        raise AssertionError

    class Teller:
        async def __call__(self, *_: object) -> None:
            raise AssertionError

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY) as client:
            for callback in (tell, Teller()):
                with pytest.raises(TypeError, match="on_upload is a plain function"):
                    await client.read_text(b"x", on_upload=callback)
                with pytest.raises(TypeError, match="on_progress is a plain function"):
                    await picture.asave(tmp_path / "a.png", on_progress=callback)

    asyncio.run(main())
    assert len(reference.requests) == sent


EVENTS = {
    b'{"error": {"message": "the store is gone", "code": "internal", "type": "server_error",'
    b' "param": "id"}}': ("the store is gone", "internal", "server_error", "id"),
    b'{"error": "no more", "code": 5}': ("no more", "5", None, None),
    b'{"detail": "no more"}': ("no more", "api_error", None, None),
    b"it broke": ("it broke", "api_error", None, None),
    b'{"a": 1}': ('{"a": 1}', "api_error", None, None),
}


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("data", EVENTS)
def test_a_failure_among_the_events(
    data: bytes, server: MisbehavingServer, *, asynchronous: bool
) -> None:
    """Read as the body of a status is."""
    server.script(
        steps.event_stream(), steps.send(b"event: error\ndata: " + data + b"\n\n"), steps.close()
    )

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            async for _ in client.predictions.events("a"):
                raise AssertionError

    with (
        polymux.Client(server.url, KEY, retry=0) as client,
        pytest.raises(errors.APIError) as caught,
    ):
        asyncio.run(main()) if asynchronous else list(client.predictions.events("a"))
    error = caught.value
    assert (error.message, error.code, error.type, error.param) == EVENTS[data]


def test_what_is_no_job(server: MisbehavingServer) -> None:
    """Refused with a sentence, and before anything is sent."""
    for given in (5, None, b"a", 1.5):
        wrong: Any = given
        with polymux.Client(server.url, KEY) as client:
            for ask in (client.predictions.get, client.predictions.cancel, client.predictions.wait):
                with pytest.raises(TypeError, match=NO_JOB):
                    ask(wrong)
            with pytest.raises(TypeError, match=NO_JOB):
                list(client.predictions.events(wrong))

        async def main(wrong: Any = wrong) -> None:
            async with polymux.AsyncClient(server.url, KEY) as client:
                with pytest.raises(TypeError, match=NO_JOB):
                    await client.predictions.wait(wrong)

        asyncio.run(main())
    with polymux.Client(server.url, KEY) as client:
        for name in ("\ud800", "", "x" * 300):
            with pytest.raises(errors.InvalidRequestError, match="no id that could be asked for"):
                client.predictions.get(name)
    assert not server.requests


def test_looks_that_come_to_no_answer_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Both clients, whichever the look."""
    caplog.set_level(logging.DEBUG, "polymux")
    with refusing_port() as port:
        url = f"http://127.0.0.1:{port}"

        async def main() -> None:
            async with polymux.AsyncClient(url, KEY, retry=0) as client:
                with pytest.raises(errors.ConnectError):
                    await client.predictions.get("a")
                with pytest.raises(errors.ConnectError):
                    await anext(client.predictions.events("a"))

        with polymux.Client(url, KEY, retry=0) as client:
            for look in (client.predictions.get, client.predictions.wait):
                with pytest.raises(errors.ConnectError):
                    look("a")
            with pytest.raises(errors.ConnectError):
                list(client.predictions.events("a"))
        asyncio.run(main())
    lines = [one for one in caplog.messages if "predictions: ConnectError after" in one]
    assert len(lines) == 5, caplog.messages


LOOKS = """
with polymux.Client(url, key, retry=0) as client:
    client.free_chat("x")
    try:
        client.predictions.get("a")
    except polymux.NotFoundError:
        pass
    client.close()
"""


def test_what_a_process_writes_without_any_set_up(reference: ReferenceServer) -> None:
    """POLYMUX_LOG=debug: a line for each call and look, on standard error; else nothing."""
    for level, wanted in (("debug", 2), ("", 0)):
        child = start(LOOKS, reference.url, environment={"POLYMUX_LOG": level})
        out, told = child.communicate(timeout=60)
        assert child.returncode == 0, told
        assert not out
        assert told.count("\n") == wanted, told
        assert KEY not in told
    child = start(LOOKS, reference.url, environment={"POLYMUX_LOG": "debug"})
    told = child.communicate(timeout=60)[1]
    assert "DEBUG free_chat: status 200 in" in told
    assert "DEBUG predictions: status 404 in" in told
