"""Models of an installed package, and the small models in this repository."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest
from polymux.errors import OutputExistsError, OutputRefusedError
from polymux.models import import_local
from polymux.models.folder import ModelsFolder
from support.models import GGUF, contents
from support.native_build import ROOT

if TYPE_CHECKING:
    from pathlib import Path

MODELS = ROOT / "models"
SMALL = sorted(one.name for one in MODELS.iterdir() if one.is_dir())
MANIFEST = "polymux-model.json"


@pytest.fixture
def packaged(folder: ModelsFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of the package in an environment, with a model for chats."""
    package = tmp_path / "site/polymux_mini_models"
    own = tmp_path / "own.gguf"
    own.write_bytes(GGUF)
    made = import_local.add("small", own, folder, license="MIT", copy=True)
    shutil.copytree(made.folder, package / "small")
    folder.remove("small")
    monkeypatch.syspath_prepend(package.parent)
    return package


def test_models_of_the_package_are_found(packaged: Path, folder: ModelsFolder) -> None:
    assert folder.find("small") is None
    found = ModelsFolder(folder.path)
    (small,) = found.installed()
    assert (small.name, small.kind, small.problem) == ("small", "packaged", "")
    assert small.engine_options() == {"model": str(packaged / "small/own.gguf")}
    assert found.damage(small) == []
    chat = found.default("chat")
    assert chat is not None
    assert chat.folder == packaged / "small"


def test_the_package_is_never_changed(packaged: Path, folder: ModelsFolder, tmp_path: Path) -> None:
    before = contents(packaged)
    found = ModelsFolder(folder.path)
    with pytest.raises(OutputRefusedError, match="pip uninstall"):
        found.remove("small")
    with pytest.raises(OutputExistsError):
        import_local.add("small", tmp_path / "own.gguf", found)
    assert contents(packaged) == before


def test_the_users_own_model_hides_one_of_the_package(packaged: Path, folder: ModelsFolder) -> None:
    folder.path.mkdir(exist_ok=True)
    (folder.path / "small.gguf").write_bytes(GGUF)
    assert [one.kind for one in ModelsFolder(folder.path).installed()] == ["found"]
    shutil.rmtree(packaged)
    assert [one.kind for one in ModelsFolder(folder.path).installed()] == ["found"]


def test_an_invalid_manifest_in_the_package_is_a_problem(
    packaged: Path, folder: ModelsFolder
) -> None:
    (packaged / "small" / MANIFEST).write_text("{")
    (small,) = ModelsFolder(folder.path).installed()
    assert small.problem


@pytest.mark.parametrize("name", SMALL)
def test_small_models_of_the_repository(name: str, monkeypatch: pytest.MonkeyPatch,
                                        tmp_path: Path) -> None:  # fmt: skip
    """Their manifests fit their files; scripts/lib/model_manifest.py updates them."""
    if not (MODELS / name / MANIFEST).exists():
        pytest.skip("not a model yet: it has no manifest")
    (tmp_path / "polymux_mini_models").symlink_to(MODELS)
    monkeypatch.syspath_prepend(tmp_path)
    found = ModelsFolder(tmp_path / "none")
    model = found.get(name)
    assert (model.kind, model.problem, model.family) == ("packaged", "", "diffusion")
    assert found.damage(model) == []
    assert model.manifest.license == "MIT"
    assert (MODELS / name / "README.md").exists()
    assert list((MODELS / name / "licenses").glob("*.txt"))
