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


def test_only_quoted_words_become_code() -> None:
    cell = command_line._cell
    assert cell("the job's ID; see 'polymux x' or 'y'") == "the job's ID; see `polymux x` or `y`"
    assert cell("others' jobs, '-o -' (like 'a b').") == "others' jobs, `-o -` (like `a b`)."
