#!/usr/bin/env python3
"""house_rules.py [ROOT]: checks rules of this repository that no general tool has.

- `cpp/` includes no Python header. Its library (`include`, `src`) never prints, never ends the
  process, and never throws: it returns `Result`. Only `Result` itself asserts, in debug builds,
  that its value or error exists.
- No file contains an absolute path of a home or work folder, or a public Internet address.
  Loopback, documentation and other reserved networks are allowed.
- There is no unfinished work, no merge mark, no trailing blank and no huge file, and every file
  ends with a newline.

`cpp/third_party/` is not checked.

Prints one line per finding. The exit status is 1 if there is one.
"""

import ipaddress
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

HUGE_BYTES = 1 << 20
THIS = "scripts/checks/house_rules.py"

PYTHON_HEADER = re.compile(r'#\s*include\s*[<"](Python\.h|pybind11/|pythonrun\.h)')
CORE_CALLS = {
    "prints": r"std::(cout|cerr|clog|print|println)\b|#\s*include\s*<(iostream|print)>"
    r"|(?<![\w:])(std::)?v?f?printf\s*\(|\bfwrite\s*\([^;]*\b(stdout|stderr)\b"
    r"|(?<![\w:])(std::)?(f?puts|putchar|f?putc|perror|psignal)\s*\(",
    "ends the process": r"(?<![\w:.>])(std::|::)?(abort|exit|_exit|_Exit|quick_exit)\s*\("
    r"|(?<![\w:.>])(std::|::)?(terminate|raise|assert)\s*\("
    r"|__builtin_(trap|abort)\b|#\s*include\s*<(cassert|assert\.h)>",
    "throws": r"\bthrow\b(?!;)",  # rethrowing a library's exception is allowed
}
ASSERTS = "cpp/include/polymux/result.hpp"
ASSERTION = re.compile(r"#\s*include\s*<cassert>|(?<![\w:.>])assert\s*\(")
TEXT_RULES = {
    "path on a developer's machine": re.compile(
        r"(?<![\w.$}*/-])/(home(?!/stranger)|root|Users|work|workspace|mnt|srv)/\w"
    ),
    "unfinished work": re.compile(r"\b(TODO|FIXME|HACK)\b"),
    "merge mark": re.compile(r"^(<{7}|={7}|>{7})( |$)"),
    "trailing blank": re.compile(r"[ \t]+$"),
}
# Networks that Python regards as global although they contain no hosts of the Internet: protocol
# assignments, former relays, multicast, and a cloud's platform service. SSRF protection lists them.
NOBODYS_NETWORKS = [
    ipaddress.IPv4Network(text)
    for text in ("168.63.129.16/32", "192.0.0.0/24", "192.88.99.0/24", "224.0.0.0/4")
]
ADDRESS = re.compile(r"(?<![\w.])(?:\d{1,3}\.){3}\d{1,3}(?![\w.])")
COMMENT_OR_STRING = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'',
    re.DOTALL,
)


def files_of(root: Path) -> list[Path]:
    """Files that git would commit; without git, all files except build results."""
    if (root / ".git").exists():
        listing = [
            "git",
            "-C",
            str(root),
            "ls-files",
            "-z",
            "--cached",
            "--others",
            "--exclude-standard",
        ]
        names = subprocess.run(listing, check=True, capture_output=True).stdout.split(b"\0")
        return sorted(
            path for name in names if name and (path := root / os.fsdecode(name)).is_file()
        )
    made = re.compile(r"\.venv$|build$|__pycache__$|\..*_cache$")
    return sorted(
        path
        for path in root.rglob("*")
        if path.is_file() and not any(map(made.match, path.relative_to(root).parts[:-1]))
    )


def code_alone(text: str) -> str:
    """C++ with comments and literals blanked; line numbers and #include lines are kept."""

    def blank(match: re.Match[str]) -> str:
        found = match.group()
        line_start = text.rfind("\n", 0, match.start()) + 1
        if found.startswith('"') and "#include" in text[line_start : match.start()]:
            return found
        return re.sub(r"[^\n]", " ", found)

    return COMMENT_OR_STRING.sub(blank, text)


def core_findings(name: str, text: str) -> Iterator[str]:
    code = code_alone(text)
    in_library = name.startswith(("cpp/include/", "cpp/src/"))
    if name == ASSERTS:
        code = ASSERTION.sub("", code)
    for number, line in enumerate(code.splitlines(), 1):
        if PYTHON_HEADER.search(line):
            yield f"{name}:{number}: error: cpp/ includes a Python header"
        for what, pattern in CORE_CALLS.items():
            if in_library and re.search(pattern, line):
                yield f"{name}:{number}: error: the C++ library {what}: {line.strip()}"


def text_findings(name: str, text: str) -> Iterator[str]:
    if text and not text.endswith("\n"):
        yield f"{name}: error: missing newline at the end of the file"
    for number, line in enumerate(text.splitlines(), 1):
        for what, pattern in TEXT_RULES.items():
            if pattern.search(line):
                yield f"{name}:{number}: error: {what}: {line.strip()[:80]}"
        for quad in ADDRESS.findall(line):
            # A package's version may have four numbers.
            if public_address(quad) and f"=={quad}" not in line:
                yield f"{name}:{number}: error: public Internet address {quad}"


def public_address(quad: str) -> bool:
    try:
        address = ipaddress.IPv4Address(quad)
    except ipaddress.AddressValueError:
        return False
    return address.is_global and not any(address in network for network in NOBODYS_NETWORKS)


def findings(root: Path) -> Iterator[str]:
    for path in files_of(root):
        name = path.relative_to(root).as_posix()
        if name.startswith("cpp/third_party/") or name.endswith((".flac", ".safetensors")):
            continue
        if (size := path.stat().st_size) > HUGE_BYTES:
            yield f"{name}: error: file too large (got {size} bytes, allowed {HUGE_BYTES})"
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue
        if name != THIS:
            yield from text_findings(name, text)
        if name.startswith("cpp/") and path.suffix in {".cpp", ".hpp", ".h", ".in"}:
            yield from core_findings(name, text)


def main() -> None:
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parents[2]
    found = list(findings(root))
    print(*found, sep="\n", end="\n" if found else "")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
