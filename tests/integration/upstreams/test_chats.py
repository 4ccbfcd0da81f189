"""Chats with an OpenAI API upstream: requests and client responses. Case IDs: testing.md."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from polymux.fetch.fetcher import FetchPolicy
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import CHAT
from support.upstreams import (
    CANARY,
    COMPLETIONS,
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

    from support.polymux_server import PolymuxServer

PICTURE = media.png(8, 8)
INLINE = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"


@pytest.fixture(scope="module")
def pictures() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        server.script(steps.answer(200, PICTURE, content_type="image/png"), path="/a", times=None)
        server.script(steps.answer(200, b"<html>", content_type="image/png"), path="/b", times=None)
        yield server


@pytest.fixture(scope="module")
def server(
    bad: MisbehavingServer, pictures: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("upstreams")
    models = {"fast": "their-model", "slow": "their-other", "gpt-4o": "their-vision"}
    policy = FetchPolicy(allowed_hosts=(pictures.url.removeprefix("http://"),))
    upstreams = {"groq": upstream(folder, bad.url, models=models)}
    with gateway(folder, upstreams, fetch=policy) as running:
        yield running


def asked_of(bad: MisbehavingServer) -> dict[str, Any]:
    value: dict[str, Any] = json.loads(bad.requests[-1].body)
    return value


def whole(value: Any = WHOLE) -> steps.Step:
    return steps.answer(200, json.dumps(value).encode())


def test_a_whole_answer_with_all_its_members(server: PolymuxServer, bad: MisbehavingServer) -> None:
    bad.script(whole())
    answer = chat(server)
    assert answer.status == 200
    got = answer.json()
    assert got["usage"].pop("total_time") > 0
    assert got == WHOLE
    request = bad.requests[-1]
    assert request.path == COMPLETIONS
    assert request.header("authorization") == f"Bearer {CANARY}"
    assert json.loads(request.body) == {"model": "their-model", "messages": MESSAGES}


def test_what_the_caller_gave_goes_on_and_nothing_else(
    server: PolymuxServer, bad: MisbehavingServer
) -> None:
    """polymux adds no defaults. Unknown fields are forwarded, including nested ones."""
    bad.script(whole())
    given = {
        "model": "slow",
        "messages": [{"role": "user", "content": "Hi", "cache_control": {"type": "ephemeral"}}],
        "temperature": 0.5,
        "max_tokens": 7,
        "search_settings": {"include_images": False},
        "guided_choice": ["a", "b"],
        "user": None,
    }
    assert server.json(CHAT, given).status == 200
    expected = dict(given, model="their-other", max_completion_tokens=given["max_tokens"])
    del expected["max_tokens"], expected["user"]
    assert asked_of(bad) == expected


def test_models_that_are_not_there(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """Clients cannot use the upstream's own model names (C41)."""
    before = len(bad.requests)
    for name in ("their-model", "other", "../x"):
        answer = chat(server, model=name)
        assert (answer.status, answer.json()["code"]) == (400, "model_not_found")
        assert "'fast', 'slow'" in answer.json()["error"]
    assert len(bad.requests) == before


@pytest.mark.parametrize("name", ["base_url", "extra_headers"])
def test_fields_that_steer_are_refused(
    server: PolymuxServer, bad: MisbehavingServer, name: str
) -> None:
    """Fields that configure the server are rejected before a request to the upstream (C47)."""
    before = len(bad.requests)
    assert chat(server, **{name: "http://127.0.0.1:1"}).status == 400
    assert len(bad.requests) == before


def test_chunks_go_on_as_they_came(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """All members, empty choices and token counts. Order and IDs are the upstream's (C31)."""
    sent = [
        chunk("", role="assistant", x_groq={"id": "req_01j"}),
        chunk("Hel"),
        chunk("lo", obfuscation="xyz"),
        {**chunk(), "choices": []},
        chunk(None, "stop", x_groq={"usage": {"total_tokens": 4}}),
        {**chunk(), "choices": [], "usage": {"total_tokens": 4}},
    ]
    bad.script(steps.event_stream(), steps.send(b"".join(map(event, sent)) + event("[DONE]")))
    answer = chat(server, stream=True, stream_options={"include_usage": True})
    assert answer.headers["content-type"].startswith("text/event-stream")
    assert events_of(answer) == [*sent, "[DONE]"]
    assert asked_of(bad)["stream_options"] == {"include_usage": True}
    assert asked_of(bad)["stream"] is True


def test_bytes_of_a_chunk_are_not_written_anew(
    server: PolymuxServer, bad: MisbehavingServer
) -> None:
    """Spaces, escapes and numbers are the upstream's. An event of several lines becomes one."""
    odd = b'{"id":"1" , "choices":[{"index":0,"delta":{"content":"\\u00e4"}}], "n":1.50}'
    lines = b'data: {"choices":\ndata: [{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'
    sent = steps.send(b"data: " + odd + b"\n\n" + lines)
    bad.script(steps.event_stream(), sent, steps.close())
    answer = chat(server, stream=True)
    assert b"data: " + odd + b"\n\n" in answer.body
    assert events_of(answer)[1] == {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    assert answer.body.endswith(b"data: [DONE]\n\n")


def test_a_text_that_spells_events(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """Case C40."""
    text = "\n\ndata: [DONE]\n\ndata: {}"
    bad.script(steps.event_stream(), steps.send(event(chunk(text)) + event("[DONE]")))
    got = events_of(chat(server, stream=True))
    assert got == [chunk(text), "[DONE]"]


def test_a_whole_answer_to_who_wanted_pieces(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """The client gets the complete response as one chunk (C29)."""
    bad.script(whole())
    first, *rest = events_of(chat(server, stream=True))
    assert first["object"] == "chat.completion.chunk"
    assert first["choices"][0]["delta"]["content"] == "Hello"
    assert "message" not in first["choices"][0]
    assert first["x_groq"] == WHOLE["x_groq"]
    assert rest == ["[DONE]"]


def test_freellm_is_a_text(server: PolymuxServer, bad: MisbehavingServer) -> None:
    bad.script(whole())
    answer = server.json(FREE, {"messages": MESSAGES, "timeout": 9, "shuffle": True, "top_k": 1})
    assert answer.json() == {"response": "Hello", "engine_model": "their-model"}
    assert asked_of(bad) == {"model": "their-vision", "messages": MESSAGES, "top_k": 1}
    sent = [chunk(""), chunk("Hel"), chunk("lo"), chunk(None, "stop")]
    bad.script(steps.event_stream(), steps.send(b"".join(map(event, sent))), steps.close())
    answer = server.json(FREE, {"messages": MESSAGES, "stream": True})
    assert events_of(answer) == [{"response": "Hel"}, {"response": "lo"}, "[DONE]"]


def test_pictures_are_fetched_here(
    server: PolymuxServer, bad: MisbehavingServer, pictures: MisbehavingServer
) -> None:
    """The upstream gets the bytes, because its network may resolve the URL differently."""
    parts = [
        {"type": "text", "text": "What is this?"},
        {"type": "image_url", "image_url": {"url": f"{pictures.url}/a", "detail": "low"}},
        {"type": "image_url", "image_url": {"url": INLINE}},
    ]
    bad.script(whole())
    assert chat(server, messages=[{"role": "user", "content": parts}]).status == 200
    sent = asked_of(bad)["messages"][0]["content"]
    assert sent[0] == parts[0]
    assert sent[1]["image_url"] == {"url": INLINE, "detail": "low"}
    assert sent[2]["image_url"] == {"url": INLINE}
    assert pictures.requests[-1].header("authorization") is None


def test_freellm_s_picture_belongs_to_the_user_s_last_message(
    server: PolymuxServer, bad: MisbehavingServer, pictures: MisbehavingServer
) -> None:
    messages = [*MESSAGES, {"role": "assistant", "content": "Hello"}]
    bad.script(whole())
    asked = {"messages": messages, "image_url": f"{pictures.url}/a"}
    assert server.json(FREE, asked).status == 200
    first, second = asked_of(bad)["messages"]
    picture = {"type": "image_url", "image_url": {"url": INLINE, "detail": "auto"}}
    assert first["content"] == [{"type": "text", "text": "Hi"}, picture]
    assert second == messages[1]
    alone = {"messages": [{"role": "system", "content": "Be kind."}], "image_url": INLINE}
    assert server.json(FREE, alone).status == 400


@pytest.mark.parametrize(
    "url", ["http://127.0.0.1:1/x.png", "data:text/html;base64,AAAA", "data:image/png;base64,AAAA"]
)
def test_pictures_that_are_refused(
    server: PolymuxServer, bad: MisbehavingServer, pictures: MisbehavingServer, url: str
) -> None:
    """No request reaches the upstream (C43)."""
    before = len(bad.requests)
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    assert chat(server, messages=[{"role": "user", "content": parts}]).status == 400
    answer = server.json(FREE, {"messages": MESSAGES, "image_url": f"{pictures.url}/b"})
    assert (answer.status, answer.json()["param"]) == (400, "image_url")
    assert len(bad.requests) == before


def test_dialects(bad: MisbehavingServer, tmp_path: Path) -> None:
    """The upstream uses the older `max_tokens`. Without configured models it accepts any model name
    and has no default model.
    """
    upstreams = {"any": upstream(tmp_path, bad.url, max_tokens=True)}
    with gateway(tmp_path, upstreams) as server:
        bad.script(whole())
        assert chat(server, model="whatever/it:is", max_completion_tokens=5).status == 200
        assert asked_of(bad) == {
            "model": "whatever/it:is", "messages": MESSAGES, "max_tokens": 5,
        }  # fmt: skip
        answer = chat(server, model="default")
        assert (answer.status, answer.json()["param"]) == (400, "model")
        bad.script(whole())
        assert server.json(FREE, {"messages": MESSAGES}).status == 200
        assert asked_of(bad)["model"] == "gpt-4o"
