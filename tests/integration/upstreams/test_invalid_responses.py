"""Upstreams whose responses are longer than declared, have a wrong type or never end.

Clients get the requested result or an error. Data of one response never appears in another.

Case IDs such as C11 refer to docs/development/testing.md.
"""

from __future__ import annotations

import json
import time
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest
from servers import http1, media, steps
from support.hostile_check import SANITIZED
from support.media_url_server import Grown
from support.polymux_server import CHAT, form
from support.serve_command import ServeCommand
from support.upstreams import (
    ASKED,
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
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer
    from servers.steps import Step
    from support.polymux_server import Answer, PolymuxServer

LONG = [pytest.mark.long, pytest.mark.slow]
MIB = 1 << 20
#: A response may have 32 MiB. The gateway may use at most this much more memory.
MAX_BYTES = 64 * MIB
SPEECH = "turian/insanely-fast-whisper-with-video"
#: Case -> path at the upstream.
CASES = {
    "openai chat": "/v1/chat/completions",
    "openai transcript": "/v1/audio/transcriptions",
    "polymux chat": CHAT,
    "polymux transcript": STT,
    "replicate transcript": "/v1/models/our-team/whisper/predictions",
}
KINDS = ("openai", "polymux", "replicate")


@pytest.fixture(scope="module")
def servers(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, PolymuxServer]]:
    """A gateway for each kind of upstream."""
    models = {
        "openai": {"fast": "m", SPEECH: "whisper"},
        "polymux": {"fast": "m"},
        "replicate": {SPEECH: "our-team/whisper"},
    }
    kept = {"id": "f1", "urls": {"get": f"{bad.url}/v1/files/f1"}}
    bad.script(steps.answer(201, json.dumps(kept).encode()), path="/v1/files", times=None)
    bad.script(steps.answer(204, b""), path="/v1/files/f1", times=None)
    with ExitStack() as running:
        found = {}
        for kind in KINDS:
            folder = tmp_path_factory.mktemp(kind)
            more: dict[str, Any] = (
                {"operations": ("chat", "transcribe")} if kind == "openai" else {}
            )
            url = f"{bad.url}/v1" if kind == "replicate" else bad.url
            made = upstream(folder, url, kind=kind, models=models[kind], **more)
            found[kind] = running.enter_context(gateway(folder, {kind: made}))
        yield found


def ask(servers: dict[str, PolymuxServer], case: str) -> Answer:
    kind, what = case.split()
    if what == "chat":
        return chat(servers[kind])
    body, head = form(("audio", ("a.wav", media.wav())))
    return servers[kind].ask("POST", STT, body, head)


def good(case: str, text: str) -> bytes:
    """A valid response with this text."""
    kind, what = case.split()
    value: dict[str, Any] = {"text": text}
    if what == "chat":
        message = {"role": "assistant", "content": text}
        value = WHOLE | {"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]}
    elif kind != "openai":
        output = {"text": text, "chunks": []}
        value = {"id": "job1", "status": "succeeded", "model": "m", "version": "v", "input": {},
                 "output": output, "urls": {}}  # fmt: skip
    return json.dumps(value).encode()


def text_of(answer: Answer) -> str:
    """The text that the client received."""
    assert answer.status == 200, answer.body
    value = answer.json()
    text: str = (
        value["choices"][0]["message"]["content"] if "choices" in value else value["output"]["text"]
    )
    return text


@pytest.mark.parametrize("case", CASES)
def test_longer_than_declared(
    servers: dict[str, PolymuxServer], bad: MisbehavingServer, case: str
) -> None:
    """Bytes after the declared length look like another response and must be ignored."""
    path = CASES[case]
    poison = good(case, "poison")
    head = http1.head(200, [("Content-Type", "application/json"), ("Content-Length", len(poison))])
    for number in range(2):
        right = good(case, f"right {number}")
        bad.script(steps.wrong_content_length(len(right), right + head + poison), path=path)
        assert text_of(ask(servers, case)) == f"right {number}"
        bad.script(steps.answer(200, good(case, f"next {number}")), path=path)
        assert text_of(ask(servers, case)) == f"next {number}"


@pytest.mark.parametrize("case", CASES)
def test_called_something_else(
    servers: dict[str, PolymuxServer], bad: MisbehavingServer, case: str
) -> None:
    """The body decides the format, not its Content-Type. The gateway sends the right type."""
    right = good(case, "Grüße")
    bad.script(
        steps.answer(200, right, content_type="text/html; charset=latin-1"), path=CASES[case]
    )
    answer = ask(servers, case)
    assert text_of(answer) == "Grüße"
    assert answer.headers["content-type"] == "application/json"
    page = b"<html><body>Sign in</body></html>"
    bad.script(steps.answer(200, page, content_type="application/json"), path=CASES[case])
    failed = ask(servers, case)
    assert (failed.status, failed.json()["code"]) == (502, "upstream_failed")
    if case.endswith("chat"):  # Also streams, in full.
        head = steps.head(200, [("Content-Type", "text/html"), ("Connection", "close")])
        stream = event(chunk("x")) + event(chunk("", "stop")) + event("[DONE]")
        bad.script(head, steps.send(stream), steps.close(), path=CASES[case])
        answer = chat(servers[case.split()[0]], stream=True)
        assert events_of(answer) == [chunk("x"), chunk("", "stop"), "[DONE]"]


def many_choices(case: str, *, declared: bool) -> list[Step]:
    """A valid beginning followed by 64 MiB of choices."""
    start = good(case, "x")[:-1] + b', "choices": ['
    choice = b'{"index": 0, "message": {"role": "assistant", "content": "x"}},'
    block = choice * (MIB // len(choice))
    if declared:
        size = len(start) + 64 * len(block)
        fields = [("Content-Type", "application/json"), ("Content-Length", str(size))]
        return [steps.head(200, fields), steps.send(start), *[steps.send(block)] * 64]
    return [steps.chunked_head(), steps.chunk(start), *[steps.chunk(block)] * 64]


#: Responses that need no memory to create, but would fill all memory when read.
ENDLESS: dict[str, Callable[[str], list[Step]]] = {
    "bomb": lambda _: [steps.gzip_bomb()],
    "endless": lambda _: [steps.chunked_head(), steps.repeat_forever(b"4\r\n    \r\n")],
    "choices": partial(many_choices, declared=False),
    "choices as declared": partial(many_choices, declared=True),
    "bomb twice packed": lambda _: [steps.gzip_bomb(1 << 30, layers=2)],
    "twenty encodings": lambda _: [steps.gzip_bomb(1 << 20, layers=20)],
}


SETTINGS = """
[upstreams.other]
kind = "openai"
base_url = "{url}/v1"
models = {{ fast = "m" }}
"""


def test_memory_under_answers_without_end(bad: MisbehavingServer, tmp_path: Path) -> None:
    """Aborted at 32 MiB, after which the memory is free again (C11 to C13)."""
    case = "openai chat"
    path = CASES[case]

    def asked() -> Answer:
        body = json.dumps(ASKED).encode()
        return program.request("POST", CHAT, body, [("Content-Type", "application/json")])

    grown_bytes = {}
    settings = SETTINGS.format(url=bad.url)
    with ServeCommand(tmp_path, settings, whole=True).start() as program:
        for fault, play in ENDLESS.items():
            bad.script(steps.answer(200, good(case, "before")), path=path)
            assert text_of(asked()) == "before"
            before = len(bad.requests)
            bad.script(*play(case), path=path)
            with Grown(program.pid) as grown:
                answer = asked()
            assert (answer.status, answer.json()["code"]) == (502, "upstream_failed"), fault
            grown_bytes[fault] = grown.bytes
            for request in bad.requests[before:]:
                if request.path == path:
                    bad.wait_closed(request.connection, 15)
            bad.forget(path)
        assert SANITIZED or max(grown_bytes.values()) < MAX_BYTES, grown_bytes
        bad.script(steps.answer(200, good(case, "behind")), path=path)
        assert text_of(asked()) == "behind"


@pytest.mark.parametrize("count", [8_000, pytest.param(100_000, marks=LONG)])
@pytest.mark.parametrize(("kind", "pieces"), [("openai", "chunks"), ("polymux", "events")])
def test_very_many_pieces_of_one_byte(
    servers: dict[str, PolymuxServer], bad: MisbehavingServer, kind: str, pieces: str, count: int
) -> None:
    """Single-character events and single-byte HTTP chunks. No quadratic growth (C46)."""
    path = CASES[f"{kind} chat"]

    def work_s(count: int) -> float:
        letters = count if pieces == "events" else count // len(event(chunk("x")))
        stream = event(chunk("x")) * letters + event("[DONE]")
        if pieces == "events":
            play = [steps.event_stream(), steps.send(stream), steps.close()]
        else:
            data = b"".join(http1.chunk(stream[at : at + 1]) for at in range(len(stream)))
            play = [steps.chunked_head(content_type="text/event-stream"), steps.send(data),
                    steps.last_chunk()]  # fmt: skip
        bad.script(*play, path=path)
        began = time.process_time()
        answer = servers[kind].json(CHAT, ASKED | {"stream": True})
        took_s = time.process_time() - began
        assert events_of(answer) == [*[chunk("x")] * letters, "[DONE]"]
        return took_s

    few_s = work_s(count // 4)
    all_s = work_s(count)
    assert SANITIZED or all_s < 10
    assert SANITIZED or all_s < 0.5 + 10 * few_s
