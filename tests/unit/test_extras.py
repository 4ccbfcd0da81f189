"""The extras that messages and pages name exist, and they install what the named feature needs."""

from __future__ import annotations

import re
import tomllib
from importlib import metadata

import pytest
from polymux.engines.registry import ENGINES
from support.native_build import ROOT

EXTRAS: dict[str, list[str]] = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))[
    "project"
]["optional-dependencies"]
#: Extras of gigabytes, which `all` leaves out.
LARGE = {"diffusion", "mini", "ray"}


def package(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return re.sub(r"[-_.]+", "-", found[0]).lower()


def named(text: str) -> set[str]:
    """The extras in a text, such as ``pip install 'polymux[server,chat]'``."""
    lists = re.findall(r"polymux\[([a-z][a-z,-]*)\]", text)
    return {extra for one in lists for extra in one.split(",")}


def test_named_extras_exist() -> None:
    folders = [ROOT / name for name in ("python", "docs", "deploy", "notebooks")]
    files = [ROOT / "README.md", *(path for one in folders for path in one.rglob("*.*"))]
    texts = [
        path.read_text("utf-8")
        for path in files
        if path.suffix in (".py", ".md", ".ipynb", ".html", ".js", ".toml")
    ]
    found = named("".join(texts))
    assert {"chat", "ocr", "server"} <= found
    assert found <= set(EXTRAS)
    assert named(ENGINES["chat"].remedy) == {"chat"}
    assert {one.extra for one in ENGINES.values() if one.extra} <= set(EXTRAS)


def test_all_contains_every_extra_except_large_ones() -> None:
    assert named("".join(EXTRAS["all"])) == set(EXTRAS) - LARGE - {"all"}


@pytest.mark.parametrize("name", [name for name, one in ENGINES.items() if one.extra])
def test_an_engine_s_extra_installs_its_modules(name: str) -> None:
    wanted = {package(one) for one in EXTRAS[ENGINES[name].extra]}
    owners = metadata.packages_distributions()
    for module in ENGINES[name].modules:
        assert {package(one) for one in owners[module]} & wanted, module
