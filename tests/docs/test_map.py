"""The map of the house, and what can be installed, name everything that there is."""

from __future__ import annotations

import re
import tomllib
from collections import Counter

from support.native_build import ROOT


def rows(page: str) -> list[str]:
    """What the first cells of a page's tables name, a folder or file each."""
    lines = (ROOT / page).read_text(encoding="utf-8").splitlines()
    first = [line.split("|")[1] for line in lines if line.startswith("| `")]
    return [name for cell in first for name in re.findall(r"`([^`]+)`", cell)]


def test_every_folder_has_its_place_on_the_map() -> None:
    named = rows("docs/architecture.md")
    assert [name for name, times in Counter(named).items() if times > 1] == []
    package = ROOT / "python/polymux"
    folders = {
        f"python/polymux/{path.name}/"
        for path in package.iterdir()
        if path.is_dir() and any(path.glob("*.py"))
    }
    # What the row of the package itself says.
    inner = {f"python/polymux/{name}/" for name in ("operations", "responses", "cli")}
    assert folders - set(named) - inner == set()
    gone = [one for one in named if one.startswith("python/") and not (ROOT / one).exists()]
    assert gone == []


def test_every_extra_is_named_where_installing_is_told() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs/install.md").read_text(encoding="utf-8")
    (told,) = re.findall(r"What needs some is an extra: (.*?), as in", page, re.DOTALL)
    assert set(re.findall(r"`(\w+)`", told)) == set(project["optional-dependencies"])
