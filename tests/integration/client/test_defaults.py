"""Defaults of a client: deadlines, preferences, stream headers and logging."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import FINE, KINDS, SILENT_STREAM, called
from support.client_children import KEY

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

JOB = b'{"id":"a","status":"succeeded","output":"fine"}'


@pytest.mark.parametrize("kind", KINDS)
def test_the_head_of_a_stream_before_its_first_chunk(kind: type, server: MisbehavingServer) -> None:
    """The call returns when the headers arrive, and `.response` is available."""
    server.script(steps.event_stream(headers=[("X-Sent", "early")]), steps.stall())

    def begin(client: Any) -> Any:
        return [client.chat("x", stream=True)]

    async def awaited(client: Any) -> list[Any]:
        return [await asyncio.wait_for(client.chat("x", stream=True), 10)]

    work = begin if kind is polymux.Client else awaited
    (stream,) = called(kind, server.url, work, retry=0)
    assert stream.response.headers["x-sent"] == "early"


def test_a_call_that_must_not_begin_ends_at_once(tmp_path: Path) -> None:
    """An error in the first call of a client must not leave its new thread waiting."""

    async def ask() -> None:
        missing = str(tmp_path / "missing.pem")
        async with polymux.AsyncClient("https://localhost:9", KEY, verify=missing) as client:
            for _ in range(3):
                with pytest.raises(errors.TLSError, match=r"missing\.pem"):
                    await asyncio.wait_for(client.free_chat("x"), 20)

    asyncio.run(ask())


def test_each_call_is_a_line(server: MisbehavingServer, caplog: pytest.LogCaptureFixture) -> None:
    """Streams, jobs and failed calls are logged, too. No line has the API key or content."""
    server.script(FINE, path="/api/v1/freellm")
    server.script(steps.answer(404, b'{"error":"a secret"}'), path="/api/v1/freellm")
    server.script(steps.reset(), path="/api/v1/freellm")
    server.script(*SILENT_STREAM, path="/api/v1/freellm")
    server.script(steps.stall(), path="/api/v1/freellm")
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
    wanted = ["200", "404", "ConnectionLostError", "200", "RequestTimeoutError", "200"]
    assert len(lines) == len(wanted), lines
    for line, words in zip(lines, wanted, strict=True):
        assert words in line
        assert ("predictions" if line is lines[-1] else "free_chat") in line
        assert KEY not in line
        assert "secret" not in line
