"""Field names in errors, late warnings, canceled calls and concurrency limits of keys."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.client.answer import reported_error
from polymux.runtime.settings import Limits
from polymux.server.routes.sse import KEEP_ALIVE
from polymux.service.errors import engine_failed
from support.polymux_server import CHAT, CONVERT, HELLO, Box, PolymuxServer, form, read_answer
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from polymux.service.model import OperationRequest, ProgressSink

PICTURE = form(("image", ("a.png", b"x")))
STREAMED = {**HELLO, "stream": True}
EARLY, LATE = "top_k: is left out", 'stop: "\r\n\u202e\u00fc" is cut'


@pytest.fixture
def limited(server: PolymuxServer) -> str:
    """A key with a concurrency limit of 1."""
    key, _ = server.keys.add("limited", concurrent=1)
    return key


def release(server: PolymuxServer, box: Box) -> None:
    server.loop.call_soon_threadsafe(box.backend.gate.set)


def test_the_key_of_a_job_makes_no_place_for_other_work(
    server: PolymuxServer, box: Box, limited: str
) -> None:
    """An Idempotency-Key identifies a job of one operation. Chats and others ignore it."""
    box.backend.gate.clear()
    named = ("Idempotency-Key", "k1")
    asked = (("Prefer", "respond-async"), named)
    job = server.convert(*asked, key=limited)
    assert job.status == 202
    until(lambda: box.backend.began)
    for path in (CHAT, "/v1/chat/completions"):
        assert server.json(path, HELLO, [named], key=limited).status == 429
        assert server.json(path, STREAMED, [named], key=limited).status == 429
    data, fields = PICTURE
    for path in ("/api/v1/image2text", "/api/v1/modelhost/stt"):
        assert server.ask("POST", path, data, [*fields, named], key=limited).status == 429
    assert len(box.backend.began) == 1
    # An equal request returns the same job. A different one with the same key returns 409.
    again = server.convert(*asked, key=limited)
    assert (again.status, again.json()["id"]) == (202, job.json()["id"])
    changed = server.convert(named, data=b"y", key=limited)
    assert (changed.status, changed.json()["code"]) == (409, "conflict")
    release(server, box)


def test_fields_at_fault_are_named(server: PolymuxServer) -> None:
    """In JSON, forms and header fields, and in the client's errors."""
    for more, param in (
        ({"stream": "true"}, "stream"),
        ({"messages": None}, "messages"),
        ({"messages": [{"role": "nobody", "content": "Hi"}]}, "messages[0].role"),
    ):
        answer = server.json(CHAT, {**HELLO, **more})
        error = answer.json()
        assert (answer.status, error["code"], error["param"]) == (400, "invalid_request", param)
    body, headers = form(("file", ("a.wav", b"x")), ("bitrate", "loud"))
    assert server.ask("POST", CONVERT, body, headers).json()["param"] == "bitrate"
    # Errors about the whole request have no field name.
    body, headers = form(("bitrate", "128000"))
    assert "param" not in server.ask("POST", CONVERT, body, headers).json()
    twice = [("Range", "bytes=0-"), ("Range", "bytes=1-")]
    assert server.ask("GET", "/healthz", headers=twice).json()["param"] == "range"
    assert server.ask("GET", "/healthz", headers=[("Host", "a b")]).json()["param"] == "Host"
    # The client's parser, which cannot be tested with the client, because it rejects such requests
    # itself.
    assert reported_error(server.json(CHAT, {**HELLO, "stream": "true"}).body).param == "stream"


def test_a_cancelled_call_is_no_failure_of_the_server(server: PolymuxServer, box: Box) -> None:
    """The waiting request returns 409. A watched job has the status "canceled"."""
    box.backend.gate.clear()
    body, headers = form(("file", ("a.wav", b"x")))
    with server.connect() as waiting:
        waiting.sendall(server.written("POST", CONVERT, body, headers))
        until(lambda: box.backend.began)
        (job,) = server.ask("GET", "/api/v1/predictions").json()["results"]
        path = f"/api/v1/predictions/{job['id']}"
        assert server.ask("POST", f"{path}/cancel").json()["status"] == "canceled"
        answer = read_answer(waiting)
    error = answer.json()
    assert (answer.status, error["code"], error["id"]) == (409, "canceled", job["id"])
    with polymux.Client(server.url, server.key) as client:
        assert client.predictions.get(job["id"]).status == "canceled"
        with pytest.raises(errors.PredictionFailedError):
            client.predictions.get(job["id"]).raise_for_status()


class Late(Scripted):
    """Waits, then reports a warning before its first chunk and another one after it."""

    async def stream(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AsyncIterator[dict[str, Any]]:
        await self.gate.wait()
        sink.warn(EARLY)
        if self.failure is not None:
            raise self.failure
        yield {"choices": []}
        sink.warn(LATE)
        await asyncio.sleep(0)


def streamed(folder: Path, failure: Exception | None = None, *, late: bool = True) -> Any:
    """The response to a chat whose engine warns before or after the first keep-alive comment."""
    box = Box()

    def make() -> list[Late]:
        backend = Late()
        box.backend = backend
        backend.failure = failure
        if late:
            backend.gate.clear()
        return [backend]

    limits = Limits(streams_keep_alive_s=0.05 if late else 60.0)
    with PolymuxServer(folder, make, limits=limits) as server:
        if late:
            threading.Timer(0.5, lambda: release(server, box)).start()
        answer = server.json(CHAT, STREAMED)
    assert answer.status == 200
    assert answer.body.startswith(KEEP_ALIVE) is late
    return answer


def events_of(answer: Any) -> list[str]:
    return [one for one in answer.body.decode("ascii").split("\n\n") if one and one[2:6] != "keep"]


def test_warnings_behind_the_header_are_comments(tmp_path: Path) -> None:
    """One comment line each, before the next event or error. Earlier ones are in the header."""
    answer = streamed(tmp_path / "s")
    assert "polymux-warnings" not in answer.headers
    assert events_of(answer) == [
        f": warning {EARLY}",
        'data: {"choices":[]}',
        ': warning stop: "\\r\\n\\u202e\\xfc" is cut',
        "data: [DONE]",
    ]
    events = events_of(streamed(tmp_path / "failing", engine_failed("it broke")))
    assert events[0] == f": warning {EARLY}"
    assert json.loads(events[1].removeprefix("data: "))["error"]["code"] == "engine_failed"
    answer = streamed(tmp_path / "early", late=False)
    assert answer.headers["polymux-warnings"] == f'"{EARLY}"'
    assert [one for one in events_of(answer) if EARLY in one] == []
