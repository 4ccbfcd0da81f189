"""Variants of chat responses: accepted if they can be parsed, otherwise 502."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from servers import media, steps
from support.polymux_server import form
from support.upstreams import (
    FREE,
    MESSAGES,
    STT,
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

    from servers.misbehaving import MisbehavingServer
    from support.polymux_server import PolymuxServer

HUGE = 10**400
FAILED = (502, "upstream_failed")


@pytest.fixture(scope="module")
def server(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("shapes")
    with gateway(folder, {"groq": upstream(folder, bad.url, models={"fast": "m"})}) as running:
        yield running


@pytest.fixture(scope="module")
def attic(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("attic")
    with gateway(folder, {"attic": upstream(folder, bad.url, kind="polymux")}) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_left(bad: MisbehavingServer) -> None:
    """Remove scripted responses that an earlier test did not use."""
    bad.forget(None)


def whole(message: Any = None, **choice: Any) -> dict[str, Any]:
    message = message or {"role": "assistant", "content": "Hi"}
    first = {"index": 0, "message": message, "finish_reason": "stop", **choice}
    return WHOLE | {"choices": [first]}


def called(*calls: Any) -> dict[str, Any]:
    message = {"role": "assistant", "content": None, "tool_calls": list(calls)}
    return whole(message, finish_reason="tool_calls")


CALL = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": {"a": [1, "ü"]}}}
PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "Hm"}]},
         {"type": "text", "text": "H"}, "i", {"type": "image_url"}]  # fmt: skip
#: Case -> (response of a server, expected members).
LENIENT: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "a float for created": (WHOLE | {"created": 1763740800.0}, {"created": 1763740800}),
    "a fraction": (WHOLE | {"created": 1763740800.7}, {"created": 1763740800}),
    "a text for created": (WHOLE | {"created": "1763740800"}, {"created": 1763740800}),
    "no time": (WHOLE | {"created": [1]}, {"created": None}),
    "a tier's number": (WHOLE | {"service_tier": 1}, {"service_tier": "1"}),
    "an id's number": (WHOLE | {"id": 7}, {"id": "7"}),
    "floats of usage": (
        WHOLE | {"usage": {"prompt_tokens": 3.0, "completion_tokens": 1, "total_tokens": 4.0,
                           "total_time": 1.0, "prompt_tokens_details": []}},
        {"usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4,
                   "total_time": 1.0, "prompt_tokens_details": None}},
    ),
    "cached tokens": (
        WHOLE | {"usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4,
                           "total_time": 1.0, "prompt_tokens_details": {"cached_tokens": 2}}},
        {},
    ),
    "usage that is none": (WHOLE | {"usage": [3]}, {"usage": None}),
    "x_groq that is none": (WHOLE | {"x_groq": []}, {"x_groq": None}),
    "logprobs": (whole(logprobs=[]), whole(logprobs=None)),
    "a numbered reason": (whole(finish_reason=1), whole(finish_reason="1")),
    "an index": (whole(index="0"), whole(index=0)),
    "parts": (
        whole({"role": "assistant", "content": PARTS}),
        whole({"role": "assistant", "content": "Hi", "reasoning": "Hm"}),
    ),
    "arguments": (
        called(CALL),
        called(CALL | {"function": {"name": "f", "arguments": '{"a":[1,"ü"]}'}}),
    ),
    "a call's number": (
        called({"id": 1, "function": {"name": "f"}}),
        called({"id": "1", "function": {"name": "f"}}),
    ),
}  # fmt: skip
#: Responses without a usable message.
NOTHING: dict[str, Any] = {
    "message text": whole("text"),
    "message array": whole([1]),
    "message number": whole(5),
    "a choice that is null": WHOLE | {"choices": [None, whole()["choices"][0]]},
    "calls of null": called(None),
    "calls of text": called("x"),
    "calls that are an object": whole({"content": None, "tool_calls": {"a": 1}}),
    "a call's function": called({"function": "f"}),
    "a content": whole({"role": "assistant", "content": {"a": 1}}),
    "a content of true": whole({"role": "assistant", "content": True}),
}


@pytest.mark.parametrize("case", LENIENT)
def test_what_can_be_read(server: PolymuxServer, bad: MisbehavingServer, case: str) -> None:
    """Works with the polymux client and with streaming. Unknown members are kept."""
    sent, became = LENIENT[case]
    bad.script(steps.answer(200, json.dumps(sent).encode()), times=4)
    answer = chat(server)
    assert answer.status == 200, answer.body
    got = answer.json()
    expected = sent | became
    if expected["usage"] == WHOLE["usage"]:
        assert got["usage"].pop("total_time") >= 0
    assert got == expected
    message = expected["choices"][0]["message"]
    text = message["content"] or ""
    with polymux.Client(server.url, server.key, retry=0) as client:
        completion = client.chat("Hi", model="fast")
        with client.chat("Hi", model="fast", stream=True) as stream:
            assert "".join(stream.texts()) == text
    assert completion.choices[0].index == 0
    assert completion.extra["unknown"] == WHOLE["unknown"]
    [piece, _] = events_of(chat(server, stream=True))
    delta = piece["choices"][0]["delta"]
    assert delta.get("content") == message["content"]
    for number, call in enumerate(message.get("tool_calls", ())):
        assert delta["tool_calls"][number]["index"] == number
        assert delta["tool_calls"][number]["function"].get("arguments") == call["function"].get(
            "arguments"
        )
    if case == "parts":
        bad.script(steps.answer(200, json.dumps(sent).encode()))
        assert server.json(FREE, {"messages": MESSAGES}).json()["response"] == text


@pytest.mark.parametrize("case", NOTHING)
def test_what_says_nothing(server: PolymuxServer, bad: MisbehavingServer, case: str) -> None:
    """The error is never an internal error of the gateway, and no partial response is returned."""
    bad.script(steps.answer(200, json.dumps(NOTHING[case]).encode()), times=2)
    for streamed in (False, True):
        answer = chat(server, stream=streamed)
        assert (answer.status, answer.json()["code"]) == FAILED


def test_half_a_letter(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """Half a surrogate pair of a cut model becomes a replacement character, streamed or not."""
    body = json.dumps(whole({"role": "assistant", "content": "Hi HALF!"})).encode()
    bad.script(steps.answer(200, body.replace(b"HALF", rb"\ud83d")))
    assert chat(server).json()["choices"][0]["message"]["content"] == "Hi \ufffd!"
    piece = event(chunk("Hi HALF!", "stop")).replace(b"HALF", rb"\ud83d")
    bad.script(steps.event_stream(), steps.send(piece), steps.close())
    [first, _] = events_of(server.json(FREE, {"messages": MESSAGES, "stream": True}))
    assert first == {"response": "Hi \ufffd!"}


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-5", f"{1 << 60}"])
def test_counts_that_are_none(server: PolymuxServer, bad: MisbehavingServer, number: str) -> None:
    before = tokens(server)
    body = json.dumps(WHOLE).replace('"prompt_tokens": 3', f'"prompt_tokens": {number}').encode()
    bad.script(steps.answer(200, body))
    answer = chat(server)
    assert answer.status == 200 or answer.json()["code"] == "upstream_failed"
    counts = f'data: {{"choices": [], "usage": {{"prompt_tokens": {number}}}}}\n\n'.encode()
    sent = event(chunk("a", "stop")) + counts
    bad.script(steps.event_stream(), steps.send(sent), steps.close())
    assert events_of(chat(server, stream=True))[0] == chunk("a", "stop")
    assert tokens(server) == before


def tokens(server: PolymuxServer) -> list[str]:
    lines = server.ask("GET", "/metrics").body.decode().splitlines()
    return [one for one in lines if one.startswith("polymux_key_tokens_total") and "input" in one]


def test_numbers_of_a_job_that_are_none(attic: PolymuxServer, bad: MisbehavingServer) -> None:
    """Invalid progress and metrics of a job on another polymux server."""
    begun = {"id": "job1", "status": "processing"}
    bad.script(steps.answer(202, json.dumps(begun).encode()), path=STT)
    metrics = {"a": HUGE, "b": -HUGE, "c": True, "d": "1", "audio_seconds": 2}
    end = {"id": "job1", "status": "succeeded", "output": {"text": "a", "chunks": []},
           "metrics": metrics}  # fmt: skip
    news = [begun | {"progress": HUGE}, begun | {"progress": True}, end]
    sent = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in news)
    bad.script(
        steps.event_stream(), steps.send(sent), steps.close(),
        path="/api/v1/predictions/job1/events",
    )  # fmt: skip
    answer = attic.ask("POST", STT, *form(("audio", ("a.wav", media.wav()))))
    assert answer.status == 200, answer.body
    returned = answer.json()["metrics"]
    assert returned["audio_seconds"] == 2
    assert not {"a", "b", "c", "d"} & set(returned)
