"""The prose check reports each banned form in each kind of file, and accepts good text."""

import subprocess
import sys
from pathlib import Path

import pytest

CHECK = Path(__file__).resolve().parents[2] / "scripts/checks/prose.py"
#: A sentence with a banned form to a part of the advice.
BAD = {
    "What the server does with it is written to the log.": "a subject or an imperative",
    "Of several images each has another seed.": "a subject or an imperative",
    "The server uses the default, where there is one.": "if or when",
    "The name is no file.": "not, invalid, missing",
    "Items that are none raise an error.": "not, invalid, missing",
    "The server sends the request anew.": "modern word",
    "Nobody waits for the job.": "the person or program",
    "The engine has a process of its own.": "its own",
    "The client is told the reason.": "reported",
    "The file lies in the folder.": "continues",
    "The server knows no such key.": "supports",
    "The answer is 404 for a deleted job.": "status code",
    "The second door has the same keys.": "standard term",
    "Try it once; then read the log; look at the error; ask for help there.": "split",
    "The colour is part of the name.": "US spelling",
    "Return whether the job was cancelled.": "US spelling",
}
GOOD = """\
What happens if the server stops? It finishes the running jobs.

The server returns 404 if the job is missing. There is no default. The value is None if it is unset.
The color of a canceled job is gray. It is no longer in the catalog.
There is none. You are asked to agree.

| what it takes of its own |
|---|
| nobody |

Code is skipped: `nobody` and `is no file`. [Links](strangers/anew.md) have only texts.

```text
What the server is told, where it is none.
```
"""


def run_check(root: Path, *paths: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, CHECK, *paths], cwd=root, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("README.md", "# What it is\n\n{}\n"),
        ("docs/guides/a.md", "\n1. {}\n"),
        ("contract/a.toml", '\n\nname = {{ doc = "{}" }}\n'),
        ("python/polymux/a.py", '"""Summary.\n\n{}\n"""\n'),
        ("python/polymux/b.py", "import os\n\n# {}\n"),
        ("python/polymux/c.py", '\n\nraise ValueError("{}")\n'),
        ("python/polymux/d.py", '\n\nraise ValueError(f"{}")\n'),
        ("cpp/src/a.cpp", "\nint a;\n/// {}\n"),
        ("bindings/core/a.hpp", "\n\nint a;  // {}\n"),
    ],
)
def test_each_banned_form_is_found(tmp_path: Path, name: str, text: str) -> None:
    write(tmp_path, name, "".join(text.format(sentence) for sentence in BAD))
    result = run_check(tmp_path)
    assert result.returncode == 1
    lines = result.stdout.splitlines()
    for number, (sentence, advice) in enumerate(BAD.items()):
        line = number * text.format("").count("\n") + text[: text.index("{}")].count("\n") + 1
        found = [one for one in lines if one.startswith(f"{name}:{line}: {sentence} [")]
        assert any(advice in one for one in found), (sentence, lines)


def test_each_sentence_has_its_line(tmp_path: Path) -> None:
    write(tmp_path, "README.md", "The first sentence is\ngood. Nobody\nwrites so. It ends here.\n")
    found = run_check(tmp_path).stdout
    assert found == "README.md:2: Nobody writes so. [name the person or program]\n"


def test_good_text_passes(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", GOOD)
    write(
        tmp_path,
        "python/polymux/a.py",
        '"""Cancel the task.\n\nExample:\n    >>> cancelled()\n    nobody is told anew\n"""\n\n'
        "task.cancelled()  # Raises asyncio.CancelledError in `cancelled`.\n",
    )
    write(tmp_path, "cpp/src/a.cpp", "//   what(nobody, anew);\nint nobody = 404;\n")
    # Other files are not read.
    write(tmp_path, "cpp/third_party/a.cpp", "// Nobody reads it.\n")
    write(tmp_path, "tests/a.py", "# Nobody reads it.\n")
    result = run_check(tmp_path)
    assert (result.returncode, result.stdout) == (0, "")


def test_paths_limit_the_check(tmp_path: Path) -> None:
    write(tmp_path, "docs/a.md", "Nobody reads it.\n")
    write(tmp_path, "docs/b.md", "Nobody reads it.\n")
    assert run_check(tmp_path, "docs/b.md").stdout.startswith("docs/b.md:1: ")
    assert run_check(tmp_path, "docs").stdout.count("\n") == 2
    assert run_check(tmp_path, "python").returncode == 0
