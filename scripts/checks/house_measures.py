#!/usr/bin/env python3
"""house_measures.py [ROOT]: prints the size and the structure of the Python package as a table.

- All imports count: at the top, in functions, and under TYPE_CHECKING. Only imports between the
  package's own modules count, each pair of modules once; in functions, each statement counts.
- The package's own `__init__` loads its names lazily and is above all layers: its imports do not
  count, and imports of it are upward.
- The layers are those of import-linter in pyproject.toml. A module whose folder is in no layer has
  no place, and its imports are not judged.
- Lines that moved from Python to stubs, TOML, JSON or templates still count as Python. Files that
  `scripts/generate` writes do not count.
- A file is an engine table if it names three engines or more as keys, in comparisons, or as the
  first argument of calls, or if it maps operations to engines like `_WITHOUT_MODEL`.
"""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

# Lines of the package's files at 0a004e9, without Python and the web page's code.
OTHER_LINES_BEFORE = 1_496
FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
WEB_PAGE = {".js", ".css", ".svg"}
ENGINES = {"chat", "diffusion", "media", "rapidocr", "speech", "tesseract", "upscale"}
# Measured by hand on two cores, while other programs ran. Enter new figures here.
TESTS_WALL_TIME, BUILD_TIME = "14 min", "2.2 min"


def files_in(folder: Path) -> list[Path]:
    found = (path for path in folder.rglob("*") if path.is_file() and path.suffix != ".so")
    return sorted(path for path in found if "__pycache__" not in path.parts)


def lines_of(paths: list[Path]) -> int:
    contents = (path.read_bytes() for path in paths)
    return sum(content.count(b"\n") for content in contents if b"\0" not in content)


def module_name(path: Path, python: Path) -> str:
    parts = path.relative_to(python).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(
    statement: ast.Import | ast.ImportFrom, path: Path, python: Path, modules: set[str]
) -> set[str]:
    """The package's modules that a statement imports."""
    if isinstance(statement, ast.Import):
        return {alias.name for alias in statement.names} & modules
    home = statement.module or ""
    if statement.level:
        package = path.relative_to(python).parts[: -statement.level]
        home = ".".join([*package, *filter(None, [home])])
    names = {f"{home}.{alias.name}" for alias in statement.names}
    return {name if name in modules else home for name in names} & modules


def cycles_of(imports: dict[str, set[str]]) -> list[set[str]]:
    """For each module, the modules with which it forms an import cycle."""

    def reachable(start: str) -> set[str]:
        seen: set[str] = set()
        waiting = [start]
        while waiting:
            new = imports.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        return seen

    reach = {name: reachable(name) for name in imports}
    return [{other for other in reach[name] if name in reach.get(other, ())} for name in imports]


def largest(cycles: list[set[str]]) -> int:
    return max(map(len, cycles), default=0)


def layers(pyproject: Path) -> dict[str, int]:
    """Top-level folder or module to the number of its layer, the lowest first."""
    contracts = tomllib.loads(pyproject.read_text())["tool"]["importlinter"]["contracts"]
    stack = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    return {
        name: number
        for number, layer in enumerate(reversed(stack))
        for name in re.findall(r"\w+", layer)
    }


def is_engine_table(nodes: list[ast.AST]) -> bool:
    named: set[object] = set()
    for node in nodes:
        parts: list[ast.expr | None] = []
        if isinstance(node, ast.Dict):
            parts = node.keys
        elif isinstance(node, ast.Compare):
            parts = [part for side in (node.left, *node.comparators) for part in elements(side)]
        elif isinstance(node, ast.Call):
            parts = [*node.args[:1]]
        elif isinstance(node, ast.Name) and node.id == "_WITHOUT_MODEL":
            return True
        named |= {part.value for part in parts if isinstance(part, ast.Constant)}
    return len(named & ENGINES) >= 3


def elements(side: ast.expr) -> list[ast.expr]:
    return side.elts if isinstance(side, ast.Tuple | ast.List | ast.Set) else [side]


def measures(root: Path) -> dict[str, str]:
    python, package = root / "python", root / "python/polymux"
    command = [str(root / "scripts/generate"), "--list"]
    listed = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    generated = {root / name for name in listed.splitlines()}
    files = files_in(package)
    sources = [path for path in files if path.suffix == ".py"]
    others = [path for path in files if path.suffix not in {".py", *WEB_PAGE}]

    # Stubs represent the extension modules.
    modules = {module_name(path, python) for path in files if path.suffix in {".py", ".pyi"}}
    imports: dict[str, set[str]] = {}
    in_functions = tables = 0
    for path in sources:
        nodes = list(ast.walk(ast.parse(path.read_bytes())))
        tables += is_engine_table(nodes)
        functions = [(n.lineno, n.end_lineno or 0) for n in nodes if isinstance(n, FUNCTION)]
        name = module_name(path, python)
        found = imports[name] = set()
        for node in nodes:
            if not isinstance(node, ast.Import | ast.ImportFrom):
                continue
            own = imported(node, path, python, modules)
            inside = any(first <= node.lineno <= last for first, last in functions)
            in_functions += bool(own) and inside
            found |= own - {name}
    imports["polymux"] = set()

    order = layers(root / "pyproject.toml")
    top = {name: name.split(".")[1] if "." in name else "" for name in modules}
    level = {name: order[top[name]] for name in modules if top[name] in order}
    level["polymux"] = len(order)
    upward = sum(
        level[name] < level[other]
        for name in imports.keys() & level.keys()
        for other in imports[name] & level.keys()
    )
    cycles = cycles_of(imports)
    across = [cycle for cycle in cycles if len({top[name] for name in cycle}) > 1]
    unplaced = sum(name not in level for name in imports)

    moved = lines_of([p for p in others if p not in generated]) - OTHER_LINES_BEFORE
    python_lines = lines_of([p for p in sources if p not in generated]) + max(0, moved)
    entries = {path.relative_to(package).parts[0] for path in files}
    test_lines = lines_of(files_in(root / "tests"))
    return {
        "entries at the top of `python/polymux`": f"{len(entries)}",
        "Python modules": f"{len(sources)}",
        "largest import cycle": f"{largest(cycles)} files; between folders {largest(across)}",
        "upward imports": f"{upward}; {unplaced} modules not placed",
        "in-function imports": f"{in_functions}",
        "hand-written Python lines in the package": f"{python_lines:,}",
        "test lines, tests' wall time": f"{test_lines:,}; {TESTS_WALL_TIME}",
        "engine tables": f"{tables}",
        "build from scratch on two cores": BUILD_TIME,
    }


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    print("| measure | value |\n|---|---|")
    for name, value in measures(root.resolve()).items():
        print(f"| {name} | {value} |")


if __name__ == "__main__":
    main()
