"""Orders the tests for a fault: those that name its module, functions or folder come first."""

from __future__ import annotations

import ast
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: Test folders in their order. Folders that are missing here come before the last two.
FIRST = ["unit", "integration"]
LAST = ["browser", "packaging"]
#: Module names that are too common to relate a test to the module.
COMMON = {"__init__", "base", "engine", "model", "run", "settings", "table", "text", "types"}
SHORTEST_NAME = 6


def python_stages(root: Path, path: str) -> list[list[str]]:
    """Return three lists of test files: near the module, related to it, and all others."""
    return _stages(root, "tests", "test_*.py", _patterns(root, path))


def cpp_stages(root: Path, path: str) -> list[list[str]]:
    """Return the C++ test files in the same three lists."""
    return _stages(root, "cpp/tests", "test_*.cpp", _cpp_patterns(path))


def _stages(root: Path, folder: str, glob: str, patterns: list[list[str]]) -> list[list[str]]:
    stages: list[list[str]] = [[] for _ in range(len(patterns) + 1)]
    names = (file.relative_to(root).as_posix() for file in (root / folder).rglob(glob))
    for name in sorted(names, key=_place):
        if name.endswith("/test_main.cpp"):
            continue
        words = f"{name}\n{(root / name).read_text()}"
        near = (any(re.search(each, words) for each in stage) for stage in patterns)
        stages[next((index for index, is_near in enumerate(near) if is_near), -1)].append(name)
    return stages


def _place(name: str) -> tuple[int, str]:
    folder = name.split("/")[1]
    if folder in FIRST:
        return FIRST.index(folder), name
    return len(FIRST) + (LAST.index(folder) + 1 if folder in LAST else 0), name


def _patterns(root: Path, path: str) -> list[list[str]]:
    if path.startswith("cpp/"):
        return _cpp_patterns(path)
    parts = path.removeprefix("python/").removesuffix(".py").split("/")
    package, name = r"\.".join(parts[:-1]), parts[-1]
    module = package if name == "__init__" else rf"{package}\.{name}"
    of_module = [rf"\b{module}\b(?!\.)", rf"from {package} import [^\n]*\b{name}\b"]
    if name not in COMMON:
        of_module.append(rf"\A\S*/test_\w*{name}")
    related = [rf"\b{each}\b" for each in _public_names((root / path).read_text())]
    if len(parts) > len(["polymux", name]):
        related += [rf"\b{package}\b", rf"\A\S*/{parts[-2]}/"]
    return [of_module, related]


def _cpp_patterns(path: str) -> list[list[str]]:
    """The core's C++ tests are named like its files; its Python tests sometimes are."""
    *folders, name = path.removeprefix("cpp/src/").rpartition(".")[0].split("/")
    return [
        [rf"\A\S*/test_(\w*{name}|{name.split('_')[0]}_?)", rf"\b{name}\.hpp\b"],
        [rf"(\A\S*|polymux)/{folder}\b|_native\._?{folder}|\A\S*_{folder}_" for folder in folders],
    ]


def _public_names(text: str) -> list[str]:
    """Return the names of classes and functions, except for short names, which are too common."""
    return [
        node.name
        for node in ast.parse(text).body
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef)
        and not node.name.startswith("_")
        and len(node.name) >= SHORTEST_NAME
    ]
