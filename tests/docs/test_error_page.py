"""docs/reference/errors.md against the code: hierarchy, codes, exit codes and HTTP statuses."""

from __future__ import annotations

import re
import textwrap

from polymux import errors
from polymux.cli.errors import EXIT_CODES, code_of
from polymux.client.answer import Answer, status_error
from support.native_build import ROOT

PAGE = (ROOT / "docs/reference/errors.md").read_text(encoding="utf-8")


def rows(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table below a heading, without code marks."""
    part = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    table = [line for line in part.splitlines() if line.startswith("| ")]
    return [[cell.strip().strip("`") for cell in line.strip("|").split("|")] for line in table[1:]]


def public() -> dict[str, type[errors.PolymuxError]]:
    return {
        name: one
        for name, one in vars(errors).items()
        if isinstance(one, type) and issubclass(one, errors.PolymuxError) and name[0] != "_"
    }


def test_the_tree_is_the_one_of_the_code() -> None:
    drawn = re.search(r"```text\n(PolymuxError\n.*?)```", PAGE, re.DOTALL)
    assert drawn is not None
    assert errors.__doc__ is not None
    own = errors.__doc__.partition("::\n\n")[2].partition("\n\nAn exception")[0]
    assert drawn[1].strip() == textwrap.dedent(own).strip()


def test_codes_and_exit_codes() -> None:
    documented = {
        name: (code, int(exit_code))
        for name, code, exit_code in rows(PAGE, "Error codes and exit codes")
    }
    assert documented == {name: (one.code, code_of(one("x"))) for name, one in public().items()}


def test_commands_tell_the_same_exit_codes() -> None:
    text = (ROOT / "docs/guides/command-line.md").read_text().replace("`", "'")
    documented = dict(rows(text, "Exit codes"))
    lines = EXIT_CODES.splitlines()[1:]
    assert documented == dict(re.split(r" {2,}", line.strip(), maxsplit=1) for line in lines)


def test_a_client_raises_the_documented_class() -> None:
    documented = {(status, name) for status, _, name, _ in rows(PAGE, "HTTP status codes")}
    raised = {one: status_error(Answer((int(one), b"", b"", 1, 0.0, ()))) for one, _ in documented}
    assert documented == {(status, type(error).__name__) for status, error in raised.items()}
    assert len(documented) > 10
