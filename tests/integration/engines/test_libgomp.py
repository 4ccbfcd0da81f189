"""polymux's replacement for GCC's OpenMP library, on systems without it."""

from __future__ import annotations

import ctypes
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polymux._native import _core
from support.chat_model import model_path
from support.programs import find

if TYPE_CHECKING:
    from collections.abc import Sequence

OURS = Path(_core.__file__).with_name("_libgomp.so")
REGIONS = Path(__file__).parents[2] / "support" / "openmp_regions.c"
#: Hides the file $1 from the command after it.
HIDING = 'mount --bind /dev/null "$1" && shift && exec "$@"'
CHAT = f"""
import polymux
from pathlib import Path
from polymux.runtime.settings import EngineSettings

options = {{"model": {str(model_path())!r}, "context": 512}}
with polymux.Local(engines={{"chat": EngineSettings("chat", options, threads=2)}}) as local:
    print(local.chat("Count from one to ten.", temperature=0, max_completion_tokens=24).text)
"""


@pytest.fixture(scope="module")
def systems() -> Path:
    """The system's libgomp."""
    ctypes.CDLL("libgomp.so.1")
    (path,) = set(re.findall(r"/\S*/libgomp\.so\.1\S*", Path("/proc/self/maps").read_text()))
    return Path(path)


def run(*command: object, hidden: Path | None = None, path: Path | None = None) -> str:
    own: Sequence[object] = ()
    if hidden is not None:
        own = (find("unshare"), "--map-root-user", "--mount", "sh", "-euc", HIDING, "sh", hidden)
    done = subprocess.run(
        [*map(os.fspath, map(str, own)), *map(str, command)],
        env=os.environ | ({"LD_LIBRARY_PATH": str(path)} if path else {}),
        capture_output=True, text=True, check=False, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_regions_run_as_with_gccs_library(tmp_path: Path, systems: Path) -> None:
    program = tmp_path / "regions"
    run(find("gcc"), "-O1", "-fopenmp", REGIONS, "-o", program)
    (tmp_path / "libgomp.so.1").symlink_to(OURS)
    expected = run(program)
    assert expected.count("\n") > 40
    assert run(program, path=tmp_path, hidden=systems) == expected


def test_chat_without_the_systems_library(systems: Path) -> None:
    expected = run(sys.executable, "-c", CHAT)
    assert len(expected) > 20
    with pytest.raises(AssertionError, match="libgomp"):
        run(sys.executable, "-c", "import xllamacpp", hidden=systems)
    assert run(sys.executable, "-c", CHAT, hidden=systems) == expected
