"""Builds of this repository for tests: an installed C++ library, wheels, environments to try them.

Everything slow lies under build/, shared by test processes through a lock, and is brought up to
date by the build system rather than made anew.
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
#: The same in all processes of a run; none where there is one process.
_THIS_RUN = os.environ.get("PYTEST_XDIST_TESTRUNUID", "")


def run(*command: str | Path, cwd: Path = ROOT, check: bool = True) -> str:
    """Standard output of a command; a failure shows everything it said."""
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
    """One test process at a time in build/NAME."""
    folder = BUILD / name
    folder.mkdir(parents=True, exist_ok=True)
    with (BUILD / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder


def _is_of_this_run(folder: Path) -> bool:
    """Whether another process of the same run of the tests has made what lies there."""
    kept = folder / "test-run"
    return bool(_THIS_RUN) and kept.exists() and kept.read_text() == _THIS_RUN


def installed_prefix() -> Path:
    """Where `cmake --install` has put the C++ library, built from the sources as they are."""
    with locked("test-install") as folder:
        prefix = folder / "prefix"
        if _is_of_this_run(folder):
            return prefix
        # The extension module's compiler, by the same name: ccache has kept what that has made.
        compiler = (sysconfig.get_config_var("CXX") or "c++").split()[0]
        run("cmake", "-S", ROOT, "-B", folder, "-G", "Ninja", "-DCMAKE_BUILD_TYPE=Release",
            f"-DCMAKE_CXX_COMPILER={compiler}")  # fmt: skip
        run("cmake", "--build", folder, "--parallel", "2")
        shutil.rmtree(prefix, ignore_errors=True)
        run("cmake", "--install", folder, "--prefix", prefix)
        (folder / "test-run").write_text(_THIS_RUN)
        return prefix


def wheel(name: str, *settings: str) -> Path:
    """A wheel of this repository, built without isolation in build/NAME.

    In no folder below that one: as far from the sources as the extension module's own build, what
    ccache has kept of that is what is wanted here.
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
    """An empty virtual environment; gives its Python."""
    run(sys.executable, "-m", "venv", "--without-pip", folder)
    return folder / "bin/python"


def pip_install(python: Path, *arguments: str | Path) -> None:
    """Installs into the environment of `python` without asking any package index."""
    run(sys.executable, "-m", "pip", f"--python={python}", "install", "--quiet", "--no-deps",
        "--no-index", *arguments)  # fmt: skip
