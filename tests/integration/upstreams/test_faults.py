"""Upstreams that fail in every way: what callers are told, how soon, and what they never see."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import certificates, listeners, steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import CHAT
from support.upstreams import (
    ASKED,
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

    from servers.steps import Step
    from support.polymux_server import Answer, PolymuxServer

#: The upstream's deadlines, and what they may be late.
LIMITS: dict[str, float] = {"connect_s": 1, "first_byte_s": 1, "idle_s": 1, "total_s": 4}
LATE_S = 0.9
GOOD = json.dumps(WHOLE).encode()
#: What nobody but the operator may read: of our key, and of the upstream's customers.
PRIVATE = [CANARY, CANARY[:20], "org-8abc12", "api.groq.example", "10.0.0.7"]
SECRETS = f"{CANARY} {CANARY[:20]} org-8abc12 https://api.groq.example/x 10.0.0.7:99"


@pytest.fixture(scope="module")
def server(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("faults")
    upstreams = {"groq": upstream(folder, bad.url, models={"fast": "their-model"}, **LIMITS)}
    with gateway(folder, upstreams) as running:
        yield running


@pytest.fixture(scope="module")
def attic(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    """The same before another polymux."""
    folder = tmp_path_factory.mktemp("faults")
    models = {"fast": "their-model"}
    attic = upstream(folder, bad.url, kind="polymux", models=models, **LIMITS)
    with gateway(folder, {"attic": attic}) as running:
        yield running


def assert_tells_nothing(answer: Answer, bad: MisbehavingServer) -> None:
    told = answer.body.decode() + "\n".join(answer.lines)
    for secret in (*PRIVATE, str(bad.port), "127.0.0.1"):
        assert secret not in told


def error(text: str = SECRETS, **more: Any) -> bytes:
    return json.dumps({"error": {"message": text, "type": "t", **more}}).encode()


#: Name to steps, status and code, before anything of an answer has come.
BEFORE: dict[str, tuple[list[Step], int, str]] = {
    "400": ([steps.answer(400, error("messages is odd"))], 400, "invalid_request"),
    "400 too long": (
        [steps.answer(400, error(code="context_length_exceeded"))], 400, "context_length_exceeded",
    ),
    "400 too long at llama.cpp": (
        [steps.answer(400, error("the request exceeds the available context size", code=400,
                                 type="exceed_context_size_error"))],
        400, "context_length_exceeded",
    ),
    "400 too long at vLLM": (
        [steps.answer(400, error("This model's maximum context length is 4096 tokens.", code=400,
                                 type="BadRequestError"))],
        400, "context_length_exceeded",
    ),
    "401": ([steps.answer(401, error())], 502, "upstream_failed"),
    "402": ([steps.answer(402, error())], 502, "upstream_failed"),
    "403": ([steps.answer(403, error())], 502, "upstream_failed"),
    "404": ([steps.answer(404, error())], 502, "upstream_failed"),
    "404 model": (
        [steps.answer(404, error(code="model_not_found"))], 400, "model_not_found",
    ),
    "404 of vLLM": (
        [steps.answer(404, error("The model `x` does not exist.", type="NotFoundError",
                                 param=None, code=404))], 400, "model_not_found",
    ),
    "404 of an older vLLM": (
        [steps.answer(404, b'{"object": "error", "message": "The model `x` does not exist.", '
                           b'"type": "NotFoundError", "param": null, "code": 404}')],
        400, "model_not_found",
    ),
    "404 of Ollama": (
        [steps.answer(404, error("model 'x' not found, try pulling it first", code=None))],
        400, "model_not_found",
    ),
    "404 of Ollama's own": (
        [steps.answer(404, b'{"error": "model \'x\' not found"}')], 400, "model_not_found",
    ),
    "404 of a path": ([steps.answer(404, b"404 page not found")], 502, "upstream_failed"),
    "400 model gone": (
        [steps.answer(400, error(code="model_decommissioned"))], 400, "model_not_found",
    ),
    "400 key": (
        [steps.answer(400, error(f"API key not valid: {CANARY}", status="INVALID_ARGUMENT"))],
        502, "upstream_failed",
    ),
    "400 key, in a list": (
        [steps.answer(400, b'[{"error": {"code": 400, "message": "API key not valid. Please '
                           b'pass a valid API key.", "status": "INVALID_ARGUMENT"}}]')],
        502, "upstream_failed",
    ),
    "400 without words": (
        [steps.answer(400, f"<html>{SECRETS}".encode())], 400, "invalid_request",
    ),
    "413": ([steps.answer(413, error())], 413, "too_large"),
    "415": ([steps.answer(415, error())], 502, "upstream_failed"),
    "422": ([steps.answer(422, error())], 400, "invalid_request"),
    "429": ([steps.answer(429, error())], 429, "rate_limited"),
    "498": ([steps.answer(498, error())], 503, "overloaded"),
    "500": ([steps.answer(500, error())], 502, "upstream_failed"),
    "502": ([steps.answer(502, b"<html>")], 502, "upstream_failed"),
    "503": ([steps.answer(503, error())], 503, "overloaded"),
    "504": ([steps.answer(504, error())], 504, "upstream_timeout"),
    "529": ([steps.answer(529, error())], 503, "overloaded"),
    "redirect": ([steps.redirect(307, "http://127.0.0.1:1/")], 502, "upstream_failed"),
    "closed": ([steps.close()], 502, "upstream_failed"),
    "reset": ([steps.reset()], 502, "upstream_failed"),
    "half a head": ([steps.send(b"HTTP/1.1 200 OK\r\nConte"), steps.close()], 502,
                    "upstream_failed"),
    "no HTTP": ([steps.send(b"SSH-2.0-OpenSSH\r\n\r\n"), steps.close()], 502, "upstream_failed"),
    "silent": ([steps.stall()], 504, "upstream_timeout"),
    "many fields": ([steps.many_headers()], 502, "upstream_failed"),
    "huge field": ([steps.huge_header()], 502, "upstream_failed"),
}  # fmt: skip
#: In the body of what should be a whole answer.
BODIES: dict[str, tuple[list[Step], int, str]] = {
    "shorter": ([steps.wrong_content_length(1000, b'{"id":'), steps.close()], 502,
                "upstream_failed"),
    "chunks cut": ([steps.chunked_head(), steps.chunk(GOOD[:20]), steps.close()], 502,
                   "upstream_failed"),
    "reset within": ([steps.wrong_content_length(1000, GOOD), steps.reset()], 502,
                     "upstream_failed"),
    "stalled": ([steps.wrong_content_length(1000, GOOD), steps.stall()], 504, "upstream_timeout"),
    "drips": ([steps.split(1, 0.4), steps.answer(200, GOOD)], 504, "upstream_timeout"),
    "page": ([steps.answer(200, b"<html>", content_type="text/html")], 502, "upstream_failed"),
    "empty": ([steps.answer(200, b"")], 502, "upstream_failed"),
    "null": ([steps.answer(200, b"null")], 502, "upstream_failed"),
    "no choices": ([steps.answer(200, b'{"id":"x"}')], 502, "upstream_failed"),
    "wrong choices": ([steps.answer(200, b'{"choices":[{"message":3}]}')], 502, "upstream_failed"),
    "infinite": ([steps.answer(200, GOOD.replace(b"1763740800", b"1e999"))], 502,
                 "upstream_failed"),
    "events": ([steps.event_stream(), steps.send(event(chunk("x"))), steps.close()], 502,
               "upstream_failed"),
    "bomb": ([steps.gzip_bomb()], 502, "upstream_failed"),
    "bomb twice packed": ([steps.gzip_bomb(1 << 30, layers=2)], 502, "upstream_failed"),
    "twenty encodings": ([steps.gzip_bomb(1 << 20, layers=20)], 502, "upstream_failed"),
    "endless": ([steps.chunked_head(), steps.repeat_forever(b"4\r\nxxxx\r\n")], 502,
                "upstream_failed"),
}  # fmt: skip
#: In a stream, behind its first chunk: what the last event's code is.
STREAMS: dict[str, tuple[list[Step], str]] = {
    "closed": ([steps.close()], "upstream_failed"),
    "reset": ([steps.reset()], "upstream_failed"),
    "within a chunk": ([steps.send(event(chunk("y"))[:40]), steps.close()], "upstream_failed"),
    "within a letter": ([steps.send(b'data: {"choices":[{"delta":{"content":"\xc3'),
                         steps.close()], "upstream_failed"),
    "no JSON": ([steps.send(b"data: {oops\n\n")], "upstream_failed"),
    "an error": ([steps.send(event({"error": {"message": f"out of luck {SECRETS}"}}))],
                 "upstream_failed"),
    "an account's": ([steps.send(event({"error": {"message": "you owe us",
                                                  "type": "billing"}}))], "upstream_failed"),
    "silence": ([steps.stall()], "upstream_timeout"),
    "a line without end": ([steps.send(b"data: " + b"x" * (2 << 20))], "upstream_failed"),
}  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("fault", BEFORE)
def test_before_the_answer(
    server: PolymuxServer, bad: MisbehavingServer, fault: str, streamed: bool
) -> None:
    """C01 to C04, C08, C15, C16: a status of its own, in time, asked once."""
    play, status, code = BEFORE[fault]
    before = len(bad.requests)
    bad.script(*play)
    began = time.monotonic()
    answer = chat(server, stream=streamed)
    assert time.monotonic() - began < LIMITS["total_s"] + LATE_S
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert len(bad.requests) == before + 1
    assert "groq" in answer.json()["error"]
    assert ("retry-after" in answer.headers) == (status in (429, 503))
    assert_tells_nothing(answer, bad)


def test_words_about_the_request_are_told(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """C01: what was wrong with it, and nothing else."""
    bad.script(steps.answer(400, error(f"tools[0] is odd, see {SECRETS}", param="tools")))
    answer = chat(server)
    assert answer.json()["error"].startswith("the upstream groq refuses this: tools[0] is odd, see")
    assert answer.json()["param"] == "tools"
    assert_tells_nothing(answer, bad)


@pytest.mark.parametrize("body", [b"<html>Sign in", b'{"oops": "x"}', b"", b"[]", b"[3]"])
def test_what_is_no_message_is_not_quoted(
    server: PolymuxServer, bad: MisbehavingServer, body: bytes
) -> None:
    bad.script(steps.answer(400, body))
    assert chat(server).json()["error"] == "the upstream groq refuses this"


@pytest.mark.parametrize("fault", BODIES)
def test_in_the_body(server: PolymuxServer, bad: MisbehavingServer, fault: str) -> None:
    """C09 to C14, C30: never half an answer."""
    play, status, code = BODIES[fault]
    bad.script(*play)
    began = time.monotonic()
    answer = chat(server)
    assert time.monotonic() - began < LIMITS["total_s"] + LATE_S
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert_tells_nothing(answer, bad)


@pytest.mark.parametrize("path", [CHAT, FREE])
@pytest.mark.parametrize("kind", ["server", "attic"], ids=["openai", "polymux"])
@pytest.mark.parametrize("fault", STREAMS)
def test_in_a_stream(
    request: pytest.FixtureRequest, bad: MisbehavingServer, fault: str, kind: str, path: str
) -> None:
    """C20 to C23, C26, C27: what came, an error, and never the mark of a good end."""
    server: PolymuxServer = request.getfixturevalue(kind)
    play, code = STREAMS[fault]
    said = chunk("Hel") if path == CHAT else {"response": "Hel"}
    sent = said if kind == "attic" else chunk("Hel")
    bad.script(steps.event_stream(), steps.send(event(sent)), *play)
    began = time.monotonic()
    asked = dict(ASKED) if path == CHAT else {"messages": MESSAGES}
    answer = server.json(path, asked | {"stream": True})
    assert time.monotonic() - began < LIMITS["idle_s"] + 2 * LATE_S
    first, last = events_of(answer)
    assert first == said
    assert last["error"]["code"] == code
    assert b"[DONE]" not in answer.body
    assert "�" not in answer.body.decode()
    assert "owe" not in answer.body.decode()
    assert_tells_nothing(answer, bad)


def test_words_within_a_stream(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """C22: the upstream's own, as far as they are for strangers."""
    bad.script(
        steps.event_stream(),
        steps.send(event(chunk("a")) + event({"error": {"message": "out of luck"}})),
    )
    assert "out of luck" in events_of(chat(server, stream=True))[-1]["error"]["message"]


def test_what_comes_behind_the_end(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """C28."""
    bad.script(
        steps.event_stream(),
        steps.send(event(chunk("a", "stop")) + event("[DONE]") + event(chunk("b"))),
        steps.stall(),
    )
    assert events_of(chat(server, stream=True)) == [chunk("a", "stop"), "[DONE]"]
    bad.wait_closed(bad.requests[-1].connection, 3)


def test_an_early_hint(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """C18."""
    bad.script(steps.informational(103), steps.answer(200, GOOD))
    assert chat(server).status == 200


@pytest.mark.parametrize(
    ("field", "value", "told"),
    [
        ("Retry-After", "2", "2"),
        ("Retry-After", "Wed, 21 Oct 2015 07:28:00 GMT", "1"),
        ("Retry-After", "Fri, 31 Dec 2999 23:59:59 GMT", "3600"),
        ("Retry-After", "1.2", "2"),
        ("Retry-After", "-1", "1"),
        ("Retry-After", "1e9", "5"),
        ("Retry-After", "999999999", "3600"),
        ("Retry-After", "nan", "5"),
        ("retry-after-ms", "7000", "7"),
    ],
)
def test_after_how_long_to_come_again(
    server: PolymuxServer, bad: MisbehavingServer, field: str, value: str, told: str
) -> None:
    """C03."""
    bad.script(steps.answer(429, error(), [(field, value)]))
    assert chat(server).headers["retry-after"] == told


def test_a_connection_that_was_closed_meanwhile(
    server: PolymuxServer, bad: MisbehavingServer
) -> None:
    """C19: asked once more, in silence."""
    bad.script(steps.answer(200, GOOD), steps.close())
    assert chat(server).status == 200
    time.sleep(0.05)
    bad.script(steps.answer(200, GOOD))
    assert chat(server).status == 200


def test_a_request_that_may_be_worked_on_is_not_sent_again(
    server: PolymuxServer, bad: MisbehavingServer
) -> None:
    """C48: nor over a connection that was kept."""
    bad.script(steps.answer(200, GOOD))
    assert chat(server).status == 200
    before = len(bad.requests)
    bad.script(steps.reset())
    assert chat(server).status == 502
    assert len(bad.requests) == before + 1


def test_ports_where_nobody_answers(tmp_path: Path) -> None:
    """C05 to C07: refused at once, and in time where nothing is said."""
    with listeners.refusing_port() as refusing, listeners.full_port() as full:
        names = {"refusing": f"http://127.0.0.1:{refusing}", "full": f"http://127.0.0.1:{full}",
                 "nameless": "http://no-such-name.invalid"}  # fmt: skip
        upstreams = {
            name: upstream(tmp_path, url, models={name: "m"}, **LIMITS)
            for name, url in names.items()
        }
        with gateway(tmp_path, upstreams) as server:
            for name, status, max_s in (
                ("refusing", 502, 1), ("full", 504, 1 + LATE_S), ("nameless", 502, 5),
            ):  # fmt: skip
                began = time.monotonic()
                assert chat(server, model=name).status == status
                assert time.monotonic() - began < max_s


@pytest.mark.parametrize("requests", [30, pytest.param(1000, marks=[pytest.mark.long])])
def test_an_upstream_that_is_gone_and_comes_back(tmp_path: Path, requests: int) -> None:
    """C45: everybody is told at once, few ask it, and it is found again within seconds."""
    with listeners.refusing_port() as port:
        pass
    upstreams = {
        "gone": upstream(tmp_path, f"http://127.0.0.1:{port}", models={"fast": "m"}, **LIMITS)
    }
    with gateway(tmp_path, upstreams) as server:
        for _ in range(requests):
            began = time.monotonic()
            assert chat(server).status == 502
            assert time.monotonic() - began < 1
        told = server.ask("GET", "/readyz", key=None).json()["backends"]["gone"]
        assert told["state"] == "failed"
        with MisbehavingServer(port=port) as back:
            back.script(steps.answer(200, GOOD), times=None)
            began = time.monotonic()
            while chat(server).status != 200:
                assert time.monotonic() - began < 5
                time.sleep(0.1)
            assert chat(server).status == 200
            told = server.ask("GET", "/readyz", key=None).json()["backends"]["gone"]
            assert told["state"] == "ready"


def test_certificates_are_looked_at(tmp_path: Path) -> None:
    """C17: a stranger's is refused before the key is sent; the operator's own file is trusted."""
    good = certificates.Authority(tmp_path).certificate("good")
    with MisbehavingServer(tls=good.context()) as secure:
        secure.script(steps.answer(200, GOOD), times=None)
        upstreams = {
            "strange": upstream(tmp_path, secure.url, models={"strange": "m"}),
            "known": upstream(tmp_path, secure.url, models={"known": "m"}, certificates=good.ca),
        }
        with gateway(tmp_path, upstreams) as server:
            answer = chat(server, model="strange")
            assert answer.status == 502
            assert "certificate" in answer.json()["error"]
            assert secure.requests == []
            assert chat(server, model="known").status == 200


@pytest.mark.parametrize("flavour", ["expired", "wrong_name", "self_signed", "tls_1_0"])
def test_certificates_that_are_wrong(tmp_path: Path, flavour: certificates.Flavour) -> None:
    """C17: by an authority that the operator trusts; nothing is sent, nor tried without looking."""
    wrong = certificates.Authority(tmp_path).certificate(flavour)
    with MisbehavingServer(tls=wrong.context()) as secure:
        secure.script(steps.answer(200, GOOD), times=None)
        wanted = {
            "far": upstream(tmp_path, secure.url, models={"fast": "m"}, certificates=wrong.ca)
        }
        with gateway(tmp_path, wanted) as server:
            for stream in (False, True):
                answer = chat(server, stream=stream)
                assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
                assert_tells_nothing(answer, secure)
        assert secure.requests == []


def test_keys_are_nowhere_but_in_requests(
    bad: MisbehavingServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Not in logs, answers, records of jobs, or what a redirect leads to."""
    models = {"fast": "m", "turian/insanely-fast-whisper-with-video": "w"}
    upstreams = {
        "groq": upstream(
            tmp_path, bad.url, models=models, operations=("chat", "transcribe"), **LIMITS
        )
    }
    caplog.set_level(logging.DEBUG)
    bodies = []
    with MisbehavingServer() as decoy, gateway(tmp_path, upstreams) as server:
        decoy.script(steps.answer(200, GOOD), times=None)
        for play in (
            steps.answer(401, error()),
            steps.answer(500, error()),
            steps.answer(400, error()),
            steps.redirect(307, f"{decoy.url}/v1/chat/completions"),
            steps.redirect(302, f"{decoy.url}/v1/chat/completions"),
        ):
            bad.script(play)
            bodies.append(chat(server).body)
        assert decoy.connections == []
        assert bad.requests[-1].header("authorization") == f"Bearer {CANARY}"
        bodies += [
            server.ask("GET", path).body
            for path in ("/metrics", "/readyz", "/openapi.json", "/api/v1/predictions")
        ]
    kept = [one.read_bytes() for one in (tmp_path / "gateway").rglob("*") if one.is_file()]
    logged = "\n".join(f"{one.getMessage()} {one.exc_text}" for one in caplog.records).encode()
    for data in (*bodies, *kept, logged):
        assert CANARY.encode() not in data


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("number", "status"), [(401, 502), (402, 502), (403, 502), (429, 429), (400, 400)]
)
def test_a_status_as_the_code_of_an_error(
    server: PolymuxServer, bad: MisbehavingServer, number: int, status: int, streamed: bool
) -> None:
    """Behind a good status, as OpenRouter has it: told as that status, while nothing was sent."""
    error = {"error": {"message": "what Acme asks for", "code": number}}
    if streamed:
        bad.script(steps.event_stream(), steps.send(event(error)), steps.close())
    else:
        bad.script(steps.answer(200, json.dumps(error).encode()))
    answer = chat(server, stream=streamed)
    assert answer.status == status
    assert ("Acme" in answer.json()["error"]) == (status == 400)
    assert ("retry-after" in answer.headers) == (status == 429)
