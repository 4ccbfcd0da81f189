"""Run every fenced example of README and docs on real media, each in its own folder.

- `python` runs as a script.
- `console` runs the lines that begin with "$ ". A server among them runs until it serves. Commands
  of scripts/ are not run, but must exist and support the options shown.
- `output` directly after a `python` or `console` block is what that block prints on standard output
  and standard error together. `...` within a line stands for any text, a line of only `...` for any
  lines. Spaces at the ends of lines and empty lines at the end do not count.
- `cpp` is compiled against the installed library.
- `toml` is checked as a server's settings; test_text_blocks.py checks `text`.

Any other language fails, and so does a block with nothing to run. A file that an example names with
.mp3, or passes to `save`, must exist after the run. The environment names a server that the tests
start; examples of OpenAI and Replicate get a polymux server.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pytest
from servers import media as server_media
from servers.reference import ReferenceServer
from support import generated_songs, programs
from support.commands import environment
from support.native_build import ROOT, installed_prefix, run
from support.server_process import ServerProcess
from support.warm_python import WarmPython

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "CHANGELOG.md")),
    *sorted((ROOT / "docs").glob("**/*.md")),
    *(ROOT / name for name in ("benchmarks/README.md", "contract/README.md")),
]
RUN_LANGUAGES = {"python", "console", "cpp"}
#: Languages whose examples may be followed by an `output` block.
PRINTING = {"python", "console"}
MADE_NOTHING: set[str] = set()  # Commands of consoles that have run, and left no file.
#: The command, in a process that has it loaded.
COMMAND = "import sys, polymux.cli\nsys.exit(polymux.cli.main({!r}))"
CHECK = COMMAND.format(["config", "check", "polymux.toml"])
#: What a shell does something with: such commands are handed to one.
SHELL = frozenset("$|&;<>`")
FENCE = re.compile(r"^```(\S*)[^\n]*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
MADE_FILE = re.compile(r"[\w./-]+\.mp3\b|(?<=save\(\")[\w./-]+(?=\")")


@dataclass(frozen=True)
class Example:
    page: str
    line: int
    language: str
    text: str
    #: What the block prints, if an `output` block says it.
    output: str | None = None

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def examples_in(page: str, text: str) -> list[Example]:
    """Return the blocks of a page; `output` blocks belong to the example directly before them."""
    found: list[Example] = []
    end = 0
    for match in FENCE.finditer(text):
        follows = bool(found) and not text[end : match.start()].strip()
        end = match.end()
        language, content = match.groups()
        prints = follows and found[-1].language in PRINTING and found[-1].output is None
        if language == "output" and prints:
            found[-1] = replace(found[-1], output=content)
            continue
        line = text.count("\n", 0, match.start()) + 1
        found.append(Example(page, line, language, content))
    return found


ALL = [
    example
    for page in PAGES
    for example in examples_in(page.relative_to(ROOT).as_posix(), page.read_text(encoding="utf-8"))
]


def lines_of(text: str) -> list[str]:
    """Return lines without spaces at their ends and without empty lines at the end."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def is_output(expected: str, printed: str) -> bool:
    """Compare an `output` block with what an example printed."""
    pattern = ""
    for line in lines_of(expected):
        if line.strip() == "...":
            pattern += "(?:.*\n)*?"
        else:
            pattern += ".*?".join(map(re.escape, line.split("..."))) + "\n"
    return re.fullmatch(pattern, "\n".join(lines_of(printed)) + "\n") is not None


@pytest.fixture(scope="module")
def media(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The files that examples speak of."""
    folder = tmp_path_factory.mktemp("media")
    sine = ("-f", "lavfi", "-i", "sine=frequency=330:duration=3")
    picture = ("-f", "lavfi", "-i", "testsrc2=size=160x120:rate=10:duration=3")
    programs.ffmpeg(*picture, *sine, "-c:v", "mpeg4", "-c:a", "aac", folder / "talk.mp4")
    programs.ffmpeg(*sine, "-metadata", "title=Song", folder / "song.flac")
    generated_songs.song(folder / "music/danube.flac", 4, title="Blue Danube", artist="Strauss")
    generated_songs.song(folder / "music/radetzky.mp3", 5, title="Radetzky March")
    generated_songs.snippet(folder, 4).rename(folder / "snippet.wav")
    for name in ("recordings/one.wav", "recordings/two.ogg", "recordings/more/three.m4a"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        programs.ffmpeg(*sine, folder / name)
    (folder / "letter.png").write_bytes(server_media.png(16, 16))
    shutil.copytree(ROOT / "deploy", folder / "deploy")
    (folder / "recordings/broken.wav").write_bytes(b"this is no audio at all")
    (folder / "page.png").write_bytes(server_media.png(640, 480))
    return folder


@pytest.fixture(scope="module")
def server() -> Iterator[ReferenceServer]:
    """Where examples of the client lead; its jobs take a moment."""
    with ReferenceServer() as made:
        made.predictions.job_s = 0.2
        yield made


@pytest.fixture
def folder(
    media: Path, server: ReferenceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    monkeypatch.setenv("POLYMUX_BASE_URL", server.url)
    monkeypatch.setenv("POLYMUX_API_KEY", server.token)
    monkeypatch.setenv("POLYMUX_CONFIG", os.devnull)
    monkeypatch.setenv("XDG_STATE_HOME", os.fspath(tmp_path / "work/state"))
    return shutil.copytree(media, tmp_path / "work")


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("served")) as made:
        yield made


@pytest.fixture
def compat_environment(served: ServerProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the packages openai and replicate ask."""
    monkeypatch.setenv("OPENAI_BASE_URL", f"{served.url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", served.key)
    monkeypatch.setenv("REPLICATE_BASE_URL", f"{served.url}/replicate")
    monkeypatch.setenv("REPLICATE_API_TOKEN", served.key)


@pytest.fixture(scope="module")
def python() -> Iterator[WarmPython]:
    with WarmPython() as made:
        yield made


def run_script_check(command: str) -> None:
    """A script of this repository: it exists, is executable, and speaks of each option used."""
    script, *arguments = shlex.split(command, comments=True)
    path = ROOT / script
    assert os.access(path, os.X_OK), f"{script} is no executable of this repository"
    text = path.read_text()
    if script == "scripts/bench":
        # It hands its options to the benchmark of that name.
        of_its_own = sorted((ROOT / "benchmarks" / arguments[0]).glob("**/*.py"))
        assert of_its_own, f"there is no benchmark {arguments[0]}"
        common = sorted((ROOT / "benchmarks").glob("*.py"))
        text = "".join(one.read_text() for one in (*of_its_own, *common))
    options = [word for word in arguments if word.startswith("-")]
    unknown = [option for option in options if option.split("=")[0] not in text]
    assert not unknown, f"{script} does not know {unknown}"


def run_console(example: Example, folder: Path, server: ReferenceServer, python: WarmPython) -> str:
    """Run the commands of a console block and return what they print.

    A command that has run before and made no file is not run again, unless its output is compared.
    """
    commands = [line[2:] for line in example.text.splitlines() if line.startswith("$ ")]
    assert commands, f"{example}: no line begins with '$ '"
    printed = ""
    path = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"  # noqa: PTH120
    variables = environment(folder, server, PATH=path, NO_COLOR="1")
    for command in commands:
        if command in MADE_NOTHING and example.output is None:
            continue
        if command.startswith("scripts/"):
            assert example.output is None, f"{example}: scripts are not run, so print nothing here"
            run_script_check(command)
            continue
        if command.startswith("polymux serve"):
            printed += run_server(command, folder, variables)
            MADE_NOTHING.add(command)
            continue
        before = made_by_now(folder)
        if command.startswith("polymux ") and not SHELL.intersection(command):
            code = COMMAND.format(shlex.split(command, comments=True)[1:])
            printed += python.run(code, folder, folder.parent / "output", variables)
        else:
            done = subprocess.run(
                ["bash", "-euo", "pipefail", "-c", command], cwd=folder,
                env=variables | {"PYTHONUNBUFFERED": "1"}, timeout=300,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, f"$ {command}\n{done.stdout}"
            printed += done.stdout
        if made_by_now(folder) == before:
            MADE_NOTHING.add(command)
    return printed


def made_by_now(folder: Path) -> set[Path]:
    """Files that a reader would look for: not what a program keeps for itself."""
    return {one for one in folder.rglob("*") if folder / "state" not in (one, *one.parents)}


def run_server(command: str, folder: Path, variables: dict[str, str]) -> str:
    """Start a server on a free port, stop it when it serves, and return what it reported."""
    words = [*shlex.split(command), "--port", "0"]
    with subprocess.Popen(
        words, cwd=folder, env=variables, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        output = ""
        for line in process.stderr:
            output += line
            if "Ctrl-C" in line:
                break
        process.terminate()
        output += process.stderr.read()
        assert process.wait(20) == 0, output
    return output


def run_cpp(text: str, folder: Path) -> None:
    (folder / "main.cpp").write_text(text)
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.24)\nproject(example LANGUAGES CXX)\n"
        "find_package(polymux REQUIRED)\nadd_executable(example main.cpp)\n"
        "target_link_libraries(example PRIVATE polymux::media)\n"
    )
    prefix = installed_prefix()
    run("cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja",
        f"-DCMAKE_PREFIX_PATH={prefix}")  # fmt: skip
    run("cmake", "--build", folder / "build")
    run(folder / "build/example", cwd=folder)


def run_example(
    example: Example, folder: Path, server: ReferenceServer, python: WarmPython
) -> None:
    printed = ""
    if example.language == "python":
        printed = python.run(example.text, folder, folder.parent / "output")
    elif example.language == "console":
        printed = run_console(example, folder, server, python)
    elif example.language == "cpp":
        run_cpp(example.text, folder)
    elif example.language == "toml":
        (folder / "polymux.toml").write_text(example.text)
        python.run(CHECK, folder, folder.parent / "output")
    elif example.language == "output":
        raise AssertionError(f"{example}: no python or console example is directly before it")
    else:
        raise AssertionError(
            f"{example}: unknown language {example.language!r}; "
            "use python, console, output, cpp, toml or text"
        )
    if example.output is not None:
        differs = f"{example}: expected\n{example.output}\nbut it printed\n{printed}"
        assert is_output(example.output, printed), differs
    promised = {name.lstrip("./") for name in MADE_FILE.findall(example.text)}
    if not example.text.lstrip().startswith("$ scripts/"):
        missing = [name for name in sorted(promised) if not (folder / name).is_file()]
        assert not missing, f"{example} does not make {missing}"


@pytest.mark.parametrize("example", [each for each in ALL if each.language != "text"], ids=str)
def test_example_runs(
    example: Example,
    folder: Path,
    server: ReferenceServer,
    python: WarmPython,
    request: pytest.FixtureRequest,
) -> None:
    if re.search("openai|import replicate|REPLICATE_", example.text, re.IGNORECASE):
        request.getfixturevalue("compat_environment")
    run_example(example, folder, server, python)


@pytest.mark.parametrize(
    ("expected", "printed", "same"),
    [
        ("one\ntwo\n", "one\ntwo\n", True),
        ("one  \n", "one\n\n", True),
        ("one\n", "two\n", False),
        ("one\n", "one\ntwo\n", False),
        ("one\ntwo\n", "one\n", False),
        ("a.c\n", "abc\n", False),
        ("took ... s at http://...\n", "took 0.25 s at http://127.0.0.1:1\n", True),
        ("took ... s\n", "took 0.25\ns\n", False),
        ("a\n...\nz\n", "a\nb\nc\nz\n", True),
        ("a\n...\nz\n", "a\nz\n", True),
        ("a\n...\nz\n", "a\nb\n", False),
        ("", "one\n", False),
    ],
)
def test_compare_output(expected: str, printed: str, same: bool) -> None:
    assert is_output(expected, printed) == same


def test_wrong_output_fails(folder: Path, server: ReferenceServer, python: WarmPython) -> None:
    python_block = "```python\nprint('right')\n```\n\n"
    console_block = "```console\n$ echo right\n$ echo right\n```\n"
    for block, right in ((python_block, "right\n"), (console_block, "right\nright\n")):
        for text in (right, "wrong\n"):
            (example,) = examples_in("page.md", f"{block}```output\n{text}```\n")
            if text == right:
                run_example(example, folder, server, python)
                continue
            with pytest.raises(AssertionError, match="but it printed"):
                run_example(example, folder, server, python)


@pytest.mark.parametrize(
    "before",
    ["", "```text\na\n```\n", "```python\nprint()\n```\nIt prints:\n\n"],
    ids=["nothing", "text", "text between"],
)
def test_output_without_an_example_fails(
    before: str, folder: Path, server: ReferenceServer, python: WarmPython
) -> None:
    *_, example = examples_in("page.md", f"{before}```output\na\n```\n")
    with pytest.raises(AssertionError, match="no python or console example"):
        run_example(example, folder, server, python)


def test_readme_shows_every_use() -> None:
    """README has an example of each language; were the search for fences broken, none would run."""
    shown = {example.language for example in ALL if example.page == "README.md"}
    assert shown >= RUN_LANGUAGES


def test_every_relative_link_leads_somewhere() -> None:
    links = [
        (page, target)
        for page in [*PAGES, ROOT / "THIRD_PARTY.md"]
        for target in re.findall(r"\]\(([^)#\s]+)[^)]*\)", page.read_text(encoding="utf-8"))
        if "://" not in target
    ]
    broken = [(page.name, target) for page, target in links if not (page.parent / target).exists()]
    assert not broken
