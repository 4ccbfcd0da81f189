"""Server URL and API key from the configuration: spellings, empty keys and invalid files."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import config
from polymux.config import configuration
from polymux.errors import InvalidRequestError
from support.client_calls import FINE
from support.client_children import KEY, run

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer

SPELLINGS = {
    "http://server.example": ["HTTP://Server.Example", "http://server.example:80",
                              "http://server.example/api/v1/"],
    "https://Server.example/pre": ["https://server.example:443/pre/"],
    "http://127.1:8000": ["http://127.0.0.1:8000"],
    "http://[0::1]": ["http://[::1]:80"],
}  # fmt: skip
OTHERS = ["http://server.example:81", "https://server.example", "http://other.example",
          "http://server.example/pre", "http://server.example.:80"]  # fmt: skip


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    # Otherwise the client would use the API key of a server that this user runs.
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("POLYMUX_CONFIG", str(tmp_path / "config.toml"))
    return tmp_path / "config.toml"


@pytest.mark.parametrize("named", SPELLINGS)
def test_the_file_s_server_by_any_spelling(named: str, file: Path) -> None:
    """The key applies to every spelling of that server's URL and to no other server."""
    file.write_text(f'base_url = "{named}"\napi_key = "{KEY}"\n')
    for url in (named, *SPELLINGS[named]):
        assert configuration(url).api_key == KEY, url
        assert configuration(url, "").api_key is None
        assert configuration(url, "own").api_key == "own"
    for url in {*OTHERS, *SPELLINGS} - {named}:
        assert configuration(url).api_key is None, url
    assert configuration(None, "").base_url == config.checked_base_url(named)
    assert configuration(None, "").api_key is None


@pytest.mark.parametrize("key", [None, "of-the-environment"])
def test_an_empty_key_is_none(
    key: str | None, server: MisbehavingServer, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An empty key counts as unset, even if the environment or the file has a key."""
    file.write_text(f'base_url = "{server.url}"\napi_key = "{KEY}"\n')
    if key is not None:
        monkeypatch.setenv("POLYMUX_API_KEY", key)
    for given, wanted in (("", None), (None, f"Bearer {key or KEY}"), ("own", "Bearer own")):
        server.script(FINE)
        with polymux.Client(server.url, given) as client:
            client.free_chat("hello")
        assert server.requests[-1].header("authorization") == wanted


@pytest.mark.parametrize(
    ("text", "pattern"),
    [('chat_modle = "m"', r"chat_modle.*chat_model\b"),
     ("timeout = 5", "timeout.*base_url"),
     ("[client]\nchat_model = 'm'", r"\bclient\b"),
     ("base_url = ", "TOML"), ("a = 1" + "0" * 5000, "TOML"),
     ("a = " + "[" * 5000, "TOML"), (None, "POLYMUX_CONFIG")],
)  # fmt: skip
def test_a_file_that_is_wrong(
    text: str | None, pattern: str, server: MisbehavingServer, file: Path
) -> None:
    """Fails when the file is needed. A misspelled setting must not be ignored silently."""
    if text is not None:
        file.write_text(text)
    with polymux.Client(server.url) as client:
        with pytest.raises(InvalidRequestError, match=pattern):
            client.free_chat("hello")
        assert not server.connections
        # Windows editors write a byte order mark and CRLF.
        file.write_bytes(b'\xef\xbb\xbfchat_model = "m"\r\n[songs]\nindex_dir = "x"\n')
        server.script(FINE)
        assert client.free_chat("hello").text == "fine"


TOUCHING = """
import polymux.client.sync_client, polymux.client.async_client
from polymux.client.options import Retry, Timeout  # Imported before the audit starts.
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
    """An audit hook checks that the constructor opens no file or socket and imports nothing."""
    run(TOUCHING, server.url, environment={"POLYMUX_CONFIG": "/nowhere"})
    assert not server.connections
