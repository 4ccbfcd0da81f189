"""freellm with upstreams in fixed and random order; one error if all fail. Case IDs: testing.md."""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from polymux.service.routes import Route
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.upstreams import (
    CANARY,
    FREE,
    MESSAGES,
    WHOLE,
    chat,
    chunk,
    event,
    events_of,
    gateway,
    upstream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.runtime.upstream_settings import UpstreamSettings
    from support.polymux_server import Answer, PolymuxServer

    Servers = dict[str, MisbehavingServer]

NAMES = ("one", "two", "three")
ASKED = {"messages": MESSAGES}


def settings_of(folder: Path, ports: list[int]) -> dict[str, UpstreamSettings]:
    """Three upstreams, each with its own model."""
    return {
        name: upstream(
            folder, f"http://127.0.0.1:{port}", models={name: f"model-{name}"}, total_s=5
        )
        for name, port in zip(NAMES, ports, strict=True)
    }


@pytest.fixture(scope="module")
def server(ports: list[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("failover")
    with gateway(folder, settings_of(folder, ports)) as running:
        yield running


@pytest.fixture
def servers(ports: list[int]) -> Iterator[Servers]:
    """The upstreams in their initial state."""
    with ExitStack() as stack:
        yield {
            name: stack.enter_context(MisbehavingServer(port=port))
            for name, port in zip(NAMES, ports, strict=True)
        }


def answers(name: str) -> steps.Step:
    message = {"role": "assistant", "content": f"I am {name}"}
    whole = WHOLE | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    return steps.answer(200, json.dumps(whole).encode())


def free(server: PolymuxServer, **more: Any) -> Answer:
    return server.json(FREE, ASKED | more)


def test_the_next_answers_in_order(server: PolymuxServer, servers: Servers) -> None:
    """An upstream that fails before its first chunk is skipped without a retry (C44)."""
    for name in NAMES:
        servers[name].script(answers(name), times=None)
    assert free(server).json()["response"] == "I am one"
    servers["one"].script(steps.answer(500, b"{}"))
    assert free(server).json()["response"] == "I am two"
    servers["one"].script(steps.answer(429, b"{}"))
    servers["two"].script(steps.answer(503, b"{}"))
    assert free(server).json()["response"] == "I am three"
    counts = [len(servers[name].requests) for name in NAMES]
    assert counts == [3, 2, 1]
    assert json.loads(servers["three"].requests[0].body)["model"] == "model-three"


@pytest.mark.parametrize("streamed", [False, True])
def test_when_all_have_failed(server: PolymuxServer, servers: Servers, streamed: bool) -> None:
    """One error lists each upstream's reason. Each is tried once (C44)."""
    servers["one"].script(steps.answer(500, CANARY.encode()), times=None)
    servers["two"].script(steps.answer(429, b"{}"), times=None)
    servers["three"].script(steps.answer(200, b"<html>"), times=None)
    answer = free(server, stream=streamed)
    assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
    message = answer.json()["error"]
    assert message.index("500") < message.index("two") < message.index("three")
    for name in NAMES:
        assert name in message
        assert len(servers[name].requests) == 1
    assert CANARY not in message
    assert "127.0.0.1" not in message


def refuses(status: int, **error: Any) -> steps.Step:
    return steps.answer(status, json.dumps({"error": error}).encode())


#: Errors of a server that lacks its model, or whose model is too small for this chat.
REFUSALS: dict[str, steps.Step] = {
    "odd": refuses(400, message="too odd"),
    "no such model": refuses(404, message="The model `x` does not exist", code="model_not_found"),
    "decommissioned": refuses(400, message="It is gone", code="model_decommissioned"),
    "too long": refuses(400, message="8192 at most", code="context_length_exceeded"),
    "tokens a minute": refuses(413, message="Limit 6000", code="rate_limit_exceeded"),
    "unprocessable": refuses(422, message="no pictures"),
    "a wrong key": steps.answer(
        400, b'[{"error": {"code": 400, "message": "API key not valid. Pass a valid one."}}]'
    ),
}


def test_what_one_refuses_the_next_may_take(server: PolymuxServer, servers: Servers) -> None:
    """The client did not choose the model, and another upstream's model may accept the request."""
    for refusal, step in REFUSALS.items():
        for streamed in (False, True):
            servers["one"].script(step)
            servers["two"].script(answers("two"))
            answer = free(server, stream=streamed)
            assert answer.status == 200, refusal
            assert b"I am two" in answer.body
    assert servers["three"].requests == []


@pytest.mark.parametrize("streamed", [False, True])
def test_what_all_refuse_is_reported_in_the_first_one_s_words(
    server: PolymuxServer, servers: Servers, streamed: bool
) -> None:
    """The request is invalid, so the response is 400 and not an upstream failure."""
    servers["one"].script(refuses(400, message="too odd"))
    servers["two"].script(REFUSALS["too long"])
    servers["three"].script(REFUSALS["no such model"])
    answer = free(server, stream=streamed)
    assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
    assert ["two" in answer.json()["error"], "too odd" in answer.json()["error"]] == [False, True]
    servers["one"].script(refuses(400, message="too odd"))
    servers["two"].script(steps.answer(500, b"{}"))
    servers["three"].script(REFUSALS["no such model"])
    answer = free(server, stream=streamed)
    assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
    assert "too odd" in answer.json()["error"]


@pytest.mark.parametrize("streamed", [False, True])
def test_what_this_server_refuses_is_no_reason_for_the_next(
    server: PolymuxServer, servers: Servers, streamed: bool
) -> None:
    """The gateway's own validation errors do not depend on the upstream."""
    for url in ("http://127.0.0.1:1/x.png", "data:image/png;base64,AAAA"):
        answer = free(server, stream=streamed, image_url=url)
        assert (answer.status, answer.json()["param"]) == (400, "image_url")
    assert free(server, stream=streamed, model="other").status == 400
    assert all(servers[name].requests == [] for name in NAMES)


def test_a_stream_that_has_begun_is_not_begun_again(
    server: PolymuxServer, servers: Servers
) -> None:
    servers["one"].script(steps.answer(500, b"{}"), times=None)
    begun = [steps.event_stream(), steps.send(event(chunk("Hel"))), steps.close()]
    servers["two"].script(*begun)
    first, last = events_of(free(server, stream=True))
    assert first == {"response": "Hel"}
    assert last["error"]["code"] == "upstream_failed"
    assert servers["three"].requests == []
    # The upstream fails before its first chunk, so the next one sends the whole stream.
    servers["two"].script(steps.event_stream(), steps.close())
    good = [steps.event_stream(), steps.send(event(chunk("whole")) + event("[DONE]"))]
    servers["three"].script(*good)
    assert events_of(free(server, stream=True)) == [{"response": "whole"}, "[DONE]"]


def test_shuffle(server: PolymuxServer, servers: Servers) -> None:
    """With shuffling, every upstream is sometimes first. Without it, the order is fixed."""
    for name in NAMES:
        servers[name].script(answers(name), times=None)
    for _ in range(40):
        free(server, shuffle=True)
    counts = [len(servers[name].requests) for name in NAMES]
    assert sum(counts) == 40
    assert min(counts) > 0
    for _ in range(10):
        free(server)
    assert len(servers["one"].requests) == counts[0] + 10


def test_routes_choose_order_and_models(ports: list[int], servers: Servers, tmp_path: Path) -> None:
    """Each of freellm's three names has its own list of upstreams."""
    routes = {"free_chat": (Route("three", ("gpt-4o",)), Route("two", ("gpt-4o", "gpt-4")))}
    for name in NAMES:
        servers[name].script(answers(name), times=None)
    with gateway(tmp_path, settings_of(tmp_path, ports), routes=routes) as server:
        assert free(server).json()["response"] == "I am three"
        assert free(server, model="gpt-4").json()["response"] == "I am two"
        assert free(server, model="gpt-3.5-turbo").status == 501
        assert chat(server, model="one").status == 200


def test_chats_do_not_fail_over(server: PolymuxServer, servers: Servers) -> None:
    servers["one"].script(steps.answer(500, b"{}"))
    assert chat(server, model="one").status == 502
    assert servers["two"].requests == servers["three"].requests == []


def test_the_deadline_is_that_of_all_together(server: PolymuxServer, servers: Servers) -> None:
    """The deadline applies to all tries together (C39)."""
    for name in NAMES:
        servers[name].script(steps.stall(), times=None)
    for streamed in (False, True):
        began = time.monotonic()
        answer = free(server, timeout=1, stream=streamed)
        assert (answer.status, answer.json()["code"]) == (504, "upstream_timeout")
        assert time.monotonic() - began > 0.9
    assert servers["two"].requests == []


EMPTY = [
    event("[DONE]"),
    event({"choices": []}) + event("[DONE]"),
    event(chunk("")) + event("[DONE]"),
]


def test_an_empty_stream_is_no_answer(server: PolymuxServer, servers: Servers) -> None:
    for empty in EMPTY:
        nothing = [steps.event_stream(), steps.send(empty), steps.close()]
        servers["one"].script(*nothing)
        good = event(chunk("whole", "stop")) + event("[DONE]")
        servers["two"].script(steps.event_stream(), steps.send(good), steps.close())
        assert events_of(free(server, stream=True)) == [{"response": "whole"}, "[DONE]"]
        for name in NAMES:
            servers[name].script(*nothing)
        answer = free(server, stream=True)
        assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
        assert all(name in answer.json()["error"] for name in NAMES)
