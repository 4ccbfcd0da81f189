"""Header fields of every kind of request: sent once, the caller's values replace the client's."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.errors import InvalidRequestError
from servers import steps
from servers.reference import ReferenceServer
from support.client_calls import END, FINE, KINDS, called
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from servers.misbehaving import MisbehavingServer
    from servers.records import Request
    from servers.steps import Step

#: Spellings that a caller may use for fields that the client also sends.
MINE = {"authorization": "Bearer of-a-caller-77", "USER-AGENT": "mine", "Accept": "a/b"}


def events(data: bytes) -> Step:
    return steps.answer(200, data, content_type="text/event-stream")


JOB = steps.answer(200, b'{"id":"j1","status":"processing"}')
WAYS: dict[str, tuple[Step, Callable[[Any], object]]] = {
    "chat": (FINE, lambda client: client.free_chat("x")),
    "stream": (events(END), lambda client: client.chat("x", stream=True)),
    "upload": (FINE, lambda client: client.read_text(("a.png", b"x"))),
    "get": (JOB, lambda client: client.predictions.get("j1")),
    "cancel": (JOB, lambda client: client.predictions.cancel("j1")),
    "list": (
        steps.answer(200, b'{"results":[{"id":"j1","status":"processing"}]}'),
        lambda client: client.predictions.list(),
    ),
    "events": (
        events(b'data: {"id":"j1","status":"succeeded"}\n\n'),
        lambda client: client.predictions.events("j1"),
    ),
}


def asked(kind: type, server: MisbehavingServer, way: str, **options: Any) -> Request:
    """Make one call in the given way and return its request."""
    answer, call = WAYS[way]
    server.script(answer)
    called(kind, server.url, call, retry=0, **options)
    return server.requests[-1]


def twice(request: Request) -> Sequence[bytes]:
    """Names of header fields that occur more than once."""
    names = [name.lower() for name, _ in request.headers]
    return [name for name in set(names) if names.count(name) > 1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("way", WAYS)
def test_the_callers_fields_go_in_place_of_ours(
    way: str, kind: type, server: MisbehavingServer
) -> None:
    """The caller's credential replaces the API key, which must not reach another service."""
    request = asked(kind, server, way, headers=MINE)
    assert {name: request.all_of(name) for name in MINE} == {
        name: [value] for name, value in MINE.items()
    }
    assert not twice(request)
    assert KEY.encode() not in b"".join(value for _, value in request.headers)


@pytest.mark.parametrize("way", WAYS)
def test_each_of_ours_once(way: str, server: MisbehavingServer, client: polymux.Client) -> None:
    """Over one connection, the next request has the client's own fields again."""
    answer, call = WAYS[way]
    theirs = client.with_options(headers={**MINE, "X-Team": "red"})
    for one in (theirs, theirs.with_options(headers={"x-team": "blue"}), client):
        server.script(answer)
        given: Any = call(one)
        if way in ("stream", "list", "events"):
            assert list(given)
    first, second, third = server.requests
    assert first.all_of("authorization") == ["Bearer of-a-caller-77"]
    assert second.all_of("x-team") == ["blue"]
    assert third.all_of("authorization") == [f"Bearer {KEY}"]
    assert third.all_of("user-agent") == [f"polymux/{polymux.__version__}"]
    assert not twice(third)
    (accept,) = third.all_of("accept")
    assert ("text/event-stream" in accept) == (way in ("stream", "events"))


def test_signs_in_names(server: MisbehavingServer) -> None:
    """All that RFC 9110 allows, such as those of Kubernetes and S3; nothing else."""
    name = "x.!#$%&'*+-^_`|~9"
    server.script(FINE)
    with polymux.Client(server.url, KEY, headers={name: "a"}) as client:
        client.free_chat("x")
    assert server.requests[0].header(name) == "a"
    for wrong in ("a b", "a:b", "a(b", "ä", ""):
        with pytest.raises(InvalidRequestError):
            polymux.Client(server.url, KEY, headers={wrong: "a"})


@pytest.mark.parametrize("name", ["Content-Type", "content-type", "Content-Length", "Host"])
def test_fields_that_are_the_bodys(name: str) -> None:
    """A second Content-Type could change how the server reads the body."""
    with pytest.raises(InvalidRequestError, match=name):
        polymux.Client("http://127.0.0.1:8000", KEY, headers={name: "text/plain"})


@pytest.mark.parametrize("way", ["get", "list", "cancel", "events"])
@pytest.mark.parametrize("kind", KINDS)
def test_requests_about_jobs_are_named(way: str, kind: type, server: MisbehavingServer) -> None:
    """Every request has its own ID. Only cancellations have an Idempotency-Key."""
    seen = [asked(kind, server, way) for _ in range(2)]
    names = {one.header("x-request-id") for one in seen}
    assert len(names) == 2
    assert all(names)
    keys = {one.header("idempotency-key") for one in seen}
    assert len(keys) == (2 if way == "cancel" else 1)
    assert (None in keys) == (way != "cancel")
    assert all(one.header("content-type") is None for one in seen)
    assert not twice(seen[0])
    assert all(one.body_bytes == 0 for one in seen)
    own = {"X-Request-Id": "r-1", "idempotency-key": "k-1"}
    if way in ("get", "cancel"):
        request = asked(kind, server, way, headers=own)
        assert {name: request.all_of(name) for name in own} == {
            name: [value] for name, value in own.items()
        }


def test_files_get_none_of_them(reference: ReferenceServer) -> None:
    """File downloads have neither the API key nor the caller's fields, whatever the server."""
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
