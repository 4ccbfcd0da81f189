"""The architecture page names every folder once, and the page on installing every extra."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path

from support.native_build import ROOT

PAGE = (ROOT / "docs/explanation/architecture.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "python/polymux"
#: Not in the table: what builds and tools leave behind.
LEFT_BEHIND = re.compile(r"__pycache__|build.*|dist|node_modules|.*\.so|\..*")


def rows() -> list[list[str]]:
    """The cells of all rows of the page's tables that begin with a folder or file."""
    lines = PAGE.splitlines()
    return [line.strip("|").split("|") for line in lines if line.startswith("| `")]


def names(cell: str) -> list[str]:
    return re.findall(r"`([^`]+)`", cell)


def expected() -> set[str]:
    """Folders and modules of the package, and folders of the repository, that have a row."""
    found = {
        f"python/polymux/{path.name}{'/' if path.is_dir() else ''}"
        for path in PACKAGE.iterdir()
        if path.is_dir() or path.suffix == ".py"
    }
    # One level further down, where the folder itself has modules.
    found |= {f"{path.parent.relative_to(ROOT).as_posix()}/" for path in PACKAGE.glob("*/*/*.py")}
    found |= {f"cpp/src/{path.name}/" for path in (ROOT / "cpp/src").iterdir() if path.is_dir()}
    found |= {f"cpp/{path.name}/" for path in (ROOT / "cpp").iterdir() if path.is_dir()}
    found |= {f"bindings/{path.name}/" for path in (ROOT / "bindings").iterdir() if path.is_dir()}
    found |= {f"{path.name}/" for path in ROOT.iterdir() if path.is_dir()}
    # Those whose parts have the rows.
    found -= {"cpp/", "cpp/src/", "cpp/include/", "bindings/", "python/"}
    return {one for one in found if not LEFT_BEHIND.fullmatch(Path(one).name)}


def test_every_folder_is_on_the_page_once() -> None:
    named = [name for first, *_ in rows() for name in names(first)]
    assert [name for name, times in Counter(named).items() if times > 1] == []
    assert expected() - set(named) == set()


def test_every_extra_is_named_where_installing_is_explained() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs/get-started/install.md").read_text(encoding="utf-8")
    table = page.partition("\n| extra |")[2].partition("\n\n")[0]
    named = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    assert sorted(named) == sorted(project["optional-dependencies"])
