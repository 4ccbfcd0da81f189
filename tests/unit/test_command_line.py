from __future__ import annotations

import argparse
import inspect
import io
import re
import sys
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import InvalidRequestError
from polymux.cli import Parser, main, parser, terminal
from polymux.cli.conversions import Item, plan
from polymux.cli.convert import limits_of
from polymux.cli.errors import ExitCode
from polymux.media.options import EncodingOptions

if TYPE_CHECKING:
    from pathlib import Path

CODES = {value for name, value in vars(ExitCode).items() if name.isupper()}


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(words)


def planned(
    *names: str,
    output: str | None = None,
    output_dir: str | None = None,
    recursive: bool = False,
    skip_existing: bool = False,
) -> list[Item]:
    return plan(
        list(names),
        output,
        output_dir=output_dir,
        recursive=recursive,
        skip_existing=skip_existing,
    )


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("in/a.wav", "in/b/c.flac", "in/b/old.mp3", "in/.hidden/x.wav", "in/.y.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_encoding_option_has_an_argument(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[dict[str, Any]] = []
    monkeypatch.setattr("polymux.cli.convert.native_options", seen.append)
    monkeypatch.setattr("polymux.cli.conversions.run_here", lambda *_: 0)
    words = (
        "convert-to-mp3 a.wav --bitrate 128k --vbr-quality 2.5 --abr --preset best "
        "--sample-rate 44100 --channels 1 --audio-stream 2 --start 0:01 --end 5 --tag title=A=B "
        "--tag artist= --cover none --id3v2-version 4 --identical-file --threads 1 --exact "
        "--verify first-seam --strict --input-limit duration_s=60.5 --input-limit streams=2"
    )
    assert main(words.split()) == main(["convert2mp3", "a.wav"]) == 0
    encoding, defaults = seen
    assert encoding == {
        "bitrate": "128k", "vbr_quality": 2.5, "abr": True, "preset": "best",
        "sample_rate": 44_100, "channels": 1, "audio_stream": 2, "start": "0:01", "end": "5",
        "tags": {"title": "A=B", "artist": ""}, "cover": "none", "id3v2_version": 4,
        "identical_file": True, "threads": 1, "exact": True, "verify": "first-seam",
        "strict": True, "limits": polymux.Limits(duration_s=60.5, streams=2),
    }  # fmt: skip
    assert set(encoding) == set(EncodingOptions.__annotations__)
    parameters = inspect.signature(polymux.convert_to_mp3).parameters
    assert defaults == {name: parameters[name].default for name in defaults}


@pytest.mark.parametrize(
    "words",
    ["", "--tag title a.wav", "--tag =x a.wav", "--tags none --tag title=x a.wav",
     "--overwrite --skip-existing a.wav", "--id3v2-version 2 a.wav", "--channels two a.wav",
     "--verify some a.wav", "--preset \x1b[31mloud a.wav", "--no-such-\x1b[31moption a.wav",
     "--input-limit streams a.wav", "-o a.mp3 --output-dir x a.wav"],
)  # fmt: skip
def test_usage_errors_end_with_2(words: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["convert-to-mp3", *words.split()])
    assert caught.value.code == ExitCode.USAGE
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "program", "meant"),
    [
        ("transcrib talk.wav", "polymux", "'transcribe'"),
        ("models pul whisper-base", "polymux models", "'pull'"),
        ("batch trnscribe in --output-dir out", "polymux batch", "'transcribe'"),
        ("--verison", "polymux", "'--version'"),
        ("generate-image x --modl y", "polymux generate-image", "'--model'"),
        ("models pull x --quite", "polymux models pull", "'--quiet'"),
        ("transcribe a.wav --format=srtt", "polymux transcribe", "'srt'"),
        ("chat one two", "polymux chat", "'two'"),
    ],
)
def test_a_misspelt_word_is_named_with_the_usage_of_its_command(
    words: str, program: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(words.split())
    assert caught.value.code == ExitCode.USAGE
    error = capsys.readouterr().err
    assert error.startswith(f"usage: {program} [")
    assert meant in error.splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "meant"),
    [
        ("models pull whisper-bas", "'whisper-base'"),
        ("models info whisper-bas", "'whisper-base'"),
        ("operations transcrib", "'transcribe'"),
        ("help models pul", "'pull'"),
    ],
)
def test_a_misspelt_name_is_suggested(
    words: str, meant: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(words.split()) != ExitCode.SUCCESS
    assert meant in capsys.readouterr().err


def test_help_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["chat"], ["models", "pull"]):
        with pytest.raises(SystemExit):
            main([*words, "--help"])
        expected = capsys.readouterr().out
        assert main(["help", *words]) == ExitCode.SUCCESS
        assert capsys.readouterr().out == expected


def test_man_pages(capsys: pytest.CaptureFixture[str]) -> None:
    main(["help", "--man", "convert-to-mp3"])
    page = capsys.readouterr().out.replace("\\-", "-")
    assert page.startswith(".TH POLYMUX-CONVERT-TO-MP3 1 ")
    macros = set(re.findall(r"^[.'](\w+)", page, re.MULTILINE))
    assert macros <= {"TH", "SH", "TP", "B", "nf", "fi"}
    assert {"EXAMPLES", "EXIT STATUS"} <= set(re.findall(r"^\.SH (.*)", page, re.MULTILINE))
    for action in parsed("convert-to-mp3", "a.wav").parser._actions:
        if action.help != argparse.SUPPRESS:
            assert all(option in page for option in action.option_strings)
    main(["help", "--man"])
    assert ".B models\n" in capsys.readouterr().out


def test_colors_of_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    class FakeTerminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    for no_color, colors in (("", True), ("1", False)):
        monkeypatch.setenv("NO_COLOR", no_color)
        monkeypatch.setenv("TERM", "xterm")
        for name, words in (("stderr", ["nonsense"]), ("stdout", ["--help"])):
            stream = FakeTerminal()
            monkeypatch.setattr(sys, name, stream)
            with pytest.raises(SystemExit):
                main(words)
            assert ("\x1b[" in stream.getvalue()) is colors


@pytest.mark.parametrize("limit", ["sterams=1", "streams=many", "duration_s=long"])
def test_limits_that_make_no_sense(limit: str) -> None:
    with pytest.raises(InvalidRequestError, match="limit"):
        limits_of(parsed("probe", "a.wav", "--input-limit", limit))


def test_help_documents_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["convert-to-mp3", "--help"], ["probe", "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 0
        assert "polymux help exit-codes" in capsys.readouterr().out
    main(["help", "exit-codes"])
    text = capsys.readouterr().out
    assert set(map(int, re.findall(r"^  (\d+) ", text, re.MULTILINE))) == CODES


def test_an_option_is_the_same_in_every_command() -> None:
    """It takes a value or not, and its short name stands for the same long one."""
    kinds: dict[str, set[str]] = {}
    takes: dict[str, set[str]] = {}

    def visit(one: Parser) -> None:
        one.fill()
        for action in one._actions:  # argparse offers no public access
            if isinstance(action, argparse._SubParsersAction):
                for other in action.choices.values():
                    visit(other)
            elif action.help != argparse.SUPPRESS and action.option_strings:
                short, long = action.option_strings[0], action.option_strings[-1]
                if short != long and len(short) == 2:
                    kinds.setdefault(short, set()).add(long)
                takes.setdefault(long, set()).add("flag" if action.nargs == 0 else "value")

    visit(parser())
    # -V is that of most programs, and that of lame.
    assert kinds.pop("-V") == {"--version", "--vbr-quality"}
    assert {short: long for short, long in kinds.items() if len(long) > 1} == {}
    # Two different checks, each the only one of its command.
    assert {long for long, one in takes.items() if len(one) > 1} == {"--verify"}


def test_the_list_of_commands_fits_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) <= 40
    assert max(map(len, lines)) <= 80


def test_no_command_shows_help_and_version_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == ExitCode.USAGE
    assert "convert-to-mp3" in capsys.readouterr().err
    assert main(["version"]) == main(["--version"]) == main(["-V"]) == ExitCode.SUCCESS
    assert capsys.readouterr().out == f"polymux {polymux.__version__}\n" * 3


@pytest.mark.parametrize(
    ("names", "output", "outputs"),
    [
        ("x/talk.mp4 song.v2.flac noise", None, "x/talk.mp3 song.v2.mp3 noise.mp3"),
        ("in/a.wav", "x.mp3", "x.mp3"),
        ("in/b/old.mp3", "x.mp3", "x.mp3"),
        ("-", None, "-"),
        ("-", "x.mp3", "x.mp3"),
        ("a.wav", "-", "-"),
        ("in/a.wav", "x", "x"),
    ],
)
def test_outputs(tree: Path, names: str, output: str | None, outputs: str) -> None:
    wanted = [Item(*pair) for pair in zip(names.split(), outputs.split(), strict=True)]
    assert planned(*names.split(), output=output) == wanted


def test_a_new_mp3_after_an_input_is_its_output(tree: Path) -> None:
    assert planned("in/a.wav", "new.mp3") == [Item("in/a.wav", "new.mp3")]
    assert planned("-", "new.mp3") == [Item("-", "new.mp3")]
    # An existing one is an input.
    first, second = planned("in/a.wav", "in/b/old.mp3")
    assert (first.output, type(second.error)) == ("in/a.mp3", polymux.OutputRefusedError)
    *_, missing = planned("in/a.wav", "in/b/c.flac", "new.mp3")
    assert isinstance(missing.error, polymux.InputNotFoundError)


@pytest.mark.parametrize(
    ("names", "folder", "outputs"),
    [
        ("in/a.wav", "in", "in/a.mp3"),
        ("in/a.wav", "new/", "new/a.mp3"),
        ("a.wav b.wav", "out", "out/a.mp3 out/b.mp3"),
        ("- a.wav", "out", "out/stdin.mp3 out/a.mp3"),
    ],
)
def test_output_directories(
    tree: Path, names: str, folder: str, outputs: str, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = [Item(*pair) for pair in zip(names.split(), outputs.split(), strict=True)]
    assert planned(*names.split(), output_dir=folder) == wanted
    assert capsys.readouterr().err == ""
    assert planned(*names.split(), output=folder) == wanted
    assert "deprecated" in capsys.readouterr().err
    assert planned("a.wav", output_dir="new") == [Item("a.wav", "new/a.mp3")]
    with pytest.raises(InvalidRequestError, match="--output-dir"):
        planned("a.wav", output_dir="in/a.wav")


@pytest.mark.parametrize(
    ("names", "output", "named"),
    [
        ("a.wav b.wav", "in/a.wav", "in/a.wav"),
        ("- -", None, "standard input"),
        ("a.wav b.wav", "-", "standard output"),
        ("in/a.wav", "x.wav", "x.mp3"),
    ],
)
def test_plans_that_make_no_sense(tree: Path, names: str, output: str | None, named: str) -> None:
    with pytest.raises(InvalidRequestError, match=named):
        planned(*names.split(), output=output)


@pytest.mark.parametrize(
    ("names", "output", "kind", "named"),
    [
        ("in/b/old.mp3", None, polymux.OutputRefusedError, "-o"),
        ("in", None, polymux.InputUnreadableError, "--recursive"),
        ("x/a.wav y/a.flac", "out/", polymux.OutputRefusedError, "(?=.*x/a.wav).*y/a.flac"),
    ],
)
def test_items_that_fail(
    tree: Path, names: str, output: str | None, kind: type[Exception], named: str
) -> None:
    *others, item = planned(*names.split(), output=output)
    assert [one.error for one in others] == [None] * len(others)
    assert isinstance(item.error, kind)
    assert re.search(named, str(item.error))


def test_folders(tree: Path) -> None:
    assert planned("in", recursive=True) == [
        Item("in/a.wav", "in/a.mp3", found=True),
        Item("in/b/c.flac", "in/b/c.mp3", found=True),
        Item("in/b/old.mp3", found=True, skipped="is_mp3"),
    ]
    assert planned("in", output_dir="out", recursive=True) == [
        Item("in/a.wav", "out/a.mp3", found=True),
        Item("in/b/c.flac", "out/b/c.mp3", found=True),
        Item("in/b/old.mp3", "out/b/old.mp3", found=True),
    ]
    # An output directory inside the input folder is not an input.
    assert [item.name for item in planned("in", output_dir="in/b", recursive=True)] == ["in/a.wav"]


def test_existing_outputs_can_be_left_alone(tree: Path) -> None:
    (tree / "in/a.mp3").write_bytes(b"")
    assert planned("in/a.wav", "in/b/c.flac", skip_existing=True) == [
        Item("in/a.wav", "in/a.mp3", skipped="exists"),
        Item("in/b/c.flac", "in/b/c.mp3"),
    ]


def test_progress_lines() -> None:
    progress = polymux.Progress(30.0, 120.0, 480_000, 0.5)
    shown = {"[######------------------]", "25%", "0:30", "2:00", "480.0", "kB", "60.0x", "0:01"}
    assert shown <= {*terminal.progress_line(progress).split()}
    silent = polymux.Progress(30.0, None, 480_000, 0.5)
    assert terminal.progress_line(silent) == "0:30  480.0 kB  60.0x"
    shown = {"[########----------------]", "31%", "1", "4", "2", "60.0x", "0:04"}
    assert shown <= {*terminal.overall_line(1, 4, [progress, silent], 60.0, 2.0).split()}


def draw(monkeypatch: pytest.MonkeyPatch, *, quiet: bool, tty: bool = True) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(sys.stderr, "isatty", lambda: tty)
        patched.setenv("COLUMNS", "40")
        screen = terminal.Screen(quiet=quiet)
        screen.draw("file \x1b]0;title\x07 " + "x" * 100)
        screen.say("done")
        screen.complain("error")


def test_drawing(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    draw(monkeypatch, quiet=False)
    line, _, rest = capsys.readouterr().err.partition("\x1b[K")
    assert line.startswith("\rfile \\x1b]0;title\\x07 xxx")
    assert len(line) == 40
    assert rest == "\r\x1b[Kdone\nerror\n"
    draw(monkeypatch, quiet=False, tty=False)
    assert capsys.readouterr().err == "done\nerror\n"
    draw(monkeypatch, quiet=True)
    assert capsys.readouterr().err == "error\n"
