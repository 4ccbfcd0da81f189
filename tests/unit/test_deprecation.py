from __future__ import annotations

import importlib
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import contract, errors
from polymux._util.deprecation import with_new_keys
from polymux.cli import main, parser
from polymux.runtime.settings import EngineSettings, Limits
from polymux.server.auth.api_keys import KeyFile
from polymux.server.routes.api_keys import key_values
from polymux.server.settings.settings import ServerSettings, read_settings
from polymux.songs.settings import SongSettings, index_folder

if TYPE_CHECKING:
    from collections.abc import Callable

SONG = b'{"song": "x"}'


@pytest.mark.parametrize(
    ("call", "old"),
    [
        (lambda: polymux.Retry(longest_backoff=3), "longest_backoff"),
        (lambda: polymux.Client("http://x.example", longest_event_bytes=9), "longest_event_bytes"),
        (lambda: polymux.decode_chat_stream([], longest_event_bytes=9), "longest_event_bytes"),
        (lambda: contract.read_json("musicsearch", SONG, longest_bytes=99), "longest_bytes"),
        (lambda: Limits(longest_generation_s=9), "longest_generation_s"),
        (lambda: ServerSettings(grace_s=1), "grace_s"),
        (lambda: EngineSettings("chat", {"names": ["x"]}), "names"),
        (lambda: EngineSettings("chat", slots=2), "slots"),
        (lambda: polymux.Local(catalogue="songs"), "catalogue"),
        (lambda: polymux.AsyncLocal(catalogue="songs"), "catalogue"),
    ],
)
def test_old_arguments_warn(call: Callable[[], object], old: str) -> None:
    with pytest.warns(DeprecationWarning, match=rf"\b{old}\b") as found:
        call()
    if old != "names":  # a key of a mapping, which other code reads
        assert found[0].filename == __file__


def test_old_names_have_the_new_values() -> None:
    with pytest.warns(DeprecationWarning, match="max_retry_after_s"):
        retry = polymux.Retry(longest_retry_after=7)
    assert retry == polymux.Retry(max_retry_after_s=7)
    with pytest.warns(DeprecationWarning, match="max_retry_after_s"):
        assert retry.longest_retry_after == 7  # type: ignore[attr-defined]
    with pytest.raises(TypeError, match=r"longest_backoff.*max_backoff_s"):
        polymux.Retry(max_backoff_s=1, longest_backoff=2)  # type: ignore[call-arg]


OLD = """
grace_s = 3
[doors]
mcp = true
[limits]
longest_generation_s = 5
[store]
keep_s = 60
[songs]
catalogue = "/music/index"
least_confidence = 0.9
[engines.chat]
slots = 2
options = {model = "m", names = ["a"]}
[upstreams.far]
kind = "polymux"
base_url = "http://far.example"
slots = 7
"""


def test_settings_under_old_keys(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "polymux.toml"
    path.write_text(OLD)
    with caplog.at_level(logging.WARNING):
        settings = read_settings(path)
    assert settings.limits.max_generation_s == 5
    assert settings.songs.min_confidence == 0.9
    assert settings.songs.index_dir == Path("/music/index")
    assert settings.shutdown_timeout_s == 3
    assert settings.store.retention_s == 60
    assert settings.compat.mcp is True
    assert settings.engines is not None
    assert settings.engines["chat"].max_concurrency == 2
    assert settings.engines["chat"].options == {"model": "m", "aliases": ["a"]}
    assert settings.upstreams["far"].max_concurrency == 7
    for name in ("limits.max_generation_s", "songs.index_dir", "songs.min_confidence",
                 "engines.chat.options.aliases", "upstreams.far.max_concurrency"):  # fmt: skip
        assert name in caplog.text


def test_a_new_key_counts_before_its_old_one() -> None:
    messages: list[str] = []
    found = with_new_keys({"new": 1, "old": 2, "x": 3}, {"old": "new"}, messages.append)
    assert found == {"new": 1, "x": 3}
    assert len(messages) == 1


def test_keys_of_version_0_1(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file = KeyFile(tmp_path / "keys.json")
    file.add("site", max_estimate_s=60.0)
    text = file.path.read_text()
    assert '"max_estimate_s"' in text
    file.path.write_text(text.replace("max_estimate_s", "longest_estimate_s"))
    assert KeyFile(file.path).keys()[0].max_estimate_s == 60
    assert key_values({"longest_estimate_s": 60}, now=0) == {"max_estimate_s": 60.0}
    assert "max_estimate_s" in caplog.text


def test_an_old_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    KeyFile(tmp_path / "keys.json").add("site")
    words = ["keys", "change", "site", "--name", "other", "--data-dir", str(tmp_path)]
    assert main(words) == 0
    assert "polymux keys change" in capsys.readouterr().err
    (key,) = KeyFile(tmp_path / "keys.json").keys()
    assert key.name == "other"


@pytest.mark.parametrize(
    ("command", "old", "new"),
    [
        ("convert-to-mp3 a.wav", "--jobs 2", "--workers 2"),
        ("convert-to-mp3 a.wav", "--limit streams=2 --limit channels=1",
         "--input-limit streams=2 --input-limit channels=1"),
        ("probe a.wav", "--limit streams=2", "--input-limit streams=2"),
        ("serve", "--store x", "--data-dir x"),
        ("keys list", "--store x", "--data-dir x"),
        ("keys update a", "--store x", "--data-dir x"),
        ("keys add a", "--longest-estimate 60", "--max-estimate 60"),
        ("mcp", "--folder x --folder y", "--allow-dir x --allow-dir y"),
    ],
)  # fmt: skip
def test_old_options(command: str, old: str, new: str, capsys: pytest.CaptureFixture[str]) -> None:
    def values_with(options: str) -> dict[str, Any]:
        found = vars(parser().parse_args(f"{command} {options}".split()))
        return {name: one for name, one in found.items() if name not in ("parser", "run")}

    assert values_with(old) == values_with(new)
    name = old.split()[0]
    warnings = capsys.readouterr().err.splitlines()
    assert len(warnings) == f" {old}".count(f" {name}")
    assert f"{name} is deprecated" in warnings[0]
    with pytest.raises(SystemExit):
        parser().parse_args([*command.split(), "--help"])
    assert f" {name} " not in capsys.readouterr().out


def test_old_option_of_request(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["request", "free-chat", "hi"]
    assert main([*words, "--show", "curl"]) == main([*words, "--format", "curl"]) == 0
    captured = capsys.readouterr()
    assert len(set(captured.out.splitlines())) == 1
    assert "--show is deprecated" in captured.err


@pytest.mark.parametrize(
    ("old", "name"),
    [
        ("polymux.fetching", "FetchPolicy"),
        ("polymux.request", "build_request"),
        ("polymux.upstreams.server", "UpstreamServer"),
        ("polymux.upstreams.replicate_server", "ReplicateServer"),
    ],
)
def test_old_import_paths(old: str, name: str) -> None:
    sys.modules.pop(old, None)
    with pytest.warns(DeprecationWarning, match=old) as found:
        module = importlib.import_module(old)
    assert getattr(module, name).__module__ != old
    assert len(found) == 1
    sys.modules.pop(old)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Catalogue", polymux.SongIndex),
        ("CatalogueError", polymux.SongIndexError),
        ("CatalogueSong", polymux.IndexedSong),
    ],
)
def test_old_class_names(old: str, new: type) -> None:
    with pytest.warns(DeprecationWarning, match=rf"polymux\.{old}\b.*polymux\.") as found:
        assert getattr(polymux, old) is new
    assert [one.filename for one in found] == [__file__]
    with pytest.warns(DeprecationWarning, match=old):
        exec(f"from polymux import {old}", {})


def test_the_old_error_is_caught() -> None:
    with pytest.warns(DeprecationWarning, match="SongIndexError"):
        old = errors.CatalogueError  # type: ignore[attr-defined]
    with pytest.raises(old, match="x") as caught:
        raise polymux.SongIndexError("x")
    assert caught.value.code == "song_index_failed"
    with pytest.raises(AttributeError, match="CatalogError"):
        getattr(errors, "CatalogError")  # noqa: B009 - unknown to type checkers


def test_old_names_of_the_song_index(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with pytest.warns(DeprecationWarning, match="index_dir"):
        settings = SongSettings(catalogue=tmp_path)  # type: ignore[call-arg]
    with pytest.warns(DeprecationWarning, match="index_dir"):
        assert settings.catalogue == settings.index_dir == tmp_path  # type: ignore[attr-defined]

    assert main(["songs", "stats", "--catalogue", str(tmp_path / "option")]) == 0
    assert "--catalogue is deprecated" in capsys.readouterr().err
    assert (tmp_path / "option").is_dir()

    monkeypatch.setenv("POLYMUX_CATALOGUE", str(tmp_path / "variable"))
    assert index_folder() != tmp_path / "variable"  # The tests set the new variable.
    assert not caplog.text
    monkeypatch.delenv("POLYMUX_SONG_INDEX")
    assert index_folder() == tmp_path / "variable"
    assert "Use POLYMUX_SONG_INDEX" in caplog.text

    monkeypatch.delenv("POLYMUX_CATALOGUE")
    file = tmp_path / "config.toml"
    file.write_text(f'[songs]\ncatalogue = "{tmp_path}/file"\n')
    monkeypatch.setenv("POLYMUX_CONFIG", str(file))
    assert index_folder() == tmp_path / "file"
    assert "Use songs.index_dir" in caplog.text
