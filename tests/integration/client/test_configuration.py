"""Where the server is and what its key is: spellings, empty keys, and what is misspelt."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import config
from polymux.config import configuration
from polymux.errors import InvalidRequestError
from servers import steps
from support.client_children import KEY, run

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

FINE = steps.answer(200, b'{"response":"fine"}')
SPELLINGS = {
    "http://server.example": ["HTTP://Server.Example", "http://server.example:80",
                              "http://server.example/api/v1/"],
    "https://Server.example/pre": ["https://server.example:443/pre/"],
    "http://127.1:8000": ["http://127.0.0.1:8000"],
    "http://[0::1]": ["http://[::1]:80"],
}  # fmt: skip
OTHERS = ["http://server.example:81", "https://server.example", "http://other.example",
          "http://server.example/pre", "http://server.example.:80"]  # fmt: skip


@pytest.mark.parametrize("named", SPELLINGS)
def test_the_file_s_server_by_any_spelling(
    named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its key is for that server, however it is written; and for no other."""
    file = tmp_path / "config.toml"
    file.write_text(f'base_url = "{named}"\napi_key = "{KEY}"\n')
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    for url in (named, *SPELLINGS[named]):
        assert configuration(url).api_key == KEY, url
        assert configuration(url, "").api_key is None
        assert configuration(url, "own").api_key == "own"
    for url in {*OTHERS, *SPELLINGS} - {named}:
        assert configuration(url).api_key is None, url
    assert configuration(None, "").base_url == config.checked_base_url(named)
    assert configuration(None, "").api_key is None


def test_an_empty_key_is_none(
    server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever the environment and the file have, nothing is sent."""
    file = tmp_path / "config.toml"
    file.write_text(f'base_url = "{server.url}"\napi_key = "{KEY}"\n')
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    for key in (None, "of-the-environment"):
        if key is not None:
            monkeypatch.setenv("POLYMUX_API_KEY", key)
        for given, wanted in (("", None), (None, f"Bearer {key or KEY}"), ("own", "Bearer own")):
            server.script(FINE)
            with polymux.Client(server.url, given) as client:
                client.free_chat("hello")
            assert server.requests[-1].header("authorization") == wanted


@pytest.mark.parametrize(
    ("text", "told"),
    [('chat_modle = "m"', "chat_modle is not known (did you mean chat_model?)"),
     ('base-url = "http://x"', "base-url is not known (did you mean base_url?)"),
     ("timeout = 5", "timeout is not known (known: base_url, api_key"),
     ("[client]\nchat_model = 'm'", "client is not known")],
)  # fmt: skip
def test_names_that_mean_nothing(
    text: str, told: str, server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is misspelt would not hold, and nobody would know."""
    file = tmp_path / "config.toml"
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    with polymux.Client(server.url) as client, pytest.raises(InvalidRequestError) as refused:
        client.free_chat("hello")
    assert "cannot read POLYMUX_CONFIG" in str(refused.value)
    file.write_text(text)
    with polymux.Client(server.url) as client, pytest.raises(InvalidRequestError) as refused:
        client.free_chat("hello")
    assert told in str(refused.value)
    assert not server.connections
    file.write_text('chat_model = "m"\n[songs]\ncatalogue = "x"\n')
    server.script(FINE)
    with polymux.Client(server.url) as client:
        assert client.free_chat("hello").text == "fine"


@pytest.mark.parametrize("text", ["a = 1" + "0" * 5000, "a = " + "[" * 5000])
def test_a_file_that_is_hard_to_read(
    text: str, server: MisbehavingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config.toml"
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    file.write_text(text)
    with polymux.Client(server.url) as client:
        with pytest.raises(InvalidRequestError, match="is not valid TOML"):
            client.free_chat("hello")
        # As editors of Windows save it.
        file.write_bytes(b'\xef\xbb\xbfchat_model = "m"\r\n')
        server.script(FINE)
        assert client.free_chat("hello").text == "fine"


TOUCHING = """
import polymux.client.sync_client, polymux.client.async_client
from polymux.client.options import Retry, Timeout  # What is given is loaded before.
import polymux._util.redaction, polymux.errors
import polymux.client.chat_stream, polymux.client.methods.results
touched = []
opened = ("open", "socket.connect", "socket.__new__", "os.listdir", "os.scandir", "import")
sys.addaudithook(lambda event, _: touched.append((event, _)) if event in opened else None)
for kind in (polymux.Client, polymux.AsyncClient):
    kind()
    kind(url, key, timeout=5, retry=1, chat_model="m", headers={"X-A": "b"},
         paths={"chat": "/x"}, proxy="http://127.0.0.1:1", trust_env=True, verify="no.pem",
         client_certificate="no.pem", http2=False, max_event_bytes=100).with_options(timeout=3)
assert not touched, touched
"""


def test_a_constructor_opens_nothing(server: MisbehavingServer) -> None:
    """No file, no socket and no module, as the interpreter itself reports them."""
    run(TOUCHING, server.url, environment={"POLYMUX_CONFIG": "/nowhere"})
    assert not server.connections
