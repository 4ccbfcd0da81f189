"""docs/errors.md against the code: the tree, codes, exit codes, and what servers answer."""

from __future__ import annotations

import ast
import re
import textwrap
from functools import cache
from typing import Any

from polymux import errors
from polymux.cli.errors import EPILOG, code_of
from polymux.client.answer import _class_of
from polymux.server.http.connection_limit import _REASONS
from polymux.service import errors as service_errors
from polymux.service import job_table
from polymux.service.job_table import CANCELED_BY_ANOTHER
from support.native_build import ROOT

PAGE = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
PACKAGE = ROOT / "python/polymux"
#: Where answers come from; `doors` have shapes and codes of their own.
FOLDERS = ("server", "service", "engines", "upstreams", "downloads", "summaries", "songs")


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
    told = {
        name: (code, int(exit_code)) for name, code, exit_code in rows(PAGE, "Codes and exit codes")
    }
    assert told == {name: (one.code, code_of(one("x"))) for name, one in public().items()}


def test_commands_tell_the_same_exit_codes() -> None:
    text = (ROOT / "docs/commands.md").read_text().replace("`", "'")
    told = dict(rows(text, "Exit codes"))
    lines = EPILOG.splitlines()[1:]
    assert told == dict(re.split(r" {2,}", line.strip(), maxsplit=1) for line in lines)


@cache
def answered() -> dict[tuple[int, str], list[str]]:
    """Status and code to the places that answer so, by the calls of `status_error` in the code."""
    found: dict[tuple[int, str], list[str]] = {
        (status, code): ["failures"] for _, status, code in service_errors._MEDIA
    }
    for path in (one for name in FOLDERS for one in (PACKAGE / name).rglob("*.py")):
        if "compat" in path.parts:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and _name(node.func) == "status_error" and node.args:
                for told in _told(node):
                    found.setdefault(told, []).append(f"{path.name}:{node.lineno}")
    unforeseen = service_errors.described(ValueError())
    store_failed = service_errors.described(service_errors.StoreError(""))
    for told in (unforeseen, store_failed, job_table.INTERRUPTED, CANCELED_BY_ANOTHER):
        found[told["status"], told["code"]] = ["failures"]
    for status, (code, _) in _REASONS.items():
        found[status, code] = ["early_refusals"]
    return found


def _name(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _told(call: ast.Call) -> list[tuple[int, str]]:
    """What a call of `status_error` answers; nothing where only its run tells."""
    kind = getattr(errors, _name(call.args[0]), None)
    given = {one.arg: one.value for one in call.keywords}
    status: Any = service_errors._STATUS_OF.get(kind) if kind else None
    code: Any = kind.code if kind else None
    if "status" in given:
        status = getattr(given["status"], "value", None)
    if "code" in given:
        code = getattr(given["code"], "value", None)
    return [(status, code)] if isinstance(status, int) and isinstance(code, str) else []


def test_statuses_and_codes_are_those_of_the_code() -> None:
    told = [(int(status), code) for status, code, _, _ in rows(PAGE, "Statuses and codes")]
    assert told == sorted(told)
    found = answered()
    assert {one: found.get(one) for one in told} == found


def test_a_client_raises_the_class_that_is_told() -> None:
    told = {(status, name) for status, _, name, _ in rows(PAGE, "Statuses and codes")}
    assert told == {(status, _class_of(int(status)).__name__) for status, _ in told}
    assert len(told) > 10
