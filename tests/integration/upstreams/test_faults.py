"""Failing upstreams: errors, their timing, and secrets that must not leak. Case IDs: testing.md."""

from __future__ import annotations

import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import certificates, listeners, steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import CHAT
from support.upstream_faults import FAILED, LATE, LIMITS, NO_ANSWER, broken
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
    from support.upstream_faults import Fault

#: Tolerance for an upstream's deadlines, in seconds.
LATE_S = 15.0
GOOD = json.dumps(WHOLE).encode()
#: Texts that only the operator may see: parts of the API key and of the upstream's internal data.
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
    """A gateway whose upstream is another polymux server."""
    folder = tmp_path_factory.mktemp("faults")
    models = {"fast": "their-model"}
    attic = upstream(folder, bad.url, kind="polymux", models=models, **LIMITS)
    with gateway(folder, {"attic": attic}) as running:
        yield running


def assert_tells_nothing(answer: Answer, bad: MisbehavingServer) -> None:
    text = answer.body.decode() + "\n".join(answer.lines)
    for secret in (*PRIVATE, str(bad.port), "127.0.0.1"):
        assert secret not in text


def error(text: str = SECRETS, **more: Any) -> bytes:
    return json.dumps({"error": {"message": text, "type": "t", **more}}).encode()


ODD, LONG = (400, "invalid_request"), (400, "context_length_exceeded")
NO_MODEL = (400, "model_not_found")


def says(number: int, text: str = SECRETS, /, **more: Any) -> list[Step]:
    return [steps.answer(number, error(text, **more))]


#: Faults before any byte of a response.
BEFORE: dict[str, Fault] = {
    "400": (says(400, "messages is odd"), ODD),
    "400 too long": (says(400, code="context_length_exceeded"), LONG),
    "400 too long at llama.cpp": (
        says(400, "the request exceeds the available context size", code=400,
             type="exceed_context_size_error"), LONG,
    ),
    "400 too long at vLLM": (
        says(400, "This model's maximum context length is 4096 tokens.", code=400,
             type="BadRequestError"), LONG,
    ),
    "401": (says(401), FAILED),
    "402": (says(402), FAILED),
    "403": (says(403), FAILED),
    "404": (says(404), FAILED),
    "404 model": (says(404, code="model_not_found"), NO_MODEL),
    "404 of vLLM": (
        says(404, "The model `x` does not exist.", type="NotFoundError", param=None, code=404),
        NO_MODEL,
    ),
    "404 of an older vLLM": (
        [steps.answer(404, b'{"object": "error", "message": "The model `x` does not exist.", '
                           b'"type": "NotFoundError", "param": null, "code": 404}')], NO_MODEL,
    ),
    "404 of Ollama": (
        says(404, "model 'x' not found, try pulling it first", code=None), NO_MODEL,
    ),
    "404 of Ollama's own": (
        [steps.answer(404, b'{"error": "model \'x\' not found"}')], NO_MODEL,
    ),
    "404 of a path": ([steps.answer(404, b"404 page not found")], FAILED),
    "400 model gone": (says(400, code="model_decommissioned"), NO_MODEL),
    "400 key": (says(400, f"API key not valid: {CANARY}", status="INVALID_ARGUMENT"), FAILED),
    "400 key, in a list": (
        [steps.answer(400, b'[{"error": {"code": 400, "message": "API key not valid. Please '
                           b'pass a valid API key.", "status": "INVALID_ARGUMENT"}}]')], FAILED,
    ),
    "400 without words": ([steps.answer(400, f"<html>{SECRETS}".encode())], ODD),
    "413": (says(413), (413, "too_large")),
    "415": (says(415), FAILED),
    "422": (says(422), ODD),
    "429": (says(429), (429, "rate_limited")),
    "498": (says(498), (503, "overloaded")),
    "500": (says(500), FAILED),
    "502": ([steps.answer(502, b"<html>")], FAILED),
    "503": (says(503), (503, "overloaded")),
    "504": (says(504), LATE),
    "529": (says(529), (503, "overloaded")),
    **NO_ANSWER,
}  # fmt: skip
#: Faults in the body of a non-streaming response.
BODIES: dict[str, Fault] = broken(GOOD) | {
    "drips": ([steps.split(1, 0.4), steps.answer(200, GOOD)], LATE),
    "null": ([steps.answer(200, b"null")], FAILED),
    "no choices": ([steps.answer(200, b'{"id":"x"}')], FAILED),
    "wrong choices": ([steps.answer(200, b'{"choices":[{"message":3}]}')], FAILED),
    "infinite": ([steps.answer(200, GOOD.replace(b"1763740800", b"1e999"))], FAILED),
    "events": ([steps.event_stream(), steps.send(event(chunk("x"))), steps.close()], FAILED),
    "bomb twice packed": ([steps.gzip_bomb(1 << 27, layers=2)], FAILED),
    "twenty encodings": ([steps.gzip_bomb(1 << 20, layers=20)], FAILED),
}
#: Faults after the first chunk of a stream, with the error code of the last event.
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


@pytest.mark.parametrize(
    ("fault", "streamed"),
    [*((fault, False) for fault in BEFORE),
     *((fault, True) for fault in ("400 too long", "404 of Ollama", "429", "503", "silent"))],
)  # fmt: skip
def test_before_the_answer(
    server: PolymuxServer, bad: MisbehavingServer, fault: str, streamed: bool
) -> None:
    """Each fault has its own status, arrives in time and is not retried (C01 to C04, C08, C15 and
    C16).
    """
    play, (status, code) = BEFORE[fault]
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


def test_words_about_the_request_are_quoted(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """The client sees what is wrong with its request and nothing else (C01)."""
    bad.script(steps.answer(400, error(f"tools[0] is odd, see {SECRETS}", param="tools")))
    answer = chat(server)
    assert "tools[0] is odd, see" in answer.json()["error"]
    assert answer.json()["param"] == "tools"
    assert_tells_nothing(answer, bad)


def test_what_is_no_message_is_not_quoted(server: PolymuxServer, bad: MisbehavingServer) -> None:
    messages = set()
    for body in (b"<html>Sign in", b'{"oops": "x"}', b"[3]"):
        bad.script(steps.answer(400, body))
        messages.add(chat(server).json()["error"])
    assert len(messages) == 1


@pytest.mark.parametrize("fault", BODIES)
def test_in_the_body(server: PolymuxServer, bad: MisbehavingServer, fault: str) -> None:
    """A partial response is never returned (C09 to C14 and C30)."""
    play, (status, code) = BODIES[fault]
    bad.script(*play)
    began = time.monotonic()
    answer = chat(server)
    assert time.monotonic() - began < LIMITS["total_s"] + LATE_S
    assert (answer.status, answer.json()["code"]) == (status, code)
    assert_tells_nothing(answer, bad)


@pytest.mark.parametrize(
    ("kind", "path", "fault"),
    [*(("server", CHAT, fault) for fault in STREAMS),
     *((kind, path, fault) for kind, path in (("server", FREE), ("attic", CHAT), ("attic", FREE))
       for fault in ("closed", "no JSON", "an error", "silence"))],
)  # fmt: skip
def test_in_a_stream(
    request: pytest.FixtureRequest, bad: MisbehavingServer, fault: str, kind: str, path: str
) -> None:
    """Received chunks and an error, but never [DONE] (C20 to C23, C26 and C27)."""
    server: PolymuxServer = request.getfixturevalue(kind)
    play, code = STREAMS[fault]
    expected = chunk("Hel") if path == CHAT else {"response": "Hel"}
    sent = expected if kind == "attic" else chunk("Hel")
    bad.script(steps.event_stream(), steps.send(event(sent)), *play)
    began = time.monotonic()
    asked = dict(ASKED) if path == CHAT else {"messages": MESSAGES}
    answer = server.json(path, asked | {"stream": True})
    assert time.monotonic() - began < LIMITS["idle_s"] + 2 * LATE_S
    first, last = events_of(answer)
    assert first == expected
    assert last["error"]["code"] == code
    assert b"[DONE]" not in answer.body
    assert "�" not in answer.body.decode()
    assert "owe" not in answer.body.decode()
    assert_tells_nothing(answer, bad)


def test_words_within_a_stream(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """The upstream's message is kept if it has no private data (C22)."""
    bad.script(
        steps.event_stream(),
        steps.send(event(chunk("a")) + event({"error": {"message": "out of luck"}})),
    )
    assert "out of luck" in events_of(chat(server, stream=True))[-1]["error"]["message"]


def test_what_comes_behind_the_end(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """Case C28."""
    bad.script(
        steps.event_stream(),
        steps.send(event(chunk("a", "stop")) + event("[DONE]") + event(chunk("b"))),
        steps.stall(),
    )
    assert events_of(chat(server, stream=True)) == [chunk("a", "stop"), "[DONE]"]
    bad.wait_closed(bad.requests[-1].connection, 3)


def test_an_early_hint(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """Case C18."""
    bad.script(steps.informational(103), steps.answer(200, GOOD))
    assert chat(server).status == 200


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("Retry-After", "2", "2"),
        ("Retry-After", "Fri, 31 Dec 2999 23:59:59 GMT", "3600"),
        ("Retry-After", "nan", "5"),
        ("retry-after-ms", "7000", "7"),
    ],
)
def test_after_how_long_to_come_again(
    server: PolymuxServer, bad: MisbehavingServer, field: str, value: str, expected: str
) -> None:
    """Case C03."""
    bad.script(steps.answer(429, error(), [(field, value)]))
    assert chat(server).headers["retry-after"] == expected


def test_a_connection_that_was_closed_meanwhile(
    server: PolymuxServer, bad: MisbehavingServer
) -> None:
    """The request is silently sent once more (C19)."""
    bad.script(steps.answer(200, GOOD), steps.close())
    assert chat(server).status == 200
    time.sleep(0.05)
    bad.script(steps.answer(200, GOOD))
    assert chat(server).status == 200


def test_a_request_that_may_be_worked_on_is_not_sent_again(
    server: PolymuxServer, bad: MisbehavingServer
) -> None:
    """This includes requests over a reused connection (C48)."""
    bad.script(steps.answer(200, GOOD))
    assert chat(server).status == 200
    before = len(bad.requests)
    bad.script(steps.reset())
    assert chat(server).status == 502
    assert len(bad.requests) == before + 1


def test_ports_where_nobody_answers(tmp_path: Path) -> None:
    """A refused connection fails at once, a silent one by the deadline (C05 to C07)."""
    with listeners.refusing_port() as refusing, listeners.full_port() as full:
        names = {"refusing": f"http://127.0.0.1:{refusing}", "full": f"http://127.0.0.1:{full}",
                 "nameless": "http://no-such-name.invalid"}  # fmt: skip
        upstreams = {
            name: upstream(tmp_path, url, models={name: "m"}, **LIMITS)
            for name, url in names.items()
        }
        with gateway(tmp_path, upstreams) as server:
            for name, status, max_s in (
                ("refusing", 502, LATE_S), ("full", 504, 1 + LATE_S), ("nameless", 502, LATE_S),
            ):  # fmt: skip
                began = time.monotonic()
                assert chat(server, model=name).status == status
                assert time.monotonic() - began < max_s


@pytest.mark.parametrize("requests", [30, pytest.param(1000, marks=[pytest.mark.long])])
def test_an_upstream_that_is_gone_and_comes_back(tmp_path: Path, requests: int) -> None:
    """Errors come at once, few requests probe it, and it is used within seconds (C45)."""
    with listeners.refusing_port() as port:
        pass
    upstreams = {
        "gone": upstream(tmp_path, f"http://127.0.0.1:{port}", models={"fast": "m"}, **LIMITS)
    }
    with gateway(tmp_path, upstreams) as server:
        for _ in range(requests):
            began = time.monotonic()
            assert chat(server).status == 502
            assert time.monotonic() - began < LATE_S
        backend = server.ask("GET", "/readyz", key=None).json()["backends"]["gone"]
        assert backend["state"] == "failed"
        with MisbehavingServer(port=port) as back:
            back.script(steps.answer(200, GOOD), times=None)
            began = time.monotonic()
            while chat(server).status != 200:
                assert time.monotonic() - began < 30
                time.sleep(0.1)
            assert chat(server).status == 200
            backend = server.ask("GET", "/readyz", key=None).json()["backends"]["gone"]
            assert backend["state"] == "ready"


def test_certificates_are_looked_at(tmp_path: Path) -> None:
    """Untrusted ones are rejected before the key is sent. The CA file is trusted (C17)."""
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
    """Invalid, but by a trusted CA. Nothing is sent, verification never skipped (C17)."""
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
    """Logs, responses, stored jobs and redirect targets never contain the keys."""
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
    """OpenRouter sends errors with status 200 and the real status in `code`. The gateway returns
    that status unless it has already sent data.
    """
    error = {"error": {"message": "what Acme asks for", "code": number}}
    if streamed:
        bad.script(steps.event_stream(), steps.send(event(error)), steps.close())
    else:
        bad.script(steps.answer(200, json.dumps(error).encode()))
    answer = chat(server, stream=streamed)
    assert answer.status == status
    assert ("Acme" in answer.json()["error"]) == (status == 400)
    assert ("retry-after" in answer.headers) == (status == 429)
