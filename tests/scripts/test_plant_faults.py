"""Planted faults: the choice of them, and a run in a small repository."""

from __future__ import annotations

import importlib
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 120
MODULE = 'def small(number: int) -> bool:\n    """Tells 1 < 2."""\n    return number < 10\n'
TEST = """
import time
from pathlib import Path
from polymux import part

def test_fails_always():
    assert False

def test_small():
    if Path("wait").exists():
        Path("started").touch()
        time.sleep(600)
    assert part.small(9)
"""
CPP = r"""
#include <a.hpp>  // a < b
template <typename T> bool same(const T&& x);
auto text = fail("line " + std::to_string(n + 1) + R"(a == b)");
bool f(int n) {
    if (n < 10 && !done) return fail("n < 10 here", n + 1);
    while (true) n = n - 1;
    return 'a' == "b"[0];
}
"""
CPP_SITES = [(6, "<", ">="), (6, "<", "<="), (6, "&&", "||"), (6, "!", ""), (7, "-", "+")]


@pytest.fixture(autouse=True)
def _library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(ROOT / "scripts/lib"))


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A repository with one module, its tests, and an environment that imports this module."""
    shutil.copytree(ROOT / "scripts/lib/faults", tmp_path / "scripts/lib/faults")
    shutil.copy(ROOT / "scripts/plant-faults", tmp_path / "scripts")
    files = {"python/polymux/__init__.py": "", "python/polymux/part.py": MODULE}
    for name, text in (files | {"tests/test_part.py": TEST, "pytest.ini": "[pytest]\n"}).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    venv.create(tmp_path / ".venv", symlinks=True)
    paths = f"{sysconfig.get_path('purelib')}\n{tmp_path}/python\n"
    (next(tmp_path.glob(".venv/lib/*/site-packages")) / "borrowed.pth").write_text(paths)
    identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"]
    for words in (["init", "-q"], ["add", "scripts", "python", "tests"], ["commit", "-qm", "All"]):
        subprocess.run(["git", *identity, *words], cwd=tmp_path, check=True)
    fault = importlib.import_module("faults.fault")
    site = fault.Site(3, 18, "<", ">=", "comparison")
    fault.save([fault.fault_at("python/polymux/part.py", MODULE, site)], tmp_path / "faults.json")
    return tmp_path


def start(repository: Path) -> subprocess.Popen[str]:
    # Only the plugins that the run needs: others take seconds to load.
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    command = [sys.executable, "scripts/plant-faults", "run", "faults.json", "--jobs=1"]
    return subprocess.Popen(
        [*command, "--results=out.json"],
        cwd=repository,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_choice() -> None:
    choice = importlib.import_module("faults.choice")
    faults: list[Any] = choice.choose(ROOT, 29, 20, set())
    assert faults == choice.choose(ROOT, 29, 20, set())
    assert len({fault.path for fault in faults}) == len(faults) == 40
    for fault in faults:
        text = (ROOT / fault.path).read_text()
        lines = zip(text.split("\n"), fault.planted(text).split("\n"), strict=True)
        assert sum(before != after for before, after in lines) == 1


def test_cpp_sites() -> None:
    sites = importlib.import_module("faults.cpp_sites").sites(CPP)
    assert [(site.line, site.before, site.after) for site in sites if site.line < 8] == CPP_SITES


def test_python_sites() -> None:
    text = (
        "import log\nif TYPE_CHECKING:\n    X = 1 < 2\n"
        "def f(a: Literal[1]) -> int:\n    log.info(a + 1)\n    é = 'é' + a; stop(é)\n"
        "    if not a: return True\n    raise Error(a - 1)\n"
        "def __repr__(self): return self.a + 1\n"
    )
    sites = importlib.import_module("faults.python_sites").sites(text)
    found = [(site.line, site.column, site.before, site.after) for site in sites]
    assert found == [(6, 17, "stop(é)", "pass"), (7, 7, "not ", ""), (7, 21, "True", "False")]


def test_run_catches(repository: Path) -> None:
    process = start(repository)
    printed, _ = process.communicate(timeout=WAIT_S)
    assert process.returncode == 0, printed
    (result,) = json.loads((repository / "out.json").read_text())["results"]
    assert (result["outcome"], result["detail"]) == ("caught", "tests/test_part.py::test_small")
    assert "Fails without a fault too: tests/test_part.py::test_fails_always" in printed
    assert "caught 1 of 1" in printed
    assert (repository / "python/polymux/part.py").read_text() == MODULE
