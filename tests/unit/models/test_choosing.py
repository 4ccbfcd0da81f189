"""Which model an engine gets: by name, by default, by path; and what is said where it gets none."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
from polymux.downloads.settings import DownloadSettings
from polymux.models import adding, choosing
from polymux.models.folder import ModelsFolder
from polymux.server.backends import backends_of, installed_engines
from polymux.server.settings import EngineSettings, ServerSettings, StoreSettings
from support.models import GGUF


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelsFolder:
    """With the chat models ``b`` and ``a``, and a network that makes twice as large."""
    made = ModelsFolder(tmp_path / "models")
    (tmp_path / "m.gguf").write_bytes(GGUF)
    for suffix in (".param", ".bin"):
        (tmp_path / f"net-x2{suffix}").write_bytes(b"net")
    for name in ("b", "a"):
        adding.add(name, tmp_path / "m.gguf", made, copy=True)
    adding.add("net", tmp_path / "net-x2.param", made)
    monkeypatch.setenv("POLYMUX_MODELS", str(made.path))
    return made


def test_a_name_becomes_a_path(folder: ModelsFolder, tmp_path: Path) -> None:
    def chosen(family: str, **options: Any) -> Any:
        found = choosing.chosen(family, options)
        assert not found.problem
        return found.options

    where = str(folder.path / "b" / "m.gguf")
    assert chosen("chat", model="b", context=512) == {
        "model": where, "names": ["b"], "context": 512,
    }  # fmt: skip
    assert chosen("chat", model="b", names=["other"])["names"] == ["other"]
    # Nothing said is the default: the first by name.
    for options in ({}, {"model": None}, {"model": ""}):
        assert chosen("chat", **options)["model"] == str(folder.path / "a" / "m.gguf")
    # What is known of a model comes with it, and what is said counts before it.
    net = {"model": str(tmp_path / "net-x2.param"), "factor": 2}
    assert chosen("upscale") == net
    assert chosen("upscale", model="net", factor=4, tile=64) == {**net, "factor": 4, "tile": 64}


@pytest.mark.parametrize("path", ["/models/m.gguf", "~/m.gguf", "./b", "models/b", 5])
def test_paths_are_left_to_the_engine(folder: ModelsFolder, path: object) -> None:
    assert choosing.chosen("chat", {"model": path}) == ({"model": path}, "")


def test_a_file_of_the_current_folder_comes_second(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert choosing.chosen("chat", {"model": "m.gguf"}) == ({"model": "m.gguf"}, "")
    Path("b").write_bytes(b"a stranger's")
    assert choosing.chosen("chat", {"model": "b"}).options["model"].startswith(str(folder.path))


def test_other_engines_have_no_models(folder: ModelsFolder) -> None:
    for family in ("media", "rapidocr", "support.engines:FaultyEngine"):
        assert choosing.chosen(family, {"x": 1}) == ({"x": 1}, "")


@pytest.mark.parametrize(
    ("family", "options", "words"),
    [
        ("speech", {}, "no speech model is installed: 'polymux models pull whisper-base'"),
        ("speech", {"model": "whisper-base"}, "'polymux models pull whisper-base' fetches it"),
        ("chat", {"model": "whisper-base"}, "there is no chat model whisper-base"),
        ("chat", {"model": "nothing.gguf"}, "there is no chat model nothing.gguf"),
        ("chat", {"model": "net"}, "the model net is for upscale, not for chat"),
    ],
)
def test_what_is_said_where_there_is_none(
    folder: ModelsFolder, family: str, options: dict[str, str], words: str
) -> None:
    found = choosing.chosen(family, options)
    assert found.options == options
    assert words in found.problem
    assert str(folder.path) not in found.problem


def test_a_damaged_model_is_no_default_and_says_so(folder: ModelsFolder) -> None:
    (folder.path / "a" / "m.gguf").unlink()
    assert choosing.chosen("chat", {}).options["names"] == ["b"]
    problem = choosing.chosen("chat", {"model": "a"}).problem
    assert "the model a is damaged (m.gguf is missing): 'polymux models rm a'" in problem


def test_what_a_server_begins_with(folder: ModelsFolder, tmp_path: Path) -> None:
    engines = installed_engines()
    models = {name: one.options.get("model") for name, one in engines.items()}
    assert models == {
        "media": None, "rapidocr": None, "chat": "a", "chat-b": "b", "upscale": "net",
    }  # fmt: skip
    settings = ServerSettings(store=StoreSettings(tmp_path / "store"))
    found = {one.name: one for one in backends_of(settings)}
    assert set(found) == {*engines, "download", "summaries"}
    assert found["chat"].models == ("a", "chat")
    assert found["chat-b"].models == ("b", "chat-b")
    named = {"chat": EngineSettings("chat", {"model": "nothing"})}
    off = DownloadSettings(enabled=False)
    (missing,) = backends_of(ServerSettings(store=settings.store, engines=named, download=off))
    assert missing.health().state == "failed"
    assert missing.models == ("nothing", "chat")


def test_remedies(folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    assert choosing.remedy("generate_video") == ""
    assert choosing.remedy("read_text") == ""
    assert "pull whisper-base'" in choosing.remedy("transcribe")
    assert "pip install" not in choosing.remedy("transcribe")
    assert "[engines.chat]" in choosing.remedy("free_chat")
    monkeypatch.setattr(choosing, "find_spec", lambda name: None)
    assert "pip install 'polymux[ocr]'" in choosing.remedy("read_text")
    assert "pip install 'polymux[speech]'" in choosing.remedy("transcribe")
    assert "pull whisper-base'" in choosing.remedy("transcribe")
    assert "pip install 'polymux[chat]'" in choosing.remedy("chat")
    assert "models pull" not in choosing.remedy("chat")
    assert choosing.available() == {}
    assert importlib.util.find_spec("polymux") is not None
