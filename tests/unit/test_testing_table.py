"""docs/testing.md names a test for every case, docs/client.md for every feature; all exist."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: How many cases each family has.
FAMILIES = {
    "A": 22, "H": 22, "J": 22, "C": 48, "U": 55, "M": 30, "V": 32,
    "I": 19, "S": 11, "O": 7, "D": 15, "P": 13, "K": 26, "N": 18,
}  # fmt: skip


def rows() -> dict[str, str]:
    """The last cell of each row of the table, by id."""
    found: dict[str, str] = {}
    for line in (ROOT / "docs/testing.md").read_text().splitlines():
        match = re.match(r"\| ([A-Z]\d\d) \| .* \| ([^|]*) \|$", line)
        if match:
            assert match[1] not in found, f"{match[1]} stands in the table twice"
            found[match[1]] = match[2]
    return found


@cache
def names_in(path: Path) -> frozenset[str]:
    """Test functions of a Python file, or test cases of a C++ file."""
    if path.suffix == ".py":
        tree = ast.walk(ast.parse(path.read_text()))
        return frozenset(node.name for node in tree if isinstance(node, ast.FunctionDef))
    return frozenset(re.findall(r'TEST_CASE\(\s*"([^"]*)"', path.read_text()))


def problem(reference: str) -> str | None:
    """What is wrong with `path` or `path::test`, if anything."""
    name, _, test = reference.partition("::")
    path = ROOT / name
    if not path.is_file():
        return f"there is no file {name}"
    if test and test not in names_in(path):
        return f"{name} has no test {test!r}"
    return None


def test_every_case_stands_in_the_table_once() -> None:
    expected = [f"{family}{n:02}" for family, last in FAMILIES.items() for n in range(1, last + 1)]
    assert list(rows()) == expected


def test_every_case_has_a_test_or_says_not_yet() -> None:
    for identifier, tests in rows().items():
        assert "`" in tests or tests == "not yet", f"{identifier}: {tests!r}"


def test_every_named_test_exists() -> None:
    references = {
        reference
        for tests in rows().values()
        for reference in re.findall(r"`([^`]*/[^`]*)`", tests)
    }
    assert len(references) > 50
    assert [found for reference in sorted(references) if (found := problem(reference))] == []


def claims() -> dict[str, list[str]]:
    """The tests whose docstrings name a case, by its id."""
    found: dict[str, list[str]] = {}
    for path in sorted((ROOT / "tests").rglob("test_*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                reference = f"{path.relative_to(ROOT)}::{node.name}"
                for identifier in re.findall(r"\b[A-Z]\d\d\b", ast.get_docstring(node) or ""):
                    found.setdefault(identifier, []).append(reference)
    return found


def test_who_names_a_case_stands_in_its_row() -> None:
    known = rows()
    wanted = {one: tests for one, tests in claims().items() if one in known}
    assert len(wanted) > 200
    assert [
        (one, reference)
        for one, tests in sorted(wanted.items())
        for reference in tests
        if f"`{reference}`" not in known[one]
    ] == []


def test_missing_tests_are_found() -> None:
    assert problem("tests/unit/test_testing_table.py::test_nothing") is not None
    assert problem("tests/unit/no_such_file.py") is not None
    assert problem("tests/unit/test_testing_table.py::test_missing_tests_are_found") is None


def features() -> dict[str, str]:
    """The cell with tests of each row of the client's table, by feature."""
    found: dict[str, str] = {}
    table = (ROOT / "docs/client.md").read_text().partition("\n| feature |")[2]
    for line in table.splitlines()[2:]:
        if not line.startswith("|"):
            break
        feature, _, tests, *others = (cell.strip() for cell in line.strip("|").split("|"))
        assert len(others) == 6
        found[feature] = tests
    return found


def test_every_feature_of_the_client_names_its_tests() -> None:
    table = features()
    assert len(table) > 30
    for feature, tests in table.items():
        names = re.findall(r"`([^`]+)`", tests)
        assert names, feature
        paths = [one if "/" in one else f"tests/integration/client/{one}" for one in names]
        assert all("::" in path for path in paths)
        assert [problem(path) for path in paths] == [None] * len(paths)


def rows_of_threats() -> list[str]:
    return [
        line
        for line in (ROOT / "docs/security.md").read_text().splitlines()
        if line.startswith("| ") and not line.startswith("| threat ")
    ]


def test_every_class_of_threats_has_a_row_or_is_said_to_be_missing() -> None:
    named = {
        int(number) for line in rows_of_threats() for number in line.split(" | ")[1].split(", ")
    }
    missing = re.findall(
        r"^Not there yet: class (\d+)", (ROOT / "docs/security.md").read_text(), re.MULTILINE
    )
    assert named | {int(one) for one in missing} == set(range(1, 35))


def test_every_threat_names_tests_that_exist() -> None:
    assert len(rows_of_threats()) > 30
    for line in rows_of_threats():
        names = re.findall(r"`([^`]+::[^`]+)`", line)
        assert names, line
        assert [problem(name) for name in names] == [None] * len(names)
