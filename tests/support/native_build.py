"""Builds of this repository for tests: an installed C++ library, wheels, test environments.

Slow builds are below build/. Test processes share them through a lock, and the build system updates
them incrementally.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import sysconfig
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build"
TIMEOUT_S = 600
#: The id of a pytest-xdist run, or empty without pytest-xdist.
_THIS_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")


def run(*command: str | Path, cwd: Path = ROOT, check: bool = True) -> str:
    """Standard output of a command; a failure shows all output."""
    launcher = {"CMAKE_C_COMPILER_LAUNCHER": "ccache", "CMAKE_CXX_COMPILER_LAUNCHER": "ccache"}
    environment = os.environ | (launcher if shutil.which("ccache") else {})
    environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"
    result = subprocess.run(
        [str(word) for word in command], cwd=cwd, env=environment, capture_output=True, text=True,
        timeout=TIMEOUT_S, check=False,
    )  # fmt: skip
    if check and result.returncode != 0:
        raise AssertionError(f"{command}: {result.returncode}\n{result.stdout}\n{result.stderr}")
    return result.stdout


@contextmanager
def locked(name: str) -> Iterator[Path]:
    """Hold the lock of build/NAME."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _is_of_this_run(folder: Path) -> bool:
    """Whether another process of the same test run has made this build."""
    kept = folder / "test-run"
    return bool(_THIS_RUN) and kept.exists() and kept.read_text() == _THIS_RUN


def installed_prefix(name: str = "test-install", *settings: str) -> Path:
    """The prefix of `cmake --install` of the C++ library, built from the current sources.

    Args:
        name: The folder below build/.
        settings: Options of CMake, such as ``BUILD_SHARED_LIBS=ON``.
    """
    with locked(name) as folder:
        prefix = folder / "prefix"
        if _is_of_this_run(folder):
            return prefix
        # The compiler of the extension module, with the same name: ccache then reuses its objects.
        compiler = (sysconfig.get_config_var("CXX") or "c++").split()[0]
        run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_CXX_COMPILER={compiler}", *[f"-D{one}" for one in settings])  # fmt: skip
        run("cmake", "--build", folder, "--parallel", "2")
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "--install", folder, "--prefix", prefix)
        (folder / "test-run").write_text(_THIS_RUN)
        return prefix


def http1_cases() -> Path:
    """The program of cpp/tests/http1_cases.cpp, built from the current sources."""
    with locked("test-http1") as folder:
        program = folder / "cpp/tests/polymux_http1_cases"
        if not _is_of_this_run(folder):
            compiler = (sysconfig.get_config_var("CXX") or "c++").split()[0]
            run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
                f"-DCMAKE_CXX_COMPILER={compiler}", "-DPOLYMUX_TESTS=ON", "-DPOLYMUX_MEDIA=OFF",
                "-DPOLYMUX_TRANSPORT=OFF")  # fmt: skip
            run("cmake", "--build", folder, "--parallel", "2", "--target", program.name)
            (folder / "test-run").write_text(_THIS_RUN)
        return program


def wheel(name: str, *settings: str) -> Path:
    """A wheel of this repository, built without isolation in build/NAME.

    The folder has the same depth as the extension module's own build directory, because ccache
    reuses objects only with equal relative paths to the sources.
    """
    with locked(name) as folder:
        wheels = folder / "wheels"
        if _is_of_this_run(folder):
            (path,) = wheels.glob("*.whl")
            return path
        shutil.rmtree(wheels, ignore_errors=True)
        options = [f"--config-settings={text}" for text in (f"build-dir={folder}", *settings)]
        run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation",
            "--wheel-dir", wheels, *options, ROOT)  # fmt: skip
        (folder / "test-run").write_text(_THIS_RUN)
        (path,) = wheels.glob("*.whl")
        return path


def new_environment(folder: Path) -> Path:
    """Create an empty virtual environment; return its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin/python"


def pip_install(python: Path, *arguments: str | Path) -> None:
    """Install into the environment of `python` without a package index."""
    run(sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--no-deps",
        "--no-index", *arguments)  # fmt: skip
