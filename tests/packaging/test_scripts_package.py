"""The changes that scripts/package makes to a wheel, and its checks of the result."""

from __future__ import annotations

import base64
import csv
import hashlib
import importlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.native_build import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

INFORMATION = "polymux-0.1.0.dist-info"


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], ModuleType]:
    """Import the modules of the script, which are not a package."""
    monkeypatch.syspath_prepend(str(ROOT / "scripts/lib"))
    return importlib.import_module


@pytest.fixture
def folders(tmp_path: Path, modules: Callable[[str], ModuleType]) -> tuple[Path, Path]:
    """Folders like those of scripts/private-deps and of zig: notices and versions."""
    deps, zig, notices = tmp_path / "deps", tmp_path / "zig", modules("wheel_notices")
    for parts, folder in ((notices.LINKED, tmp_path / "deps.work"), (notices.RUNTIME, zig)):
        for part in parts:
            for file in part.notices:
                path = folder / part.folder / file
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(f"{file} of {part.name}")
    deps.mkdir()
    (deps / "versions").write_text("FFmpeg 7:5.1\nlibvpx 1.12\n")
    names = ("zlib", "openssl", "nghttp2", "libidn2", "curl")
    (deps / "curl-version").write_text("".join(f"{name} 1:2+3\n" for name in names))
    (zig / "zig").write_text("#!/bin/sh\necho 0.17.1\n")
    (zig / "zig").chmod(0o755)
    return deps, zig


def made_wheel(folder: Path, *libraries: str) -> Path:
    """A wheel in the layout of auditwheel, with empty files."""
    path = folder / "polymux-0.1.0-cp311-cp311-manylinux_2_28_x86_64.whl"
    names = ["polymux/__init__.py", *(f"polymux.libs/{name}" for name in libraries)]
    with zipfile.ZipFile(path, "w") as archive:
        for name in names:
            archive.writestr(name, b"")
        archive.writestr(f"{INFORMATION}/RECORD", "".join(f"{name},,\n" for name in names))
    return path


def noted(folders: tuple[Path, Path], path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "scripts/lib/wheel_notices.py", *folders, path, folder],
        env={**os.environ, "SOURCE_DATE_EPOCH": "900000000"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_a_wheel_gets_the_notices_of_all_that_is_in_it(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    wheel = made_wheel(tmp_path)
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        done = noted(folders, wheel, tmp_path / name)
        assert done.returncode == 0, done.stderr
    path = tmp_path / "first" / wheel.name
    assert path.read_bytes() == (tmp_path / "second" / wheel.name).read_bytes()
    with zipfile.ZipFile(path) as archive:
        licences = f"{INFORMATION}/licenses"
        copying = (ROOT / "cpp/third_party/lame/COPYING").read_bytes()
        assert archive.read(f"{licences}/lame/COPYING") == copying
        assert archive.read(f"{licences}/curl/COPYING") == b"COPYING of curl"
        assert b"Wenzel Jakob" in archive.read(f"{licences}/pybind11/LICENSE")
        notice = archive.read(f"{licences}/NOTICE.txt").decode()
        assert "  ffmpeg 7:5.1\n  libvpx 1.12\n" in notice
        bill = json.loads(archive.read(f"{INFORMATION}/sboms/polymux.cdx.json"))
        parts = {part["name"]: part for part in bill["components"]}
        assert {"ffmpeg", "openssl", "lame", "pybind11", "libcxx"} <= parts.keys()
        assert parts["curl"]["purl"] == "pkg:deb/debian/curl@1%3A2%2B3?arch=source"
        rows = list(csv.reader(io.StringIO(archive.read(f"{INFORMATION}/RECORD").decode())))
        assert {row[0] for row in rows} == {*archive.namelist()} - {f"{INFORMATION}/RECORD"}
        digests = {name: digest for name, digest, _ in rows}
        text = archive.read(f"{licences}/lame/COPYING")
        right = base64.urlsafe_b64encode(hashlib.sha256(text).digest()).rstrip(b"=").decode()
        assert digests[f"{licences}/lame/COPYING"] == f"sha256={right}"


def test_a_library_without_notices_is_not_passed_on(
    folders: tuple[Path, Path], tmp_path: Path
) -> None:
    (tmp_path / "dist").mkdir()
    done = noted(folders, made_wheel(tmp_path, "libother-0123abcd.so.1"), tmp_path / "dist")
    assert done.returncode == 1
    assert "libother" in done.stderr
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


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["-Wl,-z,relro,-z,now"], None),
        (["-Wl,-z,relro,-z,lazy"], "RELRO"),
        (["-Wl,-z,relro,-z,now,-z,execstack"], "stack"),
        (["-Wl,-z,relro,-z,now,-rpath,/tmp"], "RUNPATH"),
        (["-Wl,-z,relro,-z,now", "-Dpolymux_openmp_limit=other"], "exports"),
        (["-Wl,-z,relro,-z,now,--no-as-needed", "-lcurl"], "libcurl"),
    ],
)
def test_libraries_of_wheels_are_hardened(
    modules: Callable[[str], ModuleType], tmp_path: Path, options: list[str], problem: str | None
) -> None:
    library = tmp_path / "_openmp.so"
    source = ROOT / "bindings/openmp/parallel.c"
    hidden = ["-O2", "-fvisibility=hidden", "-shared", "-fPIC"]
    subprocess.run(["cc", *hidden, source, "-o", library, *options], check=True)
    check = modules("package_check").check_library
    if problem is None:
        check(library)
    else:
        with pytest.raises(SystemExit, match=problem):
            check(library)


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="CET is a part of x86-64")
def test_a_module_that_declares_cet_is_rejected(
    modules: Callable[[str], ModuleType], tmp_path: Path
) -> None:
    source, library = tmp_path / "core.c", tmp_path / "_core.so"
    source.write_text("int PyInit__core(void) { return 0; }")
    options = ["-shared", "-fPIC", "-Wl,-z,relro,-z,now,-z,shstk"]
    subprocess.run(["cc", source, "-o", library, *options], check=True)
    with pytest.raises(SystemExit, match="CET"):
        modules("package_check").check_library(library)


@pytest.mark.slow
def test_a_module_that_is_not_for_wheels_is_rejected(
    modules: Callable[[str], ModuleType], built_wheel: Path, tmp_path: Path
) -> None:
    with zipfile.ZipFile(built_wheel) as archive:
        (name,) = (name for name in archive.namelist() if re.search(r"_media\..*so$", name))
        library = archive.extract(name, tmp_path)
    with pytest.raises(SystemExit, match="libavcodec"):
        modules("package_check").check_library(Path(library))
