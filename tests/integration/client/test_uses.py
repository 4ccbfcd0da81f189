"""What docs/client.md promises of the client where nothing goes wrong, over real connections."""

from __future__ import annotations

import asyncio
import inspect
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from polymux.errors import InvalidRequestError
from servers import steps
from servers.reference import ReferenceServer
from support.client_children import KEY, run_json

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

SAID = "You said: hello"
FINE = steps.answer(200, b'{"response":"fine"}')
WHATEVER = {"POLYMUX_BASE_URL": "http://192.0.2.1", "POLYMUX_API_KEY": "another-key"}


@pytest.fixture
def ours(reference: ReferenceServer) -> Iterator[polymux.Client]:
    with polymux.Client(reference.url, KEY, timeout=60) as made:
        yield made


def test_both_clients_have_the_same_methods() -> None:
    """The same names and the same arguments, but for close and aclose."""

    def methods(kind: type) -> dict[str, list[str]]:
        return {
            name: list(inspect.signature(getattr(kind, name)).parameters)
            for name in dir(kind)
            if not name.startswith("_") and callable(getattr(kind, name))
        }

    sync, awaited = methods(polymux.Client), methods(polymux.AsyncClient)
    assert sync.pop("close") == awaited.pop("aclose")
    assert len(sync) >= 14
    assert sync == awaited


def test_making_a_client_touches_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No file, no network: not even a configuration that is wrong is seen before it is needed."""
    wrong = tmp_path / "config.toml"
    wrong.write_text("base_url = ")
    monkeypatch.setenv("POLYMUX_CONFIG", str(wrong))
    client = polymux.Client(verify=tmp_path / "not-there.pem")
    assert "None" in repr(client)
    with pytest.raises(InvalidRequestError, match="TOML"):
        client.chat("hello")


def test_where_the_server_is(
    reference: ReferenceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments go first, then the environment, then the file; a file's key is for its server."""
    file = tmp_path / "config.toml"
    file.write_text(f'base_url = "{reference.url}/api/v1/"\napi_key = "{KEY}"\nchat_model = "m"\n')
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    with polymux.Client() as client:
        assert client.chat("hello").text == SAID
    assert reference.calls[-1].body.get("model") == "m"
    for name, value in WHATEVER.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("POLYMUX_CHAT_MODEL", "of the environment")
    with polymux.Client(reference.url, KEY) as client:
        assert client.chat("hello").text == SAID
        assert reference.calls[-1].body.get("model") == "of the environment"
    monkeypatch.setenv("POLYMUX_BASE_URL", reference.url)
    with polymux.Client() as client, pytest.raises(errors.AuthenticationError):
        client.chat("hello")
    assert reference.requests[-1].header("authorization") == "Bearer another-key"
    monkeypatch.delenv("POLYMUX_API_KEY")
    with ReferenceServer() as other, polymux.Client(other.url) as client:
        with pytest.raises(errors.AuthenticationError):
            client.chat("hello")
        assert other.requests[-1].header("authorization") is None


@pytest.mark.parametrize("word", ["api_key", "ca_file", "client_certificate", "proxy"])
def test_a_file_that_names_no_server(
    word: str, server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key would go to whichever server is asked: it is refused, and nothing is sent."""
    file = tmp_path / "config.toml"
    file.write_text(f'{word} = "file-{KEY}"\n')
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    with polymux.Client(server.url) as client, pytest.raises(InvalidRequestError) as refused:
        client.free_chat("hello")
    assert f"{word} needs base_url" in str(refused.value)
    assert KEY not in str(refused.value)
    assert not server.connections
    file.write_text('chat_model = "m"\n')
    server.script(FINE)
    with polymux.Client(server.url) as client:
        assert client.free_chat("hello").text == "fine"
    assert server.requests[-1].header("authorization") is None


def test_nothing_is_read_from_the_current_folder(
    server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """C1: that folder may be a stranger's, who would have all requests, or a key of his sent."""
    text = f'base_url = "{server.url}"\napi_key = "of-a-stranger"\n'
    home = tmp_path / "home"
    (home / ".config" / "polymux").mkdir(parents=True)
    folder = tmp_path / "current"
    for name in ("config.toml", "polymux.toml", ".polymux.toml", "polymux/config.toml",
                 ".config/polymux/config.toml", "xdg/polymux/config.toml",
                 ".local/state/polymux/local-key", "polymux/local-key", "local-key"):  # fmt: skip
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        key = name.endswith("local-key")
        path.write_text(f"of-a-stranger {server.url}\n" if key else text)
    (folder / ".env").write_text(f"POLYMUX_BASE_URL={server.url}\nPOLYMUX_API_KEY=of-a-stranger\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("POLYMUX_CONFIG")
    monkeypatch.setenv("HOME", str(home))
    for xdg in (None, "", "xdg", ".", "./xdg"):
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            if xdg is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, xdg)
        with polymux.Client() as client, pytest.raises(InvalidRequestError, match="no server"):
            client.free_chat("hello")
    assert not server.connections
    # The same file in the folder that is the account's own is read.
    (home / ".config" / "polymux" / "config.toml").write_text(text)
    server.script(FINE)
    with polymux.Client() as client:
        assert client.free_chat("hello").text == "fine"


def test_what_an_answer_tells_of_itself(reference: ReferenceServer, ours: polymux.Client) -> None:
    """Bytes, header fields, id, time and repetitions; an error has the same id."""
    answer = ours.chat("hello")
    assert answer.raw.startswith(b"{")
    assert answer.json()["object"] == "chat.completion"
    assert answer.extra["received"]["messages"][0]["content"] == "hello"
    assert answer.headers["polymux-version"] == "0.1.0"
    assert answer.request_id == reference.requests[-1].header("x-request-id")
    assert answer.elapsed_s is not None
    assert 0 < answer.elapsed_s < 60
    assert answer.retries == 0
    reference.fail(503, headers=[("retry-after-ms", "1")])
    assert ours.chat("hello").retries == 1
    reference.fail(400, "no such thing", code="why")
    with pytest.raises(errors.BadRequestError, match="no such thing") as refused:
        ours.chat("hello")
    assert refused.value.code == "why"
    assert refused.value.request_id == reference.requests[-1].header("x-request-id")


def test_a_hundred_streams_over_few_connections(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    """After [DONE] the connection is free for the next, though nobody reads the answer's end.

    One would do on an idle machine; an end that comes late makes another.
    """
    for _ in range(100):
        with ours.chat("hello", stream=True) as stream:
            assert "".join(stream.texts()) == SAID
    before = len(reference.connections)
    assert before <= 5

    async def main() -> None:
        async with polymux.AsyncClient(reference.url, KEY) as client:
            for _ in range(100):
                async with await client.chat("hello", stream=True) as stream:
                    assert "".join([one async for one in stream.texts()]) == SAID

    asyncio.run(main())
    assert len(reference.connections) <= before + 5


def test_a_stream_is_closed_by_another_thread(server: MisbehavingServer) -> None:
    """The reader, who waits for a chunk, is told; what came before stays."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    server.script(steps.event_stream(), steps.send(chunk), steps.stall())
    with polymux.Client(server.url, KEY) as client:
        stream = client.chat("hello", stream=True)
        assert next(stream).content == "Hel"
        closer = threading.Timer(0.2, stream.close)
        closer.start()
        with pytest.raises(polymux.PolymuxError):
            next(stream)
        closer.join()
        assert stream.text == "Hel"
        server.wait_closed(server.connections[-1])


def test_a_stream_is_closed_by_another_task(server: MisbehavingServer) -> None:
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    server.script(steps.event_stream(), steps.send(chunk), steps.stall())

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY) as client, asyncio.timeout(20):
            stream = await client.chat("hello", stream=True)
            assert (await anext(stream)).content == "Hel"
            reading = asyncio.ensure_future(anext(stream))
            await asyncio.sleep(0.1)
            await stream.aclose()
            with pytest.raises(polymux.PolymuxError):
                await reading
            assert stream.text == "Hel"

    asyncio.run(main())
    server.wait_closed(server.connections[-1])


def test_a_cancelled_task_closes_its_connection(server: MisbehavingServer) -> None:
    server.script(steps.stall())
    server.script(FINE)

    async def main() -> None:
        async with polymux.AsyncClient(server.url, KEY) as client:
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await client.free_chat("hello")
            await asyncio.to_thread(server.wait_closed, server.connections[0])
            assert (await client.free_chat("hello")).text == "fine"

    asyncio.run(main())


def test_threads_share_a_client(reference: ReferenceServer, ours: polymux.Client) -> None:
    """Each gets its own answers, over few connections.

    One for each thread; and another where the end of a stream is late, whose connection is busy.
    """

    def ask(number: int) -> bool:
        if number % 2:
            return ours.chat(f"number {number}").text == f"You said: number {number}"
        with ours.chat(f"number {number}", stream=True) as stream:
            return "".join(stream.texts()) == f"You said: number {number}"

    with ThreadPoolExecutor(8) as threads:
        assert all(threads.map(ask, range(400)))
    assert 1 <= len(reference.connections) <= 24


def test_one_client_for_many_event_loops(reference: ReferenceServer) -> None:
    """One loop after the other, as in notebooks, and several at once in threads of their own."""
    client = polymux.AsyncClient(reference.url, KEY)

    async def ask() -> str:
        answers = await asyncio.gather(*(client.chat("hello") for _ in range(5)))
        async with await client.chat("hello", stream=True) as stream:
            texts = [one async for one in stream.texts()]
        assert {one.text for one in answers} == {"".join(texts)}
        return answers[0].text

    assert [asyncio.run(ask()), asyncio.run(ask())] == [SAID, SAID]
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda _: asyncio.run(ask()), range(8))) == [SAID] * 8
    asyncio.run(client.aclose())


def test_a_stream_stays_with_its_loop(reference: ReferenceServer) -> None:
    async def begin(client: polymux.AsyncClient) -> polymux.AsyncChatStream:
        return await client.chat("hello", stream=True)

    async def read(stream: polymux.AsyncChatStream) -> None:
        async with asyncio.timeout(10):
            await anext(stream)
            await anext(stream)

    client = polymux.AsyncClient(reference.url, KEY)
    reference.chats.pause_s = 0.5
    with asyncio.Runner() as runner:
        stream = runner.run(begin(client))
        with pytest.raises(RuntimeError, match="another event loop"):
            asyncio.run(read(stream))
        runner.run(client.aclose())


def test_closing_ends_what_runs(server: MisbehavingServer) -> None:
    """In every thread and loop; closing twice is once; a closed client says that it is."""
    server.script(steps.stall(), times=None)
    client = polymux.Client(server.url, KEY, retry=0)
    ended: list[BaseException] = []

    def ask() -> None:
        try:
            client.free_chat("hello")
        except polymux.PolymuxError as error:
            ended.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    server.wait_requests(3)
    client.close()
    client.close()
    for thread in threads:
        thread.join(20)
    assert len(ended) == 3
    with pytest.raises(InvalidRequestError, match="closed"):
        client.free_chat("hello")
    with pytest.raises(InvalidRequestError, match="closed"):
        client.with_options(timeout=1).free_chat("hello")


AT_EXIT = """
client, other = polymux.Client(url, key), polymux.AsyncClient(url, key)
open_stream = client.chat("hello", stream=True)
next(open_stream)
async def main():
    global open_too
    open_too = await other.chat("hello", stream=True)
    await anext(open_too)
asyncio.run(main())
names = [read(f"/proc/self/task/{one}/comm").strip() for one in os.listdir("/proc/self/task")]
threading.Thread(target=lambda: client.free_chat("hello"), daemon=True).start()
say(json.dumps([names, [one.name for one in threading.enumerate()]]))
"""


def test_leaving_with_everything_open(server: MisbehavingServer) -> None:
    """The program ends at once, in silence, and one thread was the client's."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"Hel"}}]}\n\n'
    server.script(steps.event_stream(), steps.send(chunk), steps.stall(), times=None)
    begun = time.monotonic()
    names, known_to_python = run_json(AT_EXIT, server.url)
    assert time.monotonic() - begun < 30
    assert names.count("polymux-io") == 1
    assert known_to_python[0] == "MainThread"
    for connection in server.connections:
        server.wait_closed(connection)
