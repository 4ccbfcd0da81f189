"""scripts/lib/release.py, and the systems on which a build stops."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tomllib
from typing import TYPE_CHECKING

import pytest
from support.native_build import ROOT

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("scripts/lib/release.py", "pyproject.toml", "README.md", "CHANGELOG.md"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    return tmp_path


def release(tree: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, tree / "scripts/lib/release.py", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def set_version(tree: Path, version: str) -> None:
    path = tree / "pyproject.toml"
    now = tomllib.loads(path.read_text())["project"]["version"]
    path.write_text(path.read_text().replace(f'version = "{now}"', f'version = "{version}"'))


def test_only_a_prepared_tag_is_released(tree: Path) -> None:
    set_version(tree, "7.1.0.dev0")
    assert release(tree, "check", "v7.1.0").returncode == 1
    assert release(tree, "check", "v7.1.0.dev0").returncode == 1
    set_version(tree, "7.1.0")
    assert "CHANGELOG.md" in release(tree, "check", "v7.1.0").stderr
    text = (tree / "CHANGELOG.md").read_text()
    section = "## [7.1.0] - 2026-12-01\n\n### Fixed\n\n- A line.\n\n## [Unreleased]\n"
    (tree / "CHANGELOG.md").write_text(text.replace("## [Unreleased]\n", section, 1))
    assert release(tree, "check", "v7.1.0").returncode == 0
    assert release(tree, "check", "v7.1.1").returncode == 1
    assert release(tree, "notes", "v7.1.0").stdout == "### Fixed\n\n- A line.\n"


def test_published_metadata_names_the_repository(tree: Path) -> None:
    url = "https://git.example/polymux"
    assert release(tree, "metadata", "v7.1.0", url).returncode == 0
    project = tomllib.loads((tree / "pyproject.toml").read_text())["project"]
    assert project["urls"]["Source"] == url
    readme = (tree / "README.md").read_text()
    assert f"({url}/blob/v7.1.0/docs/help/compatibility.md)" in readme
    assert f"({url}/raw/v7.1.0/docs/images/page-transcription-light.png)" in readme
    assert "](docs/" not in readme


@pytest.mark.parametrize("system", ["Darwin", "Windows"])
def test_cmake_stops_on_other_systems(system: str, tmp_path: Path) -> None:
    """Before it looks for compilers, which such a machine may lack."""
    command = ["cmake", "-S", ROOT, "-B", tmp_path / "build", f"-DCMAKE_SYSTEM_NAME={system}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert f"supports only Linux (got {system})" in done.stderr
    assert "compiler" not in (done.stdout + done.stderr).lower()


@pytest.mark.parametrize("platform", ["darwin", "win32"])
def test_pip_stops_on_other_systems(platform: str, tmp_path: Path) -> None:
    """The build backend, as pip calls it, with another `sys.platform`."""
    code = (
        "import sys; from scikit_build_core import build; "
        f"sys.platform = {platform!r}; build.build_wheel({str(tmp_path)!r})"
    )
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "supports only Linux" in done.stdout + done.stderr
    assert not [*tmp_path.iterdir()]
