"""The wheel, the editable package, a build without FFmpeg, and the installed C++ library."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from importlib import metadata
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.mp3_frames import audio_frames
from support.native_build import (
    ROOT,
    installed_prefix,
    run,
    wheel,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.slow

VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
CONVERT = """
import sys, polymux
print(polymux.__file__)
print(polymux.__version__)
print(polymux.convert_to_mp3(sys.argv[1], sys.argv[2], bitrate="128k").report.frames)
"""


@pytest.fixture(scope="module")
def tone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("tone") / "tone.wav"
    programs.ffmpeg("-f", "lavfi", "-i", "sine=frequency=440:duration=2", path)
    return path


@pytest.fixture(scope="module")
def prefix() -> Path:
    return installed_prefix()


def test_one_version_everywhere() -> None:
    import polymux
    from polymux._native import _core, _media

    # the editable package, as installed by scripts/setup
    assert polymux.__file__ == str(ROOT / "python/polymux/__init__.py")
    assert polymux.__version__ == VERSION
    assert _core.__version__ == VERSION
    assert _media.__version__ == VERSION
    assert metadata.version("polymux") == VERSION


def test_wheel_holds_the_package_and_nothing_else(built_wheel: Path) -> None:
    names = zipfile.ZipFile(built_wheel).namelist()
    assert built_wheel.name.startswith(f"polymux-{VERSION}-")
    assert {"polymux/__init__.py", "polymux/py.typed", "polymux/_native/_media.pyi"} <= set(names)
    assert "polymux/models/registry.toml" in names
    assert "polymux/models/registry-diffusion.toml" in names
    assert "polymux/page/index.html" in names
    for module in ("_core", "_media"):
        found = [name for name in names if re.fullmatch(rf"polymux/_native/{module}\..*\.so", name)]
        assert len(found) == 1
    assert {name.split("/")[0] for name in names} == {"polymux", f"polymux-{VERSION}.dist-info"}
    licences = {name.rsplit("/", 1)[1] for name in names if "/licenses/" in name}
    # polymux's, and simdjson's under the same name
    assert licences == {"LICENSE", "THIRD_PARTY.md"}
    assert not [name for name in names if name.endswith((".cpp", ".hpp", ".a", ".cmake", ".pyc"))]


def test_wheel_converts_in_an_environment_of_its_own(
    installed: Path, tone: Path, tmp_path: Path
) -> None:
    output = tmp_path / "tone.mp3"
    python = installed / "venv/bin/python"
    place, version, frames = run(python, "-c", CONVERT, tone, output, cwd=tmp_path).splitlines()
    assert place.startswith(str(installed / "venv"))
    assert version == VERSION
    assert len(audio_frames(output)) == int(frames) > 70
    assert VERSION in run(installed / "venv/bin/polymux", "--version", cwd=tmp_path)


def test_module_exports_its_entry_point_alone(built_wheel: Path, tmp_path: Path) -> None:
    """No symbol of polymux, FFmpeg or LAME may clash with another extension's."""
    with zipfile.ZipFile(built_wheel) as archive:
        names = sorted(name for name in archive.namelist() if name.endswith(".so"))
        modules = [archive.extract(name, tmp_path) for name in names]
    exported = (
        ["PyInit__core"],
        # _libgomp and _openmp are loaded only by processes of the chat engine.
        [
            "GOMP_atomic_end", "GOMP_atomic_start", "GOMP_barrier", "GOMP_loop_end",
            "GOMP_loop_nonmonotonic_dynamic_next", "GOMP_loop_nonmonotonic_dynamic_start",
            "GOMP_parallel", "GOMP_single_start", "omp_get_num_threads", "omp_get_thread_num",
        ],
        ["PyInit__media"],
        ["GOMP_parallel", "polymux_openmp_forward", "polymux_openmp_limit"],
    )  # fmt: skip
    for module, expected in zip(modules, exported, strict=True):
        listing = run("nm", "--dynamic", "--defined-only", "--format=posix", module)
        symbols = (line.split()[:2] for line in listing.splitlines())
        # "A" is the name of a version.
        assert [name.partition("@")[0] for name, kind in symbols if kind != "A"] == expected


@pytest.mark.parametrize("is_built", [False, pytest.param(True, marks=pytest.mark.long)])
def test_package_without_media_says_what_to_install(
    built_wheel: Path, tmp_path: Path, is_built: bool
) -> None:
    """This holds after a build without FFmpeg, and without the module. Other parts still work."""
    if is_built:
        built_wheel = wheel("test-wheel-plain", "cmake.define.POLYMUX_MEDIA=OFF")
    with zipfile.ZipFile(built_wheel) as archive:
        archive.extractall(tmp_path)
    for module in tmp_path.rglob("_native/_media.*.so"):
        assert not is_built
        module.unlink()
    script = """
import sys
sys.path.insert(0, sys.argv[1])
import polymux
assert polymux.__file__.startswith(sys.argv[1])
try:
    polymux.convert_to_mp3("talk.mp4", "talk.mp3")
except polymux.MissingDependencyError as error:
    print(error)
"""
    # Without site-packages, as in an environment that has only the wheel.
    message = run(sys.executable, "-I", "-S", "-c", script, tmp_path, cwd=tmp_path).strip()
    assert {"libavformat-dev", "libavcodec-dev"} <= set(re.findall(r"[\w-]+", message))


def test_the_core_needs_no_ffmpeg(prefix: Path, tmp_path: Path) -> None:
    """A project that names its components configures and links without FFmpeg's packages."""
    source = ROOT / "cpp/examples/check_request.cpp"
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(example LANGUAGES CXX)\n"
        "set(ENV{PKG_CONFIG_LIBDIR} /nowhere)\n"
        "find_package(polymux REQUIRED COMPONENTS core)\n"
        f"add_executable(example {source})\n"
        "target_link_libraries(example PRIVATE polymux::core)\n"
        "if(TARGET polymux::media OR CMAKE_MODULE_PATH)\n"
        '    message(FATAL_ERROR "more than the core")\nendif()\n'
        "find_package(polymux QUIET COMPONENTS media)\n"
        'if(polymux_FOUND)\n    message(FATAL_ERROR "FFmpeg is not there")\nendif()\n'
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}")  # fmt: skip
    run("cmake", "--build", tmp_path / "build")


@pytest.mark.parametrize(
    ("name", "example"), [("core", "check_request"), ("media", "convert_to_mp3")]
)
def test_pkg_config(
    prefix: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, example: str
) -> None:
    folders = [str(path.parent) for path in prefix.rglob("polymux-core.pc")]
    monkeypatch.setenv("PKG_CONFIG_PATH", os.pathsep.join(folders))
    flags = run("pkg-config", "--cflags", "--libs", f"polymux-{name}").split()
    source = ROOT / f"cpp/examples/{example}.cpp"
    run("c++", "-std=c++20", "-o", tmp_path / "example", source, *flags)
    assert (tmp_path / "example").exists()


def test_installed_library_defines_its_own_names_alone(prefix: Path) -> None:
    """Another simdjson can be linked beside it. The licenses of what it contains are there."""
    library = next(prefix.rglob("libpolymux_core.a"))
    listing = run("nm", "--demangle", "--extern-only", "--defined-only", library)
    names = {line.split(" ", 2)[2] for line in listing.splitlines() if " T " in line}
    assert len(names) > 100
    assert not [one for one in names if "polymux" not in one]
    for one in ("LICENSE", "THIRD_PARTY.md", "lame/COPYING", "llhttp/LICENSE", "simdjson/LICENSE"):
        assert (prefix / "share/doc/polymux" / one).is_file()


@pytest.mark.parametrize("is_whole", [False, pytest.param(True, marks=pytest.mark.long)])
def test_shared_libraries(tone: Path, tmp_path: Path, is_whole: bool) -> None:
    """They export the names of polymux alone, and a project needs no other package to link them."""
    settings = ["BUILD_SHARED_LIBS=ON", "CMAKE_UNITY_BUILD=ON"]
    if not is_whole:
        settings += ["POLYMUX_MEDIA=OFF", "POLYMUX_SERVER=OFF", "POLYMUX_TRANSPORT=OFF"]
    shared = installed_prefix(f"test-shared-{'whole' if is_whole else 'core'}", *settings)
    assert not list(shared.rglob("*.a"))
    libraries = [path for path in shared.rglob("libpolymux_*.so") if path.is_symlink()]
    assert len(libraries) == (8 if is_whole else 2)
    for library in libraries:
        listing = run("nm", "--dynamic", "--demangle", "--defined-only", library)
        names = [line.split(" ", 2)[2] for line in listing.splitlines()]
        assert names
        assert not [one for one in names if "polymux::" not in one]
    name, example = ("media", "convert_to_mp3") if is_whole else ("core", "check_request")
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(example LANGUAGES CXX)\n"
        "set(ENV{PKG_CONFIG_LIBDIR} /nowhere)\n"
        f"find_package(polymux REQUIRED COMPONENTS {name})\n"
        f"add_executable(example {ROOT}/cpp/examples/{example}.cpp)\n"
        f"target_link_libraries(example PRIVATE polymux::{name})\n"
    )
    run("cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={shared}")  # fmt: skip
    run("cmake", "--build", tmp_path / "build")
    program = tmp_path / "build/example"
    if is_whole:
        assert "frames" in run(program, tone, tmp_path / "a.mp3")
    else:
        done = subprocess.run([program, "imagegeneration"], input=b'{"prompt": "x"}', timeout=60,
                              check=False)  # fmt: skip
        assert done.returncode == 0


def test_installed_library_serves_cmake_users(tone: Path, prefix: Path, tmp_path: Path) -> None:
    """find_package(polymux) and the documented example work outside this repository."""
    run("cmake", "-S", ROOT / "cpp/examples", "-B", tmp_path / "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}")  # fmt: skip
    run("cmake", "--build", tmp_path / "build")
    program, output, reference = (
        tmp_path / name for name in ("build/convert_to_mp3", "a.mp3", "b.mp3")
    )
    assert "frames" in run(program, tone, output)
    programs.ffmpeg("-i", tone, "-c:a", "libmp3lame", "-b:a", "128k", reference)
    assert audio_frames(output) == audio_frames(reference)
    checks = tmp_path / "build/check_request"
    for body, code, says in (
        (b'{"prompt": "x"}', 0, ""),
        (b'{"prompt": "x", "width": 1001}', 1, "width=1001"),
        (b'{"prompt": ', 1, "JSON"),
    ):
        done = subprocess.run([checks, "imagegeneration"], input=body, capture_output=True,
                              timeout=60, check=False)  # fmt: skip
        assert done.returncode == code
        assert says in done.stdout.decode()
