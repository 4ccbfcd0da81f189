"""Keys that nobody may see (K19, C02), and addresses that are none (K10)."""

from __future__ import annotations

import asyncio
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
from servers import steps
from servers.listeners import refusing_port
from support.client_children import run

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

#: With a character that JSON may write as an escape.
SECRET = "sk-canary/7c1f&93ab"
OTHER = "header-canary/51d0"
ESCAPES = {
    "plain": SECRET, "slashes": SECRET.replace("/", "\\/"),
    "all": "".join(f"\\u{ord(char):04x}" for char in SECRET),
}  # fmt: skip


@pytest.fixture
def secretive(server: MisbehavingServer) -> Iterator[polymux.Client]:
    with polymux.Client(
        server.url, SECRET, retry=0, timeout=5, headers={"X-Api-Key": OTHER}
    ) as client:
        yield client


def shown(error: BaseException) -> str:
    """Everything that anybody might write down of an error, its causes included."""
    texts = [str(error), repr(error), repr(error.args), repr(vars(error))]
    texts.append("".join(traceback.format_exception(error)))
    if isinstance(error, errors.PolymuxError):
        texts.append(json.dumps(error.to_dict()))
    texts.append(repr(vars(pickle.loads(pickle.dumps(error)))))
    texts.append(repr(vars(copy.deepcopy(error))))
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    logger = logging.Logger("canary")
    logger.addHandler(handler)
    logger.error("failed: %s", error, exc_info=error)
    texts.append(stream.getvalue())
    return "\n".join(texts)


def check(error: BaseException) -> None:
    text = shown(error)
    assert SECRET not in text
    assert OTHER not in text
    for cause in (error.__cause__, error.__context__):
        if cause is not None:
            check(cause)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 409, 422, 429, 500, 501, 503])
@pytest.mark.parametrize("form", ESCAPES)
def test_a_server_that_repeats_the_key(
    status: int, form: str, server: MisbehavingServer, secretive: polymux.Client
) -> None:
    """C02, K19: in the text, the code, the headers and where else errors have room."""
    key = ESCAPES[form]
    value = (
        f'{{"error":{{"message":"no such key {key}","code":"{key}","type":"{key}",'
        f'"param":"{key}","more":["{key}",{{"{key}":"{OTHER}"}}]}},"request_id":"{key}"}}'
    )
    fields = [("X-Request-ID", SECRET), ("WWW-Authenticate", f'Bearer error="{SECRET}"')]
    for body in (value.encode(), f"<html>{SECRET} {OTHER}</html>".encode()):
        server.script(steps.answer(status, body, fields))
        with pytest.raises(errors.APIStatusError) as caught:
            secretive.free_chat("x")
        check(caught.value)
    assert "***" in str(caught.value)


@pytest.mark.parametrize("form", ESCAPES)
def test_a_stream_that_repeats_the_key(
    form: str, server: MisbehavingServer, secretive: polymux.Client
) -> None:
    """C02, K19: in the error of a stream."""
    key = ESCAPES[form]
    for event in (
        f'{{"error":{{"message":"wrong {key}","code":"{key}","type":"{key}","param":"{key}"}}}}',
        f'{{"{SECRET}": nonsense}}', SECRET,
    ):  # fmt: skip
        server.script(
            steps.event_stream(), steps.send(f"data: {event}\n\n".encode()), steps.close()
        )
        with pytest.raises(errors.PolymuxError) as caught:
            list(secretive.chat("x", stream=True))
        check(caught.value)


def test_an_answer_that_repeats_the_key(
    server: MisbehavingServer, secretive: polymux.Client
) -> None:
    """K19: 200 with the key in what is no result."""
    for body in (
        f"<html>{SECRET}</html>", f'{{"{SECRET}": 1, "response": 5}}', f'"{SECRET}"',
        f'{{"response": {{"{SECRET}": 1}}}}', f'{{"response": "x"}} {SECRET}',
    ):  # fmt: skip
        server.script(steps.answer(200, body.encode()))
        with pytest.raises(errors.DecodeError) as caught:
            secretive.free_chat("x")
        check(caught.value)


def test_a_job_that_repeats_the_key(server: MisbehavingServer, secretive: polymux.Client) -> None:
    """K19: in the reason of a job that failed."""
    job = {"id": "a", "status": "failed", "error": f"no right for {SECRET}", "output": None}
    server.script(steps.answer(200, json.dumps(job).encode()), times=2)
    for call in (
        lambda: secretive.predictions.wait("a"),
        lambda: secretive.upscale_image(("a.png", b"x")),
    ):
        with pytest.raises(errors.PredictionFailedError) as caught:
            call()
        assert SECRET not in str(caught.value)
        assert SECRET not in "".join(traceback.format_exception(caught.value))


def test_errors_of_the_way(server: MisbehavingServer, secretive: polymux.Client) -> None:
    """K19: connections that fail in every way."""
    for play in (
        (steps.close(),), (steps.reset(),), (steps.send(SECRET.encode() + b"\r\n"), steps.close()),
        (steps.wrong_content_length(9, b"x"), steps.close()), (steps.many_headers(),),
        (steps.redirect(307, f"http://127.0.0.1:1/{SECRET}"),),
        (steps.head(200, [("Content-Encoding", SECRET), ("Content-Length", 2)]), steps.send(b"{}")),
    ):  # fmt: skip
        server.script(*play)
        with pytest.raises(errors.PolymuxError) as caught:
            secretive.free_chat("x")
        check(caught.value)
    server.script(steps.stall())
    with pytest.raises(errors.RequestTimeoutError) as timed_out:
        secretive.free_chat("x", timeout=0.2)
    check(timed_out.value)
    with refusing_port() as port:
        proxy = f"http://user:{OTHER.replace('/', '')}@127.0.0.1:{port}"
        with polymux.Client("http://server.example", SECRET, proxy=proxy, retry=0) as client:
            with pytest.raises(errors.ConnectError) as refused:
                client.free_chat("x")
            check(refused.value)
            assert OTHER.replace("/", "") not in shown(refused.value)
            assert OTHER.replace("/", "") not in repr(client)


def parts_of(client: Any) -> Iterator[Any]:
    """A client and everything that can be reached by its attributes."""
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


def test_what_clients_show(server: MisbehavingServer) -> None:
    """K19: repr, str, format, copy, pickle; of a client, its parts and its results."""
    server.script(steps.answer(200, b'{"response":"fine"}'), times=None)
    for kind in (polymux.Client, polymux.AsyncClient):
        client: Any = kind(server.url, SECRET, headers={"Authorization": f"Bearer {OTHER}"})
        if kind is polymux.Client:
            client.free_chat("x")
        for one in (client, copy.copy(client), copy.deepcopy(client), client.with_options()):
            for part in parts_of(one):
                for text in (repr(part), str(part), f"{part}"):
                    assert SECRET not in text, type(part)
                    assert OTHER not in text, type(part)
            with pytest.raises(TypeError, match="pickled") as caught:
                pickle.dumps(one)
            check(caught.value)
        for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
            for part in parts_of(client):
                try:
                    data = pickle.dumps(part, protocol)
                except Exception:
                    continue
                assert SECRET.encode() not in data, type(part)


def test_what_is_logged(server: MisbehavingServer) -> None:
    """K19: with everything told that can be told, by polymux, asyncio and libcurl."""
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
    server.script(steps.answer(200, b'{"response":"fine"}'))
    server.script(steps.answer(401, json.dumps({"error": SECRET}).encode()))
    server.script(steps.answer(200, b'{"response":"fine"}'))
    run(code, server.url, SECRET, environment={"POLYMUX_LOG": "debug"})


BROKEN = ["\r\nX-Injected: 1", "\n", "\x00", " ", "\t", "ü", "\u202e", "\x7f", "\ud800"]


@pytest.mark.parametrize("bad", BROKEN)
def test_what_cannot_be_sent(bad: str, server: MisbehavingServer) -> None:
    """K10: ValueError before a byte is sent, for keys, addresses, fields, paths; never shown."""

    def client_of(**options: Any) -> polymux.Client:
        return polymux.Client(server.url, "key", retry=0, **options)

    host = server.url.removeprefix("http://")
    wrong: list[Callable[[], Any]] = [
        lambda: polymux.Client(server.url, SECRET + bad),
        lambda: polymux.Client(server.url, bad + SECRET),
        lambda: polymux.AsyncClient(server.url, SECRET + bad),
        lambda: polymux.Client(server.url + bad),
        lambda: polymux.Client(f"http://{bad}{host}"),
        lambda: polymux.Client(f"{server.url}/a{bad}b"),
        lambda: client_of(paths={"free_chat": f"/a{bad}b"}).free_chat("x"),
        lambda: client_of(proxy=f"http://127.0.0.1:1/{bad}").free_chat("x"),
        lambda: client_of(headers={f"X-A{bad}": "x"}),
    ]
    if bad not in (" ", "\t"):
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
    """K10: the same where they do not come from arguments; a file's text is never shown."""
    monkeypatch.setenv("POLYMUX_API_KEY", SECRET + "\n")
    with pytest.raises(ValueError) as caught:
        polymux.Client(server.url).free_chat("x")
    check(caught.value)
    monkeypatch.delenv("POLYMUX_API_KEY")
    monkeypatch.setenv("POLYMUX_CONFIG", str(tmp_path / "config.toml"))
    for text in (f'api_key = "{SECRET}', f"api_key = {SECRET}", f'base_url = "{SECRET}"',
                 f'api_key = ["{SECRET}"]', f'{SECRET}'):  # fmt: skip
        (tmp_path / "config.toml").write_text(text)
        with pytest.raises(ValueError) as caught:
            polymux.Client(server.url).free_chat("x")
        if "base_url" not in text:
            assert SECRET not in str(caught.value)
    assert server.connections == []


@pytest.mark.parametrize(
    "url",
    ["", "ftp://127.0.0.1", "file:///etc/passwd", "//127.0.0.1", "127.0.0.1:80", "http://",
     "http:///x", "http://127.0.0.1:99999", "http://127.0.0.1:-1", "http://127.0.0.1:0",
     "http://127.0.0.1:x", "http://[::1", "http://::1]", "http://user:pass@127.0.0.1",
     "http://127.0.0.1?x=1", "http://127.0.0.1#x", "http://127.0.0.1\\@192.0.2.1",
     "http://127.0.0.1/<x>", "javascript:alert(1)", "http://127.0.0.1:80:80"],
)  # fmt: skip
def test_addresses_that_are_none(url: str) -> None:
    """K10: refused when the client is made."""
    with pytest.raises(ValueError) as caught, polymux.Client(url, SECRET, retry=0) as client:
        client.free_chat("x", timeout=1)
    check(caught.value)
    assert "pass@" not in str(caught.value)


@pytest.mark.parametrize(
    "path", ["@127.0.0.1:{port}/x", ".example/x", "x", "", ":1/x", "//127.0.0.1:{port}/x#", "?x"]
)
def test_paths_that_lead_elsewhere(path: str, server: MisbehavingServer) -> None:
    """K10: an operation's path is one on the client's own server."""
    with refusing_port() as port:
        wanted = path.format(port=server.port)
        with pytest.raises(ValueError):
            polymux.Client(f"http://127.0.0.1:{port}", SECRET, paths={"free_chat": wanted})
    assert server.connections == []


def test_what_is_no_text(server: MisbehavingServer) -> None:
    """K10: TypeError for what is of another type."""
    for make in (
        lambda: polymux.Client(b"http://127.0.0.1", "x"), lambda: polymux.Client(server.url, 5),
        lambda: polymux.Client(server.url, headers={"X": 5}),
        lambda: polymux.Client(server.url, paths={"chat": 5}),
        lambda: polymux.Client(server.url, retry="5"),
        lambda: polymux.Client(server.url, retry=True),
    ):  # fmt: skip
        with pytest.raises((TypeError, ValueError)):
            make()  # type: ignore[no-untyped-call]


def test_the_key_of_a_stream_s_answer(server: MisbehavingServer) -> None:
    """K19: for asyncio as for all."""

    async def main() -> None:
        async with polymux.AsyncClient(server.url, SECRET, retry=0) as client:
            server.script(steps.answer(401, json.dumps({"error": SECRET}).encode()))
            with pytest.raises(errors.AuthenticationError) as caught:
                await client.free_chat("x", stream=True)
            check(caught.value)
            error = json.dumps({"error": {"message": SECRET}}).encode()
            server.script(steps.event_stream(), steps.send(b"data: " + error + b"\n\n"))
            with pytest.raises(errors.APIError) as failed:
                async for _ in await client.free_chat("x", stream=True):
                    pass
            check(failed.value)

    asyncio.run(main())
