"""docs/reference/command-line.md has the commands and options of the parser."""

from __future__ import annotations

import sys

from support.native_build import ROOT

sys.path.append(str(ROOT / "scripts/lib"))

import command_line


def test_page_is_up_to_date() -> None:
    written = command_line.PAGE.read_text(encoding="utf-8")
    remedy = "run `.venv/bin/python scripts/lib/command_line.py`"
    assert written == command_line.page(), remedy
