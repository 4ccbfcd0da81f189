"""The distribution polymux-mini-models, and polymux's own sdist."""

from __future__ import annotations

import json
import subprocess
import sys
import tarfile
import zipfile
from typing import TYPE_CHECKING

import pytest
from support.native_build import ROOT, new_environment, pip_install, run

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

MODELS = sorted(path.parent for path in (ROOT / "models").glob("*/polymux-model.json"))
PACKAGE = "polymux_mini_models"


@pytest.fixture(scope="module")
def mini_wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("mini")
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
        "--no-index", "--wheel-dir", folder, ROOT / "models")  # fmt: skip
    (path,) = folder.glob("*.whl")
    return path


def test_wheel_has_each_model_and_its_licenses(mini_wheel: Path) -> None:
    assert mini_wheel.name.endswith("-py3-none-any.whl")
    assert mini_wheel.stat().st_size <= 100_000_000
    with zipfile.ZipFile(mini_wheel) as archive:
        names = archive.namelist()
        assert sum(one.file_size for one in archive.infolist()) <= 100_000_000
    assert {name.split("/")[1] for name in names if name.startswith(f"{PACKAGE}/")} == {
        one.name for one in MODELS
    }
    for model in MODELS:
        plain = json.loads((model / "polymux-model.json").read_text())
        wanted = [one["name"] for one in plain["files"]] + ["README.md", "polymux-model.json"]
        assert {f"{PACKAGE}/{model.name}/{name}" for name in wanted} <= set(names)
        for text in (model / "licenses").iterdir():
            assert f"{PACKAGE}/{model.name}/licenses/{text.name}" in names
            assert [
                name
                for name in names
                if name.endswith(f"dist-info/licenses/{model.name}/licenses/{text.name}")
            ]
    assert [name for name in names if name.endswith("dist-info/licenses/LICENSE")]
    assert not [name for name in names if "/training/" in name]


def test_polymux_finds_the_models_of_a_fresh_environment(
    built_wheel: Path, mini_wheel: Path, tmp_path: Path
) -> None:
    python = new_environment(tmp_path / "venv")
    pip_install(python, built_wheel)

    def polymux(*words: str, code: int = 0) -> str:
        done = subprocess.run(
            [tmp_path / "venv/bin/polymux", *words],
            env={"HOME": str(tmp_path), "PATH": "/usr/bin:/bin"},
            capture_output=True, text=True, check=False, cwd=tmp_path,
        )  # fmt: skip
        assert done.returncode == code, done
        return done.stdout

    def found() -> dict[str, str]:
        return {one["name"]: one["kind"] for one in json.loads(polymux("models", "list", "--json"))
                if one["state"] == "installed"}  # fmt: skip

    assert found() == {}
    pip_install(python, mini_wheel)
    assert found() == {one.name: "packaged" for one in MODELS}
    for model in MODELS:
        plain = json.loads(polymux("models", "info", model.name, "--verify", "--json"))
        assert plain["damaged"] == []
        polymux("models", "rm", model.name, "--yes", code=1)
    assert found() == {one.name: "packaged" for one in MODELS}


def test_sdist_leaves_the_models_out(tmp_path: Path) -> None:
    script = "import sys; from scikit_build_core.build import build_sdist; build_sdist(sys.argv[1])"
    run(sys.executable, "-c", script, tmp_path)
    (path,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(path) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert "pyproject.toml" in names
    assert not [name for name in names if name.startswith("models/")]
    assert not [name for name in names if name.endswith(".safetensors")]
