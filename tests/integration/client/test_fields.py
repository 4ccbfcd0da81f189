"""Header fields of every kind of request: each once, and the caller's in place of the client's."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux._util.redaction import redact
from polymux.errors import InvalidRequestError
from servers import steps
from servers.reference import ReferenceServer
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from servers.misbehaving import MisbehavingServer
    from servers.records import Request

#: As a caller may spell them; each is one that the client would send itself.
MINE = {"authorization": "Bearer of-a-caller-77", "USER-AGENT": "mine", "Accept": "a/b"}
FINE = steps.answer(200, b'{"response":"fine"}')
EVENTS = steps.answer(
    200,
    b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\ndata: [DONE]\n\n',
    content_type="text/event-stream",
)
JOB = steps.answer(200, b'{"id":"j1","status":"processing"}')
JOBS = steps.answer(200, b'{"results":[{"id":"j1","status":"processing"}]}')
ENDED = steps.answer(
    200, b'data: {"id":"j1","status":"succeeded"}\n\n', content_type="text/event-stream"
)
WAYS = ("chat", "stream", "upload", "get", "list", "cancel", "events")


def called(client: polymux.Client, server: MisbehavingServer, way: str) -> Request:
    """The request of one call in that way."""
    if way == "chat":
        server.script(FINE)
        client.free_chat("x")
    elif way == "stream":
        server.script(EVENTS)
        assert list(client.chat("x", stream=True))
    elif way == "upload":
        server.script(steps.answer(200, b'{"text":"fine"}'))
        client.read_text(("a.png", b"x"))
    elif way == "list":
        server.script(JOBS)
        assert [one.id for one in client.predictions.list()] == ["j1"]
    elif way == "events":
        server.script(ENDED)
        assert [one.status for one in client.predictions.events("j1")] == ["succeeded"]
    else:
        server.script(JOB)
        getattr(client.predictions, way)("j1")
    return server.requests[-1]


async def awaited(client: polymux.AsyncClient, server: MisbehavingServer, way: str) -> Request:
    if way == "list":
        server.script(JOBS)
        assert [one.id async for one in client.predictions.list()] == ["j1"]
    elif way == "events":
        server.script(ENDED)
        assert [one.status async for one in client.predictions.events("j1")] == ["succeeded"]
    else:
        server.script(JOB)
        await getattr(client.predictions, way)("j1")
    return server.requests[-1]


def twice(request: Request) -> Sequence[bytes]:
    """Names that came more than once."""
    names = [name.lower() for name, _ in request.headers]
    return [name for name in set(names) if names.count(name) > 1]


@pytest.fixture
def mine(server: MisbehavingServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, KEY, timeout=20, retry=0, headers=MINE) as made:
        yield made


@pytest.mark.parametrize("way", WAYS)
def test_the_callers_fields_go_in_place_of_ours(
    way: str, server: MisbehavingServer, mine: polymux.Client
) -> None:
    """The key above all: it is not for whoever the caller's own credential is for."""
    request = called(mine, server, way)
    assert {name: request.all_of(name) for name in MINE} == {
        name: [value] for name, value in MINE.items()
    }
    assert not twice(request)
    assert KEY.encode() not in b"".join(value for _, value in request.headers)


@pytest.mark.parametrize("way", WAYS)
def test_each_of_ours_once(way: str, server: MisbehavingServer, client: polymux.Client) -> None:
    """Over one connection: what a request replaced is there again for the next."""
    theirs = client.with_options(headers=MINE)
    assert called(theirs, server, way).all_of("authorization") == ["Bearer of-a-caller-77"]
    request = called(client, server, way)
    assert request.all_of("authorization") == [f"Bearer {KEY}"]
    assert request.all_of("user-agent") == [f"polymux/{polymux.__version__}"]
    assert not twice(request)
    (accept,) = request.all_of("accept")
    assert ("text/event-stream" in accept) == (way in ("stream", "events"))


def test_options_replace_a_field_however_it_is_written(server: MisbehavingServer) -> None:
    with polymux.Client(server.url, KEY, headers={"X-Team": "red"}) as red:
        request = called(red.with_options(headers={"x-team": "blue"}), server, "chat")
    assert request.all_of("x-team") == ["blue"]


@pytest.mark.parametrize("name", ["Content-Type", "content-type", "Content-Length", "Host"])
def test_fields_that_are_the_bodys(name: str) -> None:
    """A second type beside the body's would have it read as something else."""
    with pytest.raises(InvalidRequestError, match="no field that can be added"):
        polymux.Client("http://127.0.0.1:8000", KEY, headers={name: "text/plain"})


@pytest.mark.parametrize("way", ["get", "list", "cancel", "events"])
@pytest.mark.parametrize("kind", ["sync", "asyncio"])
def test_requests_about_jobs_are_named(
    way: str, kind: str, server: MisbehavingServer, client: polymux.Client
) -> None:
    """As all requests; a cancellation may be repeated, and is no form."""
    seen: list[Any] = []

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as other:
            seen.extend([await awaited(other, server, way) for _ in range(2)])

    if kind == "sync":
        seen.extend(called(client, server, way) for _ in range(2))
    else:
        asyncio.run(main())
    names = {one.header("x-request-id") for one in seen}
    assert len(names) == 2
    assert all(names)
    keys = {one.header("idempotency-key") for one in seen}
    assert len(keys) == (2 if way == "cancel" else 1)
    assert (None in keys) == (way != "cancel")
    assert all(one.header("content-type") is None for one in seen)
    assert not twice(seen[0])
    assert all(one.body_bytes == 0 for one in seen)


@pytest.mark.parametrize("way", ["get", "cancel"])
def test_the_callers_own_names_of_requests_about_jobs(
    way: str, server: MisbehavingServer, client: polymux.Client
) -> None:
    own = {"X-Request-Id": "r-1", "idempotency-key": "k-1"}
    request = called(client.with_options(headers=own), server, way)
    assert {name: request.all_of(name) for name in own} == {
        name: [value] for name, value in own.items()
    }


def test_one_name_over_all_tries(server: MisbehavingServer) -> None:
    server.script(steps.answer(503), times=2)
    server.script(JOB)
    retry = polymux.Retry(2, first_backoff_s=0.01)
    with polymux.Client(server.url, KEY, retry=retry) as client:
        client.predictions.cancel("j1")
    assert len(server.requests) == 3
    assert len({one.header("x-request-id") for one in server.requests}) == 1
    assert len({one.header("idempotency-key") for one in server.requests}) == 1


def test_files_get_none_of_them(reference: ReferenceServer) -> None:
    """Neither the key nor the caller's fields, from the same server or another."""
    own = {"X-Team": "blue", "Cookie": "secret=1", "User-Agent": "mine"}
    with ReferenceServer(token=KEY) as other:
        for media in (reference.media, other.media):
            reference.media.public_url = media.public_url
            with polymux.Client(reference.url, KEY, headers=own) as client:
                picture = client.generate_image("a boat").images[0]
                if media is reference.media:
                    assert picture.read()
                else:
                    with pytest.raises(polymux.errors.URLRefusedError):
                        picture.read()
    (request,) = reference.media.requests
    assert not other.requests
    for name in ("authorization", "x-team", "cookie"):
        assert request.header(name) is None
    assert request.header("user-agent") == f"polymux/{polymux.__version__}"


def test_the_word_before_a_key_is_no_secret() -> None:
    """Of what a caller sends, the key is hidden from then on, and not how it is called."""
    with polymux.Client("http://localhost:1", headers={"Authorization": "Token canary-a1 b2c3"}):
        assert redact("canary-a1 and b2c3 by Token") == "*** and *** by Token"
