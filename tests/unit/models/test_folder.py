from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from polymux.errors import (
    InputNotFoundError,
    InvalidRequestError,
    OutputExistsError,
    OutputRefusedError,
)
from polymux.models import import_local, manifest
from polymux.models.errors import ModelError
from polymux.models.families import is_name
from polymux.models.folder import ModelsFolder
from polymux.models.manifest import DESCRIPTION
from support.models import GGUF, contents, sha256

MANIFEST = "polymux-model.json"


@pytest.fixture
def gguf(tmp_path: Path) -> Path:
    path = tmp_path / "own" / "assistant.gguf"
    path.parent.mkdir()
    path.write_bytes(GGUF)
    return path


def speech(folder: Path) -> Path:
    folder.mkdir(parents=True)
    for name in ("config.json", "model.bin", "tokenizer.json", "vocabulary.txt", "README.md"):
        (folder / name).write_bytes(name.encode())
    return folder


def network(folder: Path, name: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in (".param", ".bin"):
        (folder / f"{name}{suffix}").write_bytes(suffix.encode())
    return folder / f"{name}.param"


def test_the_folder_is_where_the_settings_say(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/nonexistent")
    monkeypatch.setenv("POLYMUX_MODELS", "~/own-one")
    assert ModelsFolder().path == Path("/nonexistent/own-one")
    monkeypatch.delenv("POLYMUX_MODELS")
    monkeypatch.setenv("XDG_DATA_HOME", "/data")
    assert ModelsFolder().path == Path("/data/polymux/models")
    monkeypatch.setenv("XDG_DATA_HOME", "relative")
    assert ModelsFolder().path == Path("/nonexistent/.local/share/polymux/models")
    assert ModelsFolder().installed() == []


def test_own_files_are_named_and_stay(folder: ModelsFolder, gguf: Path) -> None:
    made = import_local.add("own-one", gguf, folder, license="my own")
    assert (made.family, made.kind, made.problem) == ("chat", "linked", "")
    assert made.engine_options() == {"model": str(gguf)}
    assert (made.manifest.license, made.manifest.files[0].sha256) == ("my own", sha256(GGUF))
    assert list(contents(folder.path)) == [f"own-one/{MANIFEST}"]
    assert folder.damage(made) == []
    assert folder.remove("own-one") == [gguf.parent]
    assert gguf.read_bytes() == GGUF
    assert list(folder.path.iterdir()) == []
    with pytest.raises(InputNotFoundError, match="models list"):
        folder.remove("own-one")


def test_a_model_in_pieces_and_one_that_sees(folder: ModelsFolder, tmp_path: Path) -> None:
    own = tmp_path / "own"
    own.mkdir()
    for number in (1, 2, 3):
        (own / f"big-0000{number}-of-00003.gguf").write_bytes(GGUF)
    (own / "mmproj-big.gguf").write_bytes(GGUF)
    made = import_local.add("big", own, folder, family="chat", copy=True)
    assert len(made.manifest.files) == 4
    target = folder.path / "big"
    assert made.engine_options() == {
        "model": str(target / "big-00001-of-00003.gguf"),
        "mmproj": str(target / "mmproj-big.gguf"),
    }
    (own / "big-00002-of-00003.gguf").unlink()
    with pytest.raises(InvalidRequestError, match="big-00002-of-00003"):
        import_local.add("other", own, folder)


def test_what_is_no_model(folder: ModelsFolder, tmp_path: Path, gguf: Path) -> None:
    text = tmp_path / "text.gguf"
    text.write_text("no model")
    empty = tmp_path / "empty"
    empty.mkdir()
    half = speech(tmp_path / "half")
    (half / "tokenizer.json").unlink()
    alone = network(tmp_path / "alone", "up")
    alone.with_suffix(".bin").unlink()
    (gguf.parent / "second.gguf").write_bytes(GGUF)
    for path, family, words in (
        (text, None, r"text\.gguf"),
        (text, "chat", r"\bchat\b.*\bGGUF\b"),
        (empty, None, "empty"),
        (gguf.parent, None, gguf.parent.name),  # two candidates
        (gguf, "speech", r"\bspeech\b"),
        (gguf, "songs", "chat, speech, upscale"),
        (half, None, r"tokenizer\.json"),
        (alone, None, r"up\.bin"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            import_local.add("x", path, folder, family=family)
    with pytest.raises(InputNotFoundError, match="nothing"):
        import_local.add("x", tmp_path / "nothing", folder)
    assert not folder.path.exists()


@pytest.mark.parametrize("name", ["", ".", "..", ".x", "a/b", "a\0", "a b", "ä", "x" * 101, "-x"])
def test_names_that_are_none(folder: ModelsFolder, gguf: Path, name: str) -> None:
    assert not is_name(name)
    assert folder.find(name) is None
    with pytest.raises(InvalidRequestError):
        import_local.add(name, gguf, folder)
    with pytest.raises(InvalidRequestError):
        folder.remove(name)


def test_a_name_is_taken_once(folder: ModelsFolder, gguf: Path) -> None:
    import_local.add("own-one", gguf, folder)
    with pytest.raises(OutputExistsError, match="models rm own-one"):
        import_local.add("own-one", gguf, folder, copy=True)
    (folder.path / "empty").mkdir()
    with pytest.raises(OutputExistsError):
        import_local.add("empty", gguf, folder)
    assert not folder.is_begun("own-one")


def test_what_people_put_there(folder: ModelsFolder, tmp_path: Path) -> None:
    """A model that the user copied into the folder works, and polymux never removes it."""
    speech(folder.path / "whisper")
    network(folder.path / "up", "net-x2")
    (folder.path / "assistant.gguf").write_bytes(GGUF)
    (folder.path / "linked.gguf").symlink_to(tmp_path / "elsewhere.gguf")
    (tmp_path / "elsewhere.gguf").write_bytes(GGUF)
    (folder.path / "notes.txt").write_text("no model")
    (folder.path / "empty").mkdir()
    found = {one.name: one for one in folder.installed()}
    assert {name: (one.family, one.kind) for name, one in found.items()} == {
        "assistant": ("chat", "found"),
        "linked": ("chat", "found"),
        "up": ("upscale", "found"),
        "whisper": ("speech", "found"),
    }
    assert found["assistant"].engine_options() == {"model": str(folder.path / "assistant.gguf")}
    assert found["up"].engine_options() == {"model": str(folder.path / "up" / "net-x2.param")}
    before = contents(folder.path)
    for name, one in found.items():
        with pytest.raises(OutputRefusedError):
            folder.remove(name)
        with pytest.raises(ModelError):
            folder.damage(one)
    assert contents(folder.path) == before


@pytest.mark.parametrize("copy", [False, True])
def test_a_name_may_end_as_a_file_s_does(folder: ModelsFolder, gguf: Path, copy: bool) -> None:
    """A given name is used unchanged; only a file found in the folder loses its ending."""
    made = import_local.add("assistant.gguf", gguf, folder, copy=copy)
    assert (made.name, made.kind) == ("assistant.gguf", "owned" if copy else "linked")
    assert folder.installed() == [made]
    assert folder.default("chat") == made
    assert folder.find("assistant.gguf") == made
    assert folder.find("assistant") is None
    # The name without the ending is free.
    import_local.add("assistant", gguf, folder)
    assert [one.name for one in folder.installed()] == ["assistant", "assistant.gguf"]
    folder.remove("assistant")
    folder.remove("assistant.gguf")
    assert list(folder.path.iterdir()) == []
    assert gguf.read_bytes() == GGUF


def test_the_default_is_the_first_by_name(folder: ModelsFolder, gguf: Path) -> None:
    for name in ("b", "c", "a"):
        import_local.add(name, gguf, folder, copy=True)
    default = folder.default("chat")
    assert default is not None
    assert default.name == "a"
    (folder.path / "a" / "assistant.gguf").unlink()
    default = folder.default("chat")
    assert default is not None
    assert default.name == "b"
    assert folder.default("speech") is None


def test_damage_is_found(folder: ModelsFolder, gguf: Path) -> None:
    made = import_local.add("own-one", gguf, folder, copy=True)
    file = folder.path / "own-one" / "assistant.gguf"
    file.write_bytes(GGUF[:-1] + b"!")
    assert folder.get("own-one").problem == ""  # Only the length is checked here.
    assert folder.damage(made) == ["assistant.gguf"]
    file.write_bytes(GGUF[:-1])
    assert f"{len(GGUF)}" in folder.get("own-one").problem
    file.unlink()
    assert "assistant.gguf" in folder.get("own-one").problem
    assert folder.damage(made) == ["assistant.gguf"]
    assert folder.remove("own-one") == []


def test_a_copy_that_fails_leaves_nothing(folder: ModelsFolder, gguf: Path) -> None:
    def fail(*_: Any) -> None:
        raise KeyboardInterrupt

    for copy in (True, False):
        with pytest.raises(KeyboardInterrupt):
            import_local.add("own-one", gguf, folder, copy=copy, on_progress=fail)
        assert list(folder.path.iterdir()) == []


def good() -> manifest.Manifest:
    kept = (manifest.Kept("m.gguf", 4, "ab" * 32),)
    return manifest.Manifest("m", "chat", "MIT", "here", {"model": "m.gguf"}, {"factor": 2}, kept)


def test_a_manifest_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "m.json"
    assert manifest.read(path) is None
    described = replace(
        good(), native_size=(64, 48), vae_factor=4, base_model="b", fallback_roles=("music",),
        defaults={"music": {"num_inference_steps": 20, "guidance_scale": 7.0}},
    )  # fmt: skip
    named = replace(good(), folder=Path("/models/\udcff"), license_note="n")
    for one in (good(), named, described):
        path.write_bytes(one.encoded())
        assert manifest.read(path) == one
    # Manifests of earlier releases have no description.
    plain = json.loads(good().encoded())
    path.write_text(json.dumps({n: one for n, one in plain.items() if n not in DESCRIPTION}))
    assert manifest.read(path) == replace(good(), added_at=plain["added_at"])


def test_a_description_in_the_folder_is_taken_over(folder: ModelsFolder, gguf: Path) -> None:
    """Models of other sources bring their manifest with them."""
    described = replace(good(), native_size=(64, 64), defaults={"music": {"denoising": 1.0}})
    (gguf.parent / MANIFEST).write_bytes(described.encoded())
    made = import_local.add("own-one", gguf, folder).manifest
    assert (made.name, made.description()) == ("own-one", described.description())


def test_a_description_is_merged(folder: ModelsFolder, gguf: Path) -> None:
    """Given fields replace those of the folder one by one. It cannot become a small model."""
    own = {"music": {"denoising": 1.0, "guidance_scale": 7.0}, "picture:B": {"guidance_scale": 4.0}}
    described = replace(good(), defaults=own, fallback_roles=("music",))
    (gguf.parent / MANIFEST).write_bytes(described.encoded())
    given = {"defaults": {"music": {"guidance_scale": 5.0}, "picture:A": {"guidance_scale": 1.0}}}
    made = import_local.add("own-one", gguf, folder, description=given).manifest
    assert made.defaults == {
        "music": {"denoising": 1.0, "guidance_scale": 5.0},
        "picture:A": {"guidance_scale": 1.0},
        "picture:B": {"guidance_scale": 4.0},
    }
    assert made.fallback_roles == ()
    with pytest.raises(InvalidRequestError, match="guidance_scale"):
        import_local.add(
            "other", gguf, folder, description={"defaults": {"music": {"guidance_scale": 51}}}
        )
    assert folder.find("other") is None


def test_roles_are_stored(folder: ModelsFolder, gguf: Path) -> None:
    assert folder.uses() == {}
    folder.use(["music"], "mine")
    folder.use(["video:xl"], "other")
    folder.use(["music", "picture:A"], "own-one")
    assert folder.uses() == {"music": "own-one", "video:xl": "other", "picture:A": "own-one"}
    folder.use(["video:xl", "picture:A"], None)
    assert folder.uses() == {"music": "own-one"}
    import_local.add("own-one", gguf, folder)
    assert [one.name for one in folder.installed()] == ["own-one"]
    for text in ("[]", "{", '{"music": "../x"}', '{"music": 5}', "[" * 50_000):
        (folder.path / "roles.json").write_text(text)
        with pytest.raises(ModelError, match=r"roles\.json"):
            folder.uses()
    with pytest.raises(ModelError, match=r"roles\.json"):
        folder.remove("own-one")
    assert [one.name for one in folder.installed()] == ["own-one"]


@pytest.mark.parametrize(
    "change",
    [
        {"format": 2},
        {"family": "songs"},
        {"name": 5},
        {"files": [{"name": "../../m.gguf", "bytes": 4, "sha256": ""}]},
        {"files": [{"name": MANIFEST, "bytes": 4, "sha256": ""}]},
        {"files": [{"name": "m.gguf", "bytes": -1, "sha256": ""}]},
        {"files": [{"name": "m.gguf", "bytes": 4, "sha256": "AB"}]},
        {"files": [{"name": "m.gguf"}]},
        {"files": 5},
        {"paths": {"model": "../../etc/passwd"}},
        {"paths": {}},
        {"options": []},
        {"folder": "relative"},
        {"added_at": "now"},
        {"native_size": [64]},
        {"native_size": "64"},
        {"native_size": [0, 64]},
        {"vae_factor": True},
        {"base_model": None},
        {"defaults": {"music": 5}},
        {"defaults": {"music": {"num_inference_steps": []}}},
        {"defaults": {"music": {"num_inference_steps": True}}},
        {"defaults": {"music": {"num_inference_steps": 5.5}}},
        {"defaults": {"music": {"num_inference_steps": 0}}},
        {"defaults": {"music": {"num_inference_steps": "20"}}},
        {"defaults": {"music": {"guidance_scale": float("nan")}}},
        {"defaults": {"music": {"guidance_scale": float("inf")}}},
        {"defaults": {"music": {"guidance_scale": 10**400}}},
        {"defaults": {"music": {"prompt_a": 5}}},
        {"defaults": {"picture:B": {"denoising": 0.5}}},
        {"defaults": {"picture:safety": {"guidance_scale": 1}}},
        {"defaults": {"picture:Z": {}}},
        {"vae_factor": 3},
        {"vae_factor": 128},
        {"fallback_roles": "music"},
        {"fallback_roles": [5]},
        None,
    ],
)
def test_a_manifest_that_is_none(folder: ModelsFolder, change: dict[str, Any] | None) -> None:
    """The model is damaged and never a default; `rm` removes it. No outside file is touched."""
    place = folder.path / "m"
    place.mkdir(parents=True)
    (place / "m.gguf").write_bytes(GGUF)
    plain = json.loads(good().encoded())
    text = "[" * 50_000 if change is None else json.dumps(plain | change)
    (place / MANIFEST).write_text(text)
    with pytest.raises(ModelError, match=MANIFEST):
        manifest.read(place / MANIFEST)
    (found,) = folder.installed()
    assert found.problem
    assert str(folder.path) not in found.problem
    assert folder.default("chat") is None
    assert folder.remove("m") == [place / "m.gguf"]
