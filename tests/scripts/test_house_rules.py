"""The repository's lint rules find planted violations, and accept clean code."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CHECK = ROOT / "scripts/checks/house_rules.py"
#: File to the planted line and the expected message.
PLANTED = {
    "cpp/src/a.cpp": ("#include <Python.h>", "Python header"),
    "cpp/src/b.cpp": ('void f() { std::cout << "x"; }', "prints"),
    "cpp/include/polymux/a.hpp": ("inline void f() { abort(); }", "ends the process"),
    "cpp/src/c.cpp": ("void f() { throw 1; }", "throws"),
    "cpp/src/d.cpp": ("void f() { assert(1); }", "ends the process"),
    "cpp/include/polymux/result.hpp": ("inline void f() { exit(1); }", "ends the process"),
    "python/a.py": ("path = '/home/" + "somebody/file'", "developer's machine"),
    "python/b.py": ("# TO" + "DO: later", "unfinished work"),
    "docs/a.md": ("<" * 7 + " ours", "merge mark"),
    "docs/b.md": ("blank at the end ", "trailing blank"),
    "tests/a.py": ("HOST = '8.8." + "4.4'", "public Internet address"),
}


def run_check(root: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECK), str(root)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def plant(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_planted_violations_are_found(tmp_path: Path) -> None:
    for name, (line, _) in PLANTED.items():
        plant(tmp_path, name, line + "\n")
    result = run_check(tmp_path)
    assert result.returncode == 1, result.stdout
    found = dict(line.split(":", 1) for line in result.stdout.splitlines())
    assert found.keys() == PLANTED.keys()
    assert len(result.stdout.splitlines()) == len(PLANTED)
    for name, (_, expected) in PLANTED.items():
        assert expected in found[name]


def test_clean_code_passes(tmp_path: Path) -> None:
    """Clean: words in comments and strings, names that contain a forbidden one, printing tests."""
    plant(
        tmp_path,
        "cpp/src/a.cpp",
        "// never calls abort() or printf()\n"
        "/* throw nothing\n   std::cout neither */\n"
        'const char* text = "exit(1) printf(\\"x\\")";\n'
        "int snprintf_length(); bool on_exit(int); void f() { token.abort(); snprintf(0, 0, 0); }\n"
        "static_assert(true);\n",
    )
    plant(
        tmp_path, "cpp/include/polymux/result.hpp", "#include <cassert>\nvoid f() { assert(1); }\n"
    )
    plant(tmp_path, "cpp/tests/a.cpp", 'int main() { std::cout << "x"; std::exit(0); }\n')
    plant(tmp_path, "tests/a.py", "HOST = '127.0.0.1'\nDOCUMENTATION = '192.0.2.7'\n")
    result = run_check(tmp_path)
    assert (result.returncode, result.stdout) == (0, "")
