"""Pages in docs/development name a test for every case and every client feature; all exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

#: The number of cases in each family.
FAMILIES = {
    "A": 22, "H": 22, "J": 22, "C": 48, "U": 55, "M": 30, "V": 32,
    "I": 19, "S": 11, "O": 7, "D": 15, "P": 13, "K": 26, "N": 18,
}  # fmt: skip


def page(name: str) -> str:
    return (ROOT / "docs/development" / name).read_text()


def cases() -> list[tuple[str, str]]:
    """Id and last cell of each row of the table."""
    return re.findall(r"^\| ([A-Z]\d\d) \| .* \| ([^|]*) \|$", page("testing.md"), re.MULTILINE)


@cache
def names_in(path: Path) -> frozenset[str]:
    """The test functions of a Python file, or the test cases of a C++ file."""
    pattern = r"^(?:async )?def (\w+)\(" if path.suffix == ".py" else r'TEST_CASE\(\s*"([^"]*)"'
    return frozenset(re.findall(pattern, path.read_text(), re.MULTILINE))


def problem(reference: str) -> str | None:
    """The problem with `path` or `path::test`, or None."""
    name, _, test = reference.partition("::")
    path = ROOT / name
    if not path.is_file():
        return f"there is no file {name}"
    if test and test not in names_in(path):
        return f"{name} has no test {test!r}"
    return None


def problems(references: list[str]) -> list[str]:
    return [found for one in references if (found := problem(one))]


def test_every_case_stands_in_the_table_once() -> None:
    expected = [f"{family}{n:02}" for family, last in FAMILIES.items() for n in range(1, last + 1)]
    assert [identifier for identifier, _ in cases()] == expected
    for identifier, tests in cases():
        assert "`" in tests or tests == "not yet", f"{identifier}: {tests!r}"


def test_every_named_test_exists() -> None:
    references = [one for _, tests in cases() for one in re.findall(r"`([^`]*/[^`]*)`", tests)]
    assert len(references) > 50
    assert problems(references) == []


def test_who_names_a_case_stands_in_its_row() -> None:
    known = dict(cases())
    claims = []
    for path in (ROOT / "tests").rglob("test_*.py"):
        for function in path.read_text().split("\ndef ")[1:]:
            match = re.match(r'(test_\w+)\([^"]*\) -> None:\n    """(.*?)"""', function, re.DOTALL)
            if match:
                reference = f"`{path.relative_to(ROOT)}::{match[1]}`"
                claims += [(one, reference) for one in re.findall(r"\b[A-Z]\d\d\b", match[2])]
    wanted = [(one, reference) for one, reference in claims if one in known]
    assert len({one for one, _ in wanted}) > 200
    assert [(one, test) for one, test in wanted if test not in known[one]] == []


def test_missing_tests_are_found() -> None:
    here = "tests/unit/test_testing_table.py"
    assert len(problems([f"{here}::test_nothing", "tests/unit/no_such_file.py"])) == 2
    assert problem(f"{here}::test_missing_tests_are_found") is None


def test_every_feature_of_the_client_names_its_tests() -> None:
    table = page("client-features.md").partition("\n| feature |")[2].partition("\n\n")[0]
    rows = [line.strip("|").split("|") for line in table.splitlines()[2:]]
    assert len(rows) > 30
    for feature, _, tests, *others in rows:
        assert len(others) == 6
        names = re.findall(r"`([^`]+)`", tests)
        assert names, feature
        paths = [one if "/" in one else f"tests/integration/client/{one}" for one in names]
        assert all("::" in path for path in paths)
        assert problems(paths) == []


def threats() -> list[str]:
    section = page("testing.md").partition("\n## Threats\n")[2]
    rows = re.findall(r"^\| .*$", section, re.MULTILINE)
    return [line for line in rows if not line.startswith("| threat ")]


def test_every_class_of_threats_has_a_row() -> None:
    named = [one for line in threats() for one in line.split(" | ")[1].split(", ")]
    assert {int(one) for one in named} == set(range(1, 35))


def test_every_threat_names_tests_that_exist() -> None:
    assert len(threats()) > 30
    for line in threats():
        names = re.findall(r"`([^`]+::[^`]+)`", line)
        assert names, line
        assert problems(names) == []
