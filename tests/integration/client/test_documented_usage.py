"""The successful uses that the guides to the Python client document, over real connections."""

from __future__ import annotations

import asyncio
import copy
import inspect
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.errors import InvalidRequestError
from servers.reference import ReferenceServer
from support.client_calls import FINE, KINDS, called
from support.client_children import KEY

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

REPLY = "You said: hello"


def test_both_clients_have_the_same_methods() -> None:
    """Names and parameters match, except close and aclose."""

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


@pytest.mark.parametrize("kind", KINDS)
def test_copies_share_connections(kind: type, reference: ReferenceServer) -> None:
    async def work(client: Any) -> None:
        for one in (client, copy.copy(client), copy.deepcopy(client)):
            made = one.chat("hello")
            assert (made if kind is polymux.Client else await made).text == REPLY

    run: Any = asyncio.run if kind is polymux.Client else lambda one: one
    called(kind, reference.url, lambda client: run(work(client)))
    assert len(reference.connections) == 1


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("POLYMUX_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "config.toml"


def test_where_the_server_is(
    reference: ReferenceServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arguments take precedence over the environment, which takes precedence over the file. The
    file's key applies only to the file's server.
    """
    file.write_text(f'base_url = "{reference.url}/api/v1/"\napi_key = "{KEY}"\nchat_model = "m"\n')
    with polymux.Client() as client:
        assert client.chat("hello").text == REPLY
    assert reference.calls[-1].body.get("model") == "m"
    monkeypatch.setenv("POLYMUX_BASE_URL", "http://192.0.2.1")
    monkeypatch.setenv("POLYMUX_API_KEY", "another-key")
    monkeypatch.setenv("POLYMUX_CHAT_MODEL", "of the environment")
    with polymux.Client(reference.url, KEY) as client:
        assert client.chat("hello").text == REPLY
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
def test_a_file_that_names_no_server(word: str, server: MisbehavingServer, file: Path) -> None:
    """Without a server, the key could go to any. The client raises an error and sends nothing."""
    file.write_text(f'{word} = "file-{KEY}"\n')
    wanted = pytest.raises(InvalidRequestError, match=rf"(?=.*{word}).*base_url")
    with polymux.Client(server.url) as client, wanted as refused:
        client.free_chat("hello")
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
    """Another user may own the current folder and redirect requests or send a key there."""
    text = f'base_url = "{server.url}"\napi_key = "of-a-stranger"\n'
    home = tmp_path / "home"
    (home / ".config" / "polymux").mkdir(parents=True)
    folder = tmp_path / "current"
    names = ["config.toml", "polymux.toml", "polymux/config.toml", ".config/polymux/config.toml"]
    names += ["xdg/polymux/config.toml", ".local/state/polymux/local-key", "polymux/local-key"]
    for name in (*names, "local-key"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        key = name.endswith("local-key")
        path.write_text(f"of-a-stranger {server.url}\n" if key else text)
    (folder / ".env").write_text(f"POLYMUX_BASE_URL={server.url}\nPOLYMUX_API_KEY=of-a-stranger\n")
    monkeypatch.chdir(folder)
    monkeypatch.delenv("POLYMUX_CONFIG")
    monkeypatch.setenv("HOME", str(home))
    for xdg in (None, "", "xdg", "."):
        for name in ("XDG_CONFIG_HOME", "XDG_STATE_HOME"):
            if xdg is None:
                monkeypatch.delenv(name, raising=False)
            else:
                monkeypatch.setenv(name, xdg)
        with polymux.Client() as client, pytest.raises(InvalidRequestError, match="BASE_URL"):
            client.free_chat("hello")
    assert not server.connections
    # The same file is read from the user's configuration folder.
    (home / ".config" / "polymux" / "config.toml").write_text(text)
    server.script(FINE)
    with polymux.Client() as client:
        assert client.free_chat("hello").text == "fine"


def test_what_an_answer_tells_of_itself(reference: ReferenceServer, ours: polymux.Client) -> None:
    """Bytes, headers, ID, time and retries. An error has the same ID."""
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


def test_pages_of_jobs(reference: ReferenceServer, ours: polymux.Client) -> None:
    made = [ours.generate_image("a boat", wait=False).id for _ in range(205)]
    jobs = ours.predictions.list()
    asked = len(reference.requests)
    assert next(jobs).id == made[-1]
    assert len(reference.requests) == asked + 1
    assert [one.id for one in jobs] == made[-2::-1]
    assert len(reference.requests) == asked + 3


def test_options_for_one_call_and_for_many(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    """`with_options` shares connections. Unknown fields are passed through."""
    other = ours.with_options(headers={"X-Team": "blue"}, chat_model="large")
    assert other.chat("hello", extra_body={"new_thing": 5}).text == REPLY
    call = reference.calls[-1]
    assert call.request.header("x-team") == "blue"
    assert call.body.get("model") == "large"
    assert call.body.get("new_thing") == 5
    assert ours.chat("hello").text == REPLY
    assert reference.calls[-1].request.header("x-team") is None
    assert len(reference.connections) == 1
    found = ours.request("musicsearch", {"song": "Blue Danube", "limit": 2})
    assert len(found) == 2
