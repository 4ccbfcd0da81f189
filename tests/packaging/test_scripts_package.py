"""The changes that scripts/package makes to a wheel, and its checks of the result."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib
import io
import json
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING

import pytest
from support.native_build import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from types import ModuleType

INFORMATION = "polymux-0.1.0.dist-info"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import the modules of the script, which are not a package."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts/lib"))
    return importlib.import_module


@pytest.fixture
def sources(tmp_path: Path, modules: Callable[[str], ModuleType]) -> Path:
    """A folder like that of scripts/private-deps: notices, and a list of versions."""
    folder = tmp_path / "deps.work"
    for project, files in modules("wheel_notices").LINKED.items():
        for file in files:
            path = folder / project / file
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{file} of {project}")
    (tmp_path / "deps").mkdir()
    (tmp_path / "deps/versions").write_text("FFmpeg 7:5.1\n")
    (tmp_path / "deps/curl-version").write_text("curl 7.88.1-10\n")
    return folder


def made_wheel(folder: Path, *carried: str) -> Path:
    """A wheel in the layout of auditwheel, with empty files."""
    path = folder / "polymux-0.1.0-cp311-cp311-manylinux_2_35_x86_64.whl"
    names = ["polymux/__init__.py", *(f"polymux.libs/{name}" for name in carried)]
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
        archive.writestr(f"{INFORMATION}/RECORD", "".join(f"{name},,\n" for name in names))
    return path


def noted(sources: Path, path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts/lib/wheel_notices.py", sources, path, folder],
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_wheel_gets_the_notices_of_all_that_is_in_it(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    done = noted(sources, made_wheel(tmp_path, "libssl-0123abcd.so.3"), tmp_path / "dist")
    assert done.returncode == 0, done.stderr
    (path,) = (tmp_path / "dist").glob("*.whl")
    with zipfile.ZipFile(path) as archive:
        licences = f"{INFORMATION}/licenses"
        copying = (ROOT / "cpp/third_party/lame/COPYING").read_bytes()
        assert archive.read(f"{licences}/lame/COPYING") == copying
        assert archive.read(f"{licences}/curl/COPYING") == b"COPYING of of-curl/curl"
        assert b"OpenSSL" in archive.read(f"{licences}/libssl3/copyright")
        notice = archive.read(f"{licences}/NOTICE.txt").decode()
        assert "  FFmpeg 7:5.1\n  curl 7.88.1-10\n" in notice
        assert "  libssl3 3." in notice
        rows = list(csv.reader(io.StringIO(archive.read(f"{INFORMATION}/RECORD").decode())))
        assert {row[0] for row in rows} == {*archive.namelist()} - {f"{INFORMATION}/RECORD"}
        digests = {name: digest for name, digest, _ in rows}
        text = archive.read(f"{licences}/lame/COPYING")
        right = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        assert digests[f"{licences}/lame/COPYING"] == f"sha256={right}"


def test_a_library_of_nobody_is_not_passed_on(sources: Path, tmp_path: Path) -> None:
    (tmp_path / "dist").mkdir()
    done = noted(sources, made_wheel(tmp_path, "libnobodys-0123abcd.so.1"), tmp_path / "dist")
    assert done.returncode == 1
    assert "libnobodys.so.1" in done.stderr
    assert not list((tmp_path / "dist").glob("*.whl"))


@pytest.mark.slow
def test_a_wheel_that_is_not_repaired_works_here_alone(
    modules: Callable[[str], ModuleType], installed: Path
) -> None:
    """The smoke test passes with the system's libraries, and fails if they are hidden."""
    check = modules("package_check")
    done = check.tried(installed, hidden=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["answer"] == "hello over TLS"
    assert found["frames"] > 70
    assert found["video"] == "libvpx-vp9"
    hidden = check.tried(installed, hidden=True)
    assert hidden.returncode != 0
    assert "lib" in hidden.stderr
    assert "file too short" in hidden.stderr or "cannot" in hidden.stderr, hidden.stderr


@pytest.mark.slow
def test_a_wheel_is_run_as_a_tool_where_there_is_one(
    modules: Callable[[str], ModuleType], built_wheel: Path, tmp_path: Path
) -> None:
    check = modules("package_check")
    lines = check.run_as_tool(built_wheel, tmp_path, path=str(tmp_path))
    missing = [line for line, tool in zip(lines, ("uv", "pipx"), strict=True) if tool in line]
    assert missing == lines
    lines = check.run_as_tool(built_wheel, tmp_path)
    present = [bool(shutil.which(tool)) for tool in ("uv", "pipx")]
    assert [line not in missing for line in lines] == present
