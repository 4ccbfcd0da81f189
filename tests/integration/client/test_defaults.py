"""What a client does by itself: deadlines, preferences, the head of a stream, its log."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import contract, errors
from polymux.client import call
from polymux.client.options import Timeout
from polymux.client.settings import Settings
from servers import steps
from support.client_children import KEY

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

#: Quick operations; all others are jobs.
QUICK = {"chat", "free_chat", "search_music", "identify_song", "read_text"}
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
GOOD = steps.answer(200, b'{"response":"fine"}')
JOB = b'{"id":"a","status":"succeeded","output":"fine"}'


@pytest.mark.parametrize("operation", [one.name for one in contract.operations()])
def test_deadlines(operation: str) -> None:
    """Of answers: connect 5 s, write 60 s, idle 60 s, and in all 300 s, or 1,900 s for jobs."""
    plan = call.Plan(Settings(), operation, stream=False, wait_s=50)
    total = 300.0 if operation in QUICK else 1900.0
    never = math.inf
    wanted = Timeout(total, connect=5.0, write=60.0, first_byte=never, idle=60.0, event=never)
    assert plan.timeout == wanted


@pytest.mark.parametrize("operation", ["chat", "free_chat"])
def test_deadlines_of_streams(operation: str) -> None:
    """No total; 300 s to the first piece, 60 s between two."""
    plan = call.Plan(Settings(), operation, stream=True, wait_s=50)
    wanted = Timeout(math.inf, connect=5.0, write=60.0, first_byte=300.0, idle=60.0, event=60.0)
    assert plan.timeout == wanted


@pytest.mark.parametrize("kind", [polymux.Client, polymux.AsyncClient])
def test_what_is_preferred(kind: type, server: MisbehavingServer) -> None:
    """Jobs are waited for, for 50 s at a time, or not at all; all else is not asked about."""
    server.script(steps.answer(200, JOB), times=None)
    calls: list[tuple[str, tuple[Any, ...], dict[str, Any], str | None]] = [
        ("generate_music", ("waves",), {}, "wait=50"),
        ("generate_music", ("waves",), {"wait": False}, "respond-async"),
        ("chat", ("hello",), {}, None),
        ("read_text", (("a.png", b"x"),), {}, None),
    ]
    for name, arguments, options, wanted in calls:
        with_ignored_answers(kind, server.url, name, arguments, options)
        assert server.requests[-1].header("prefer") == wanted, name


def with_ignored_answers(
    kind: type, url: str, name: str, arguments: tuple[Any, ...], options: dict[str, Any]
) -> None:
    """Calls a method; its answer may be another operation's."""

    async def awaited() -> None:
        async with polymux.AsyncClient(url, KEY, retry=0) as client:
            await getattr(client, name)(*arguments, **options)

    try:
        if kind is polymux.AsyncClient:
            asyncio.run(awaited())
        else:
            with polymux.Client(url, KEY, retry=0) as client:
                getattr(client, name)(*arguments, **options)
    except errors.DecodeError:
        pass


def test_the_head_of_a_stream_before_its_first_chunk(server: MisbehavingServer) -> None:
    """`.response` is there as soon as the header is, and so is the stream."""
    head = steps.event_stream(headers=[("X-Told", "early")])

    async def awaited() -> None:
        async with polymux.AsyncClient(server.url, KEY, retry=0) as client:
            stream = await asyncio.wait_for(client.chat("x", stream=True), 10)
            assert stream.response is not None
            assert stream.response.headers["x-told"] == "early"
            await stream.aclose()

    server.script(head, steps.stall(), times=2)
    with polymux.Client(server.url, KEY, retry=0) as client:
        stream = client.chat("x", stream=True)
        assert stream.response is not None
        assert stream.response.headers["x-told"] == "early"
        stream.close()
    asyncio.run(awaited())


def test_a_call_that_must_not_begin_ends_at_once(tmp_path: Path) -> None:
    """The first of a client, before its thread has waited for anything, and those behind it."""

    async def ask() -> None:
        missing = str(tmp_path / "missing.pem")
        async with polymux.AsyncClient("https://localhost:9", KEY, verify=missing) as client:
            for _ in range(3):
                with pytest.raises(errors.TLSError, match=r"missing\.pem"):
                    await asyncio.wait_for(client.free_chat("x"), 20)

    for _ in range(5):
        asyncio.run(ask())


def test_each_call_is_a_line(server: MisbehavingServer, caplog: pytest.LogCaptureFixture) -> None:
    """Streams, jobs and calls that came to no answer too; no key and no content in any."""
    silent = steps.stall()
    server.script(GOOD, path="/api/v1/freellm")
    server.script(steps.answer(404, b'{"error":"a secret"}'), path="/api/v1/freellm")
    server.script(steps.reset(), path="/api/v1/freellm")
    server.script(steps.event_stream(), steps.send(CHUNK), silent, path="/api/v1/freellm")
    server.script(silent, path="/api/v1/freellm")
    server.script(steps.answer(200, JOB), path="/api/v1/predictions/a")
    with (
        caplog.at_level(logging.DEBUG, logger="polymux"),
        polymux.Client(server.url, KEY, retry=0) as client,
    ):
        client.free_chat("a secret")
        for kind in (errors.NotFoundError, errors.ConnectionLostError):
            with pytest.raises(kind):
                client.free_chat("a secret")
        client.free_chat("a secret", stream=True).close()
        with pytest.raises(errors.RequestTimeoutError):
            client.free_chat("a secret", timeout=0.2)
        client.predictions.get("a")
    lines = [one.getMessage() for one in caplog.records if one.name == "polymux"]
    wanted = ["status 200 in", "status 404 in", "ConnectionLostError after",
              "status 200, in pieces", "RequestTimeoutError after", "status 200 in"]  # fmt: skip
    assert len(lines) == len(wanted), lines
    for line, words in zip(lines, wanted, strict=True):
        assert words in line
        assert line.startswith("predictions: " if line is lines[-1] else "free_chat: ")
        assert KEY not in line
        assert "secret" not in line
