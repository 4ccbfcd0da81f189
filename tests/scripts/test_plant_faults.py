"""Planted faults: the choice of them, and where they can be."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
