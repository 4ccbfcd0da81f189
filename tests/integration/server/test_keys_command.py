"""`polymux keys`, and a running server that must apply the changes."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from polymux.cli import main
from polymux.server.auth.api_keys import KeyFile
from support.polymux_server import CHAT, HELLO, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KEY = re.compile(r"pmx_[A-Za-z0-9_-]{43}\n")


class Keys:
    """The command for one store. Collects everything that it prints."""

    def __init__(self, store: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.place: tuple[str, ...] = ("--data-dir", str(store))
        self.file = store / "keys.json"
        self.printed = ""
        self._capsys = capsys

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run the command and return its standard output."""
        try:
            found = main(["keys", *words, *self.place])
        except SystemExit as end:  # argparse exits like this.
            found = int(end.code or 0)
        assert found == code
        captured = self._capsys.readouterr()
        self.printed += captured.out + captured.err
        return captured.out

    def made(self, *words: str) -> str:
        """Return the key, which must be the only text on standard output."""
        out = self(*words)
        assert KEY.fullmatch(out), out
        return out.strip()

    def listed(self) -> list[dict[str, object]]:
        found: list[dict[str, object]] = json.loads(
            self("list", "--json"), parse_constant=pytest.fail
        )
        return found


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PolymuxServer]:
    """A server with the command's store."""
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as running:
        yield running


@pytest.fixture
def keys(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Keys:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return Keys(tmp_path / "s", capsys)


def test_keys_over_their_lives(server: PolymuxServer, keys: Keys) -> None:
    """Changes apply from the next request. A key is printed once and never stored in a file."""
    first = keys.made("add", "website")
    assert server.json(CHAT, HELLO, key=first).status == 200
    second = keys.made("rotate", "website")
    assert server.json(CHAT, HELLO, key=first).status == 401
    assert server.json(CHAT, HELLO, key=second).status == 200
    (one,) = (one for one in keys.listed() if one["name"] == "website")
    keys("list")
    assert str(one["id"]) in keys("rm", str(one["id"]))
    assert server.json(CHAT, HELLO, key=second).status == 401
    assert [one["name"] for one in keys.listed()] == ["test"]
    assert server.json(CHAT, HELLO).status == 200
    for key in (first, second):
        assert keys.printed.count(key) == 1
        assert key not in keys.file.read_text()
    assert "sha256" not in keys.printed
    assert keys.file.stat().st_mode & 0o777 == 0o600


def test_what_a_key_may_do(tmp_path: Path, keys: Keys) -> None:
    """Its scopes, rate limit and concurrency. A rotated key has the same limits."""
    keys.made("add", "narrow", "--scope", "chat", "--scope", "metrics")
    keys.made("add", "reader", "--scope", "read-text")
    slow = ("--requests-per-minute", "1", "--concurrent", "3", "--max-estimate", "60")
    keys.made("add", "slow", *slow, "--expires", "2")
    keys.made("add", "short", "--expires", "1e-9")
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as server:
        key = keys.made("rotate", "narrow")
        assert server.json(CHAT, HELLO, key=key).status == 200
        answer = server.ask("GET", "/api/v1/predictions", key=key)
        assert (answer.status, answer.json()["code"]) == (403, "forbidden")
        key = keys.made("rotate", "slow")
        assert [server.json(CHAT, HELLO, key=key).status for _ in range(2)] == [200, 429]
        answer = server.json(CHAT, HELLO, key=keys.made("rotate", "short"))
        assert (answer.status, answer.json()["code"]) == (401, "unauthorized")
    found = {str(one["name"]): one for one in keys.listed()}
    assert found["narrow"]["scopes"] == ["chat", "metrics"]
    assert found["reader"]["scopes"] == ["read_text"]
    limits = ("requests_per_minute", "concurrent", "max_estimate_s")
    assert [found["slow"][name] for name in limits] == [1, 3, 60]
    assert [found["narrow"][name] for name in limits] == [None, None, None]
    assert str(found["slow"]["expires_at"]) > str(found["slow"]["created_at"])
    lines = keys("list").splitlines()
    assert [one.split()[1] for one in lines] == [str(one["name"]) for one in keys.listed()]
    assert "scopes chat,metrics  expires never" in "\n".join(lines)


def test_a_key_that_is_changed(server: PolymuxServer, keys: Keys) -> None:
    """The key and unspecified fields do not change. New values apply from the next request."""
    key = keys.made("add", "website", "--concurrent", "3", "--expires", "2")
    assert server.json(CHAT, HELLO, key=key).status == 200
    output = keys("update", "website", "--scope", "metrics", "--name", "site")
    assert "scopes metrics  concurrent 3  expires 2" in output
    assert server.json(CHAT, HELLO, key=key).status == 403
    keys("update", "site", "--scope", "all", "--requests-per-minute", "1", "--concurrent", "none")
    assert [server.json(CHAT, HELLO, key=key).status for _ in range(2)][-1] == 429
    keys("update", "site", "--requests-per-minute", "none", "--expires", "none")
    (one,) = (one for one in keys.listed() if one["name"] == "site")
    assert server.json(CHAT, HELLO, key=key).status == 200
    bounds = ("scopes", "requests_per_minute", "concurrent", "max_estimate_s", "expires_at")
    assert [one[name] for name in bounds] == [None] * 5
    keys("update", str(one["id"]), "--expires", "1e-9")
    assert server.json(CHAT, HELLO, key=key).status == 401
    assert keys.printed.count(key) == 1


def test_quiet_commands(keys: Keys) -> None:
    secret = keys.made("add", "website", "-q")
    rotated = keys.made("rotate", "website", "-q")
    assert keys("update", "website", "--concurrent", "3", "-q") == ""
    assert keys("rm", "website", "-q") == ""
    assert keys.printed == f"{secret}\n{rotated}\n"


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("rm", "nobody"), "nobody"),
        (("rotate", "twice"), "2 "),
        (("add", "x", "--scope", "nonsense"), "nonsense"),
        (("add", "x", "--scope", "operations"), "known: administration, chat, "),
        (("add", "x", "--concurrent", "0"), "--concurrent: out of range (got 0,"),
        (("add", "x", "--expires", "inf"), "--expires: out of range (got inf,"),
        (("add", "x", "--scope", "all", "--scope", "chat"), "--scope: unknown scope 'all'"),
        (("add", " "), "100"),
        (("add", "a\x1b[31mred"), "name: "),
        (("update", "twice", "--name", "x"), "2 "),
        (("update", "twice"), "--expires"),
        (("update", "twice", "--concurrent", "1.5"), "'1.5'"),
    ],
)
def test_what_cannot_be_done_changes_nothing(keys: Keys, words: tuple[str, ...], text: str) -> None:
    keys.made("add", "twice")
    keys.made("add", "twice")
    before, keys.printed = keys.file.read_bytes(), ""
    assert keys(*words, code=2) == ""
    assert text in keys.printed
    assert keys.file.read_bytes() == before


def test_keys_of_the_settings_file(tmp_path: Path, keys: Keys) -> None:
    """`--config` gives the store, or a separate key file."""
    settings = tmp_path / "polymux.toml"
    elsewhere = tmp_path / "elsewhere" / "keys.json"
    settings.write_text(f'keys = "{elsewhere}"\n[store]\nfolder = "{tmp_path / "s"}"\n')
    keys.place = ("--config", str(settings))
    keys.made("add", "website")
    assert elsewhere.stat().st_mode & 0o777 == 0o600
    assert not keys.file.exists()
    assert keys("list").split()[1] == "website"


def test_a_name_that_would_drive_a_terminal(keys: Keys) -> None:
    """The command rejects such a name, but a program may write it to the file."""
    KeyFile(keys.file).add("a\x1b[31mred\nb")
    (line,) = keys("list").splitlines()
    assert "\x1b" not in keys.printed
    assert "red" in line
