"""Reading apt's configuration, in both of its forms."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from types import ModuleType

SCRIPT = Path(__file__).resolve().parents[2] / "scripts/lib/apt_sources.py"
DEB822 = """# the distribution
Types: deb
URIs: http://archive.example/debian
Suites: bookworm bookworm-updates
Components: main
Signed-By: /usr/share/keyrings/debian.gpg

Types: deb
URIs: http://archive.example/security
Suites: bookworm-security
Components: main

Types: deb
URIs: http://third.example/
Suites: nodistro
Components: main
"""
ONE_LINE = """# comment
deb [arch=amd64 signed-by=/usr/share/keyrings/debian.gpg] http://a.example/debian bookworm main
deb http://third.example/apt tool-bookworm main
"""


@pytest.fixture
def apt_sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    specification = importlib.util.spec_from_file_location("apt_sources", SCRIPT)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    (tmp_path / "sources.list.d").mkdir()
    monkeypatch.setattr(module, "APT", tmp_path)
    monkeypatch.setattr(module, "codename", lambda: "bookworm")
    return module


def test_deb822_sources(apt_sources: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "sources.list.d/debian.sources").write_text(DEB822)
    assert apt_sources.archive() == "http://archive.example/debian"
    listing = apt_sources.source_list("trixie")
    assert "Suites: trixie trixie-updates\n" in listing
    assert "Suites: trixie-security\n" in listing
    assert "Signed-By: /usr/share/keyrings/debian.gpg\n" in listing
    assert listing.count("Types: deb-src\n") == 2
    assert "third" not in listing


def test_one_line_sources(apt_sources: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "sources.list").write_text(ONE_LINE)
    assert apt_sources.source_list().splitlines() == [
        "Types: deb-src",
        "URIs: http://a.example/debian",
        "Suites: bookworm",
        "Components: main",
        "Signed-By: /usr/share/keyrings/debian.gpg",
    ]
