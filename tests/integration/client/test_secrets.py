"""Secrets must not appear in output (K19 and C02), and invalid URLs are rejected (K10)."""

from __future__ import annotations

import copy
import io
import json
import logging
import pickle
import traceback
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux._util import redaction
from polymux._util.text import shortened, shown
from servers import steps
from servers.listeners import refusing_port
from support.client_calls import FINE, KINDS, called
from support.client_children import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer
    from servers.steps import Step

#: Contains a character that JSON may escape.
SECRET = "sk-canary/7c1f&93ab-KLMNOPQRST"
OTHER = "header-canary/51d0"
ESCAPES = {
    "plain": SECRET, "slashes": SECRET.replace("/", "\\/"),
    "all": "".join(f"\\u{ord(char):04x}" for char in SECRET),
}  # fmt: skip


def all_shown(error: BaseException) -> str:
    """All texts of an error that a program may log."""
    texts = [str(error), repr(error), repr(error.args), repr(vars(error))]
    texts.append("".join(traceback.format_exception(error)))
    if isinstance(error, errors.PolymuxError):
        texts.append(json.dumps(error.to_dict()))
    texts.append(repr(vars(pickle.loads(pickle.dumps(error)))))
    texts.append(repr(vars(copy.deepcopy(error))))
    stream = io.StringIO()
    logger = logging.Logger("canary")
    logger.addHandler(logging.StreamHandler(stream))
    logger.error("failed: %s", error, exc_info=error)
    texts.append(stream.getvalue())
    return "\n".join(texts)


def check(error: BaseException) -> None:
    """Check that neither the error nor its causes contain a secret or a part of one."""
    text = all_shown(error)
    for secret in (SECRET[:6], SECRET[-6:], OTHER):
        assert secret not in text, text
    for cause in (error.__cause__, error.__context__):
        if cause is not None:
            check(cause)


def failed(kind: type, url: str, call: Callable[[Any], object], **options: Any) -> BaseException:
    """Return a call's error, which shows no secret. The client has a key and a secret header."""
    options |= {"api_key": SECRET, "headers": {"X-Api-Key": OTHER}, "retry": 0, "timeout": 5}
    with pytest.raises(errors.PolymuxError) as caught:
        called(kind, url, call, **options)
    check(caught.value)
    return caught.value


def quick(client: Any) -> object:
    return client.free_chat("x")


def streamed(client: Any) -> object:
    return client.chat("x", stream=True)


@pytest.mark.parametrize("status", [401, 500])
@pytest.mark.parametrize("form", ESCAPES)
def test_a_server_that_repeats_the_key(status: int, form: str, server: MisbehavingServer) -> None:
    """The key is in the message, code, headers and other parts of the error (C02 and K19)."""
    key = ESCAPES[form]
    value = (
        f'{{"error":{{"message":"no such key {key}","code":"{key}","type":"{key}",'
        f'"param":"{key}","more":["{key}",{{"{key}":"{OTHER}"}}]}},"request_id":"{key}"}}'
    )
    fields = [("X-Request-ID", SECRET), ("WWW-Authenticate", f'Bearer error="{SECRET}"')]
    for body in (value, f"<html>{SECRET} {OTHER}</html>"):
        server.script(steps.answer(status, body.encode(), fields), times=3)
        for kind, call in ((KINDS[0], quick), (KINDS[1], quick), (KINDS[1], streamed)):
            assert "***" in str(failed(kind, server.url, call))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ESCAPES)
def test_a_stream_that_repeats_the_key(form: str, kind: type, server: MisbehavingServer) -> None:
    """Cases C02 and K19."""
    key = ESCAPES[form]
    for event in (
        f'{{"error":{{"message":"wrong {key}","code":"{key}","type":"{key}","param":"{key}"}}}}',
        f'{{"{SECRET}": nonsense}}', SECRET,
    ):  # fmt: skip
        play = steps.send(f"data: {event}\n\n".encode()), steps.close()
        server.script(steps.event_stream(), *play)
        failed(kind, server.url, streamed)


@pytest.mark.parametrize(
    "play",
    [
        *([steps.answer(200, body.encode())] for body in (
            f'{{"{SECRET}": 1, "response": 5}}', f'"{SECRET}"', f'{{"response": "x"}} {SECRET}')),
        [steps.close()], [steps.reset()], [steps.send(SECRET.encode() + b"\r\n"), steps.close()],
        [steps.many_headers()], [steps.redirect(307, f"http://127.0.0.1:1/{SECRET}")],
        [steps.head(200, [("Content-Encoding", SECRET), ("Content-Length", 2)]), steps.send(b"{}")],
    ],
)  # fmt: skip
def test_an_answer_that_repeats_the_key(play: list[Step], server: MisbehavingServer) -> None:
    """The response is invalid or the connection fails, with the key in received data (K19)."""
    server.script(*play)
    failed(polymux.Client, server.url, quick)


def test_errors_of_the_way() -> None:
    """The password of a proxy (K19)."""
    password = OTHER.replace("/", "")
    with refusing_port() as port:
        proxy = f"http://user:{password}@127.0.0.1:{port}"
        error = failed(polymux.Client, "http://server.example", quick, proxy=proxy)
    assert password not in all_shown(error)
    assert password not in repr(polymux.Client("http://server.example", proxy=proxy))


#: Steps shorter than the key, up to the length at which messages are truncated.
PADS = [*range(0, 320, 50), 190, 590, 970, 990]


def text(pad: int, tail: int = 900) -> str:
    return "x" * pad + SECRET + "y" * tail


def body(status: int, value: object) -> list[Step]:
    data = value if isinstance(value, str) else json.dumps(value)
    return [steps.answer(status, data.encode())]


def event(data: str) -> list[Step]:
    return [steps.event_stream(), steps.send(f"{data}\n\n".encode()), steps.close()]


CUT: dict[str, tuple[Callable[[int], list[Step]], Callable[[Any], object]]] = {
    "a job's error": (
        lambda pad: body(200, {"id": "j", "status": "failed", "error": text(pad)}),
        lambda client: client.generate_image("x"),
    ),
    "a status": (lambda pad: body(500, {"error": text(pad)}), quick),
    "a page": (lambda pad: body(500, f"<p>{text(pad)}"), quick),
    "no JSON": (lambda pad: body(200, f"<p>{text(pad)}"), quick),
    "an error in the place of an answer": (lambda pad: body(200, {"error": text(pad)}), quick),
    "a code": (lambda pad: body(400, {"error": {"message": "no", "code": text(pad)}}), quick),
    "a place": (lambda pad: [steps.redirect(307, f"http://127.0.0.1:1/{text(pad, 200)}")], quick),
    "a stream": (
        lambda pad: event("data: " + json.dumps({"error": {"message": text(pad)}})), streamed
    ),
    "an event": (
        lambda pad: event(f"event: error\ndata: {text(pad)}"),
        lambda client: client.predictions.events("a"),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CUT)
def test_a_key_where_a_text_is_shortened(name: str, server: MisbehavingServer) -> None:
    """Redaction happens before truncation, so no part of a key remains at any position."""
    answer, ask = CUT[name]
    for pad in PADS:
        server.script(*answer(pad))
        failed(polymux.Client, server.url, ask)


def test_which_secrets_are_hidden() -> None:
    """Longer secrets are replaced before their prefixes, and escaped forms are found. If there are
    very many secrets, the latest are kept. The scheme before a credential is not a secret.
    """
    redaction.register_secret("sk-0123", "sk-0123-456789")
    assert redaction.redact("sk-0123-456789 and sk-0123") == "*** and ***"
    unknown = "pmx_" + "aB3-_" * 8
    assert unknown[8:] not in redaction.redact(f"GET /api/v1/{unknown}/chat 404")
    escaped = "a\\b'c\"d-0123456789"
    headers = {"Authorization": "Token canary-a1 b2c3"}
    polymux.Client("http://127.0.0.1:1", escaped, headers=headers).close()
    assert shown(f"the key {escaped}") == "'the key ***'"
    assert "0123456789" not in shortened(f"{'x' * 190}{escaped}{'y' * 90}")
    assert redaction.redact("canary-a1 and b2c3 by Token") == "*** and *** by Token"
    for number in range(5000):
        redaction.register_secret(f"key-{number:06}")
    assert redaction.redact("key-000000 key-004999") == "key-000000 ***"


def parts_of(client: Any) -> Iterator[Any]:
    """A client and every object that its attributes reach."""
    seen, waiting = set(), [client]
    while waiting:
        one = waiting.pop()
        module = type(one).__module__
        if id(one) in seen or not module.startswith("polymux") or module == "polymux._native._core":
            continue
        seen.add(id(one))
        yield one
        names = [name for kind in type(one).__mro__ for name in getattr(kind, "__slots__", ())]
        names += list(getattr(one, "__dict__", {}))
        waiting += [getattr(one, name) for name in names if hasattr(one, name)]


@pytest.mark.parametrize("kind", KINDS)
def test_what_clients_show(kind: Any, server: MisbehavingServer) -> None:
    """repr, str, format, copy and pickle of a client and its parts (K19)."""
    server.script(FINE, times=None)
    client = kind(server.url, SECRET, headers={"Authorization": f"Bearer {OTHER}"})
    if kind is polymux.Client:
        client.free_chat("x")
    for one in (client, copy.copy(client), copy.deepcopy(client), client.with_options()):
        for part in parts_of(one):
            for output in (repr(part), str(part), f"{part}"):
                assert SECRET not in output, type(part)
                assert OTHER not in output, type(part)
        with pytest.raises(TypeError) as caught:
            pickle.dumps(one)
        check(caught.value)
    for part in parts_of(client):
        try:
            data = pickle.dumps(part)
        except Exception:
            continue
        assert SECRET.encode() not in data, type(part)


def test_what_is_logged(server: MisbehavingServer) -> None:
    """With the debug logs of polymux, asyncio and libcurl enabled (K19)."""
    code = """
import logging, io
stream = io.StringIO()
logging.basicConfig(level=1, stream=stream)
secret = sys.argv[2]
with polymux.Client(url, secret, retry=2, headers={"X-Api-Key": secret}) as client:
    client.free_chat("x")
    try:
        client.free_chat("x")
    except polymux.PolymuxError as error:
        logging.exception(error)
async def main():
    async with polymux.AsyncClient(url, secret) as client:
        await client.free_chat("x")
asyncio.run(main(), debug=True)
text = stream.getvalue()
assert "free_chat" in text, text
assert secret not in text, text
"""
    server.script(FINE)
    server.script(steps.answer(401, json.dumps({"error": SECRET}).encode()))
    server.script(FINE)
    run(code, server.url, SECRET, environment={"POLYMUX_LOG": "debug"})


@pytest.mark.parametrize("bad", ["\r\nX-Injected: 1", "\n", "\x00", " ", "ü", "\x7f", "\ud800"])
def test_what_cannot_be_sent(bad: str, server: MisbehavingServer) -> None:
    """Invalid keys, URLs, headers and paths: an early ValueError without the value (K10)."""

    def client_of(**options: Any) -> polymux.Client:
        return polymux.Client(server.url, "key", retry=0, **options)

    host = server.url.removeprefix("http://")
    wrong: list[Callable[[], Any]] = [
        lambda: polymux.Client(server.url, SECRET + bad),
        lambda: polymux.AsyncClient(server.url, bad + SECRET),
        lambda: polymux.Client(server.url + bad),
        lambda: polymux.Client(f"http://{bad}{host}"),
        lambda: polymux.Client(f"{server.url}/a{bad}b"),
        lambda: client_of(paths={"free_chat": f"/a{bad}b"}).free_chat("x"),
        lambda: client_of(proxy=f"http://127.0.0.1:1/{bad}").free_chat("x"),
        lambda: client_of(headers={f"X-A{bad}": "x"}),
    ]
    if bad != " ":
        wrong.append(lambda: client_of(headers={"X-A": f"{SECRET}{bad}"}))
        wrong.append(lambda: client_of().with_options(headers={"X-A": f"{SECRET}{bad}"}))
    for make in wrong:
        with pytest.raises(ValueError) as caught:
            make()
        assert SECRET not in str(caught.value)
    assert server.connections == []


def test_keys_of_the_environment_and_the_file(
    server: MisbehavingServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The same for the environment and the file. The file's text is never shown (K10)."""
    monkeypatch.setenv("POLYMUX_API_KEY", SECRET + "\n")
    with pytest.raises(ValueError) as caught:
        polymux.Client(server.url).free_chat("x")
    check(caught.value)
    monkeypatch.delenv("POLYMUX_API_KEY")
    monkeypatch.setenv("POLYMUX_CONFIG", str(tmp_path / "config.toml"))
    for content in (f'api_key = "{SECRET}', f"api_key = {SECRET}", f'api_key = ["{SECRET}"]',
                    SECRET):  # fmt: skip
        (tmp_path / "config.toml").write_text(content)
        with pytest.raises(ValueError) as caught:
            polymux.Client(server.url).free_chat("x")
        assert SECRET not in str(caught.value)
    assert server.connections == []


@pytest.mark.parametrize(
    "url",
    ["", "ftp://127.0.0.1", "//127.0.0.1", "127.0.0.1:80", "http://", "http:///x",
     "http://127.0.0.1:99999", "http://127.0.0.1:x", "http://[::1",
     "http://user:pass@127.0.0.1", "http://127.0.0.1?x=1", "http://127.0.0.1#x",
     "http://127.0.0.1\\@192.0.2.1", "http://127.0.0.1/<x>", "http://127.0.0.1:80:80"],
)  # fmt: skip
def test_addresses_that_are_none(url: str) -> None:
    """Invalid URLs are rejected when the client is created (K10)."""
    with pytest.raises(ValueError) as caught, polymux.Client(url, SECRET, retry=0) as client:
        client.free_chat("x", timeout=1)
    check(caught.value)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize("path", ["@127.0.0.1:1/x", ".example/x", "x", "", ":1/x", "//a/x#", "?x"])
def test_paths_that_lead_elsewhere(path: str) -> None:
    """The path of an operation must be on the client's server (K10)."""
    with pytest.raises(ValueError):
        polymux.Client("http://127.0.0.1:1", SECRET, paths={"free_chat": path})
