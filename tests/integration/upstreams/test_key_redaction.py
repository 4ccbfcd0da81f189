"""If an upstream repeats the gateway's API key in a response, clients and files do not get it."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import pytest
from servers import media, steps
from support.polymux_server import CHAT, form
from support.upstreams import (
    ASKED,
    CANARY,
    FREE,
    MESSAGES,
    STT,
    WHOLE,
    chunk,
    event,
    events_of,
    gateway,
    upstream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer
    from support.polymux_server import Answer, PolymuxServer

SPEECH = "turian/insanely-fast-whisper-with-video"
EVENTS = "/api/v1/predictions/job1/events"
#: Possible content of an upstream's log line.
LINE = f"asked with {CANARY} at http://10.0.0.7:99/x"
TEXT = f"Your key is {CANARY}."
HIDDEN = "Your key is ***."


@pytest.fixture(scope="module")
def servers(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, PolymuxServer]]:
    """A gateway for each kind of upstream."""
    models = {"openai": {"fast": "m", SPEECH: "w"}, "polymux": {"fast": "m"},
              "replicate": {SPEECH: "our-team/whisper"}}  # fmt: skip
    kept = {"id": "f1", "urls": {"get": f"{bad.url}/files/f1"}}
    bad.script(steps.answer(201, json.dumps(kept).encode()), path="/files", times=None)
    bad.script(steps.answer(204, b""), path="/files/f1", times=None)
    with ExitStack() as running:
        found = {}
        for kind, names in models.items():
            folder = tmp_path_factory.mktemp(kind)
            operations = ("chat", "free_chat", "transcribe") if kind == "openai" else ()
            made = upstream(folder, bad.url, kind=kind, models=names, operations=operations)
            found[kind] = running.enter_context(gateway(folder, {kind: made}))
        yield found


def transcribed(server: PolymuxServer) -> Answer:
    return server.ask("POST", STT, *form(("audio", ("a.wav", media.wav()))))


def answers(value: Any, headers: Sequence[tuple[str, str]] = ()) -> steps.Step:
    return steps.answer(200, json.dumps(value).encode(), headers)


def assert_nowhere(server: PolymuxServer, answer: Answer) -> None:
    """Check that the key is in no response and in no file except the operator's."""
    assert answer.status == 200, answer.body
    data = answer.body + "\n".join(answer.lines).encode()
    data += server.ask("GET", "/api/v1/predictions").body
    for one in server.settings.store.folder.rglob("*"):
        data += one.read_bytes() if one.is_file() else b""
    assert CANARY.encode() not in data
    assert b"10.0.0.7" not in data


def whole(text: str) -> dict[str, Any]:
    message = {"role": "assistant", "content": text}
    return WHOLE | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}


def test_in_a_chat(servers: dict[str, PolymuxServer], bad: MisbehavingServer) -> None:
    server = servers["openai"]
    debug = {"request": {"authorization": f"Bearer {CANARY}", CANARY: [CANARY]}}
    bad.script(answers(whole(TEXT) | {"x_debug": debug}))
    answer = server.json(CHAT, ASKED)
    assert_nowhere(server, answer)
    assert answer.json()["choices"][0]["message"]["content"] == HIDDEN
    assert answer.json()["x_debug"]["request"] == {"authorization": "Bearer ***", "***": ["***"]}
    for _ in range(2):
        bad.script(answers(whole(TEXT)))
    answer = server.json(FREE, {"messages": MESSAGES})
    assert_nowhere(server, answer)
    assert answer.json()["response"] == HIDDEN
    answer = server.json(CHAT, ASKED | {"stream": True})
    assert_nowhere(server, answer)
    assert events_of(answer)[0]["choices"][0]["delta"]["content"] == HIDDEN


@pytest.mark.parametrize("kind", ["openai", "polymux"])
def test_in_a_stream(servers: dict[str, PolymuxServer], bad: MisbehavingServer, kind: str) -> None:
    """Redacts only the chunks that contain the key. The others are forwarded unchanged."""
    plain, last = (
        b'data: {"choices" : [{"delta":{"content":"Hi"}}], "n":1.50}\n\n',
        chunk("", "stop"),
    )
    sent = event(chunk(TEXT)) + plain + event(chunk("", x_debug=CANARY)) + event(last)
    bad.script(steps.event_stream(), steps.send(sent), steps.close())
    answer = servers[kind].json(CHAT, ASKED | {"stream": True})
    assert_nowhere(servers[kind], answer)
    assert plain in answer.body
    first, _, debug, *rest = events_of(answer)
    assert (first, debug, rest) == (chunk(HIDDEN), chunk("", x_debug="***"), [last, "[DONE]"])
    if kind == "openai":
        bad.script(steps.event_stream(), steps.send(event(chunk(TEXT))), steps.close())
        answer = servers[kind].json(FREE, {"messages": MESSAGES, "stream": True})
        assert_nowhere(servers[kind], answer)
        assert events_of(answer)[0] == {"response": HIDDEN}


@pytest.mark.parametrize("streamed", [False, True])
def test_in_warnings_of_another_polymux(
    servers: dict[str, PolymuxServer], bad: MisbehavingServer, streamed: bool
) -> None:
    field = ("Polymux-Warnings", f'"seed: left out", "{LINE}"')
    if streamed:
        head = [("Content-Type", "text/event-stream"), ("Connection", "close"), field]
        sent = steps.send(event(chunk("Hi", "stop")) + event("[DONE]"))
        bad.script(steps.head(200, head), sent, steps.close())
    else:
        bad.script(answers(WHOLE, [field]))
    answer = servers["polymux"].json(CHAT, ASKED | {"stream": streamed})
    assert_nowhere(servers["polymux"], answer)
    warnings = answer.headers["polymux-warnings"]
    assert "seed: left out" in warnings
    assert "asked with *** at ..." in warnings


def test_in_a_job_of_another_polymux(
    servers: dict[str, PolymuxServer], bad: MisbehavingServer
) -> None:
    begun = {"id": "job1", "status": "processing"}
    bad.script(steps.answer(202, json.dumps(begun).encode()), path=STT)
    output = {"text": TEXT, "chunks": [{"text": TEXT, "timestamp": [0, 1]}]}
    end = {"id": "job1", "status": "succeeded", "logs": f"{LINE}\nbatch_size: 8", "output": output}
    news = [begun | {"logs": LINE}, end]
    sent = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in news)
    bad.script(steps.event_stream(), steps.send(sent), steps.close(), path=EVENTS)
    answer = transcribed(servers["polymux"])
    assert_nowhere(servers["polymux"], answer)
    assert answer.json()["logs"] == "asked with *** at ...\nbatch_size: 8"
    assert answer.json()["output"]["text"] == HIDDEN


def test_in_a_transcript(servers: dict[str, PolymuxServer], bad: MisbehavingServer) -> None:
    segments = [{"text": f" {TEXT}", "start": 0, "end": 1}]
    bad.script(answers({"text": TEXT, "segments": segments, "language": CANARY}))
    answer = transcribed(servers["openai"])
    assert_nowhere(servers["openai"], answer)
    output = answer.json()["output"]
    assert (output["text"], output["chunks"][0]["text"]) == (HIDDEN, f" {HIDDEN}")


def test_in_a_prediction(servers: dict[str, PolymuxServer], bad: MisbehavingServer) -> None:
    """A Replicate prediction, whose log lines are redacted."""
    made = {"id": "p1", "status": "succeeded", "logs": LINE, "output": {"text": TEXT, "chunks": []}}
    bad.script(answers(made), path="/models/our-team/whisper/predictions")
    answer = transcribed(servers["replicate"])
    assert_nowhere(servers["replicate"], answer)
    assert answer.json()["output"]["text"] == HIDDEN


@pytest.mark.parametrize("key", ["sk/with/a-slash-0123456789", 'sk"quoted\\key-0123456789'])
def test_a_key_that_json_writes_otherwise(bad: MisbehavingServer, tmp_path: Path, key: str) -> None:
    made = upstream(tmp_path, bad.url, key=key, models={"fast": "m"})
    written = json.dumps(chunk(key)).encode()
    with gateway(tmp_path, {"groq": made}) as server:
        bad.script(answers(whole(key)))
        assert server.json(CHAT, ASKED).json()["choices"][0]["message"]["content"] == "***"
        sent = b"data: " + written + b"\n\n" + event(chunk("", "stop"))
        bad.script(steps.event_stream(), steps.send(sent), steps.close())
        assert events_of(server.json(CHAT, ASKED | {"stream": True}))[0] == chunk("***")
