"""The command line as text: words in, plans and lines out."""

from __future__ import annotations

import inspect
import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import InvalidRequestError
from polymux.cli import exit_codes, limits, main, parser, terminal
from polymux.cli.conversion_plan import Item, plan
from polymux.cli.convert import _encoding
from polymux.media.options import EncodingOptions

if TYPE_CHECKING:
    import argparse


def parsed(*words: str) -> argparse.Namespace:
    return parser().parse_args(words)


def planned(
    *names: str, output: str | None = None, recursive: bool = False, skip_existing: bool = False
) -> list[Item]:
    return plan(list(names), output, recursive=recursive, skip_existing=skip_existing)


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("in/a.wav", "in/b/c.flac", "in/b/old.mp3", "in/.hidden/x.wav", "in/.y.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_every_encoding_option_has_an_argument() -> None:
    encoding = _encoding(
        parsed(
            "convert-to-mp3", "a.wav", "--bitrate", "128k", "--vbr-quality", "2.5", "--abr",
            "--preset", "best", "--sample-rate", "44100", "--channels", "1", "--audio-stream", "2",
            "--start", "0:01", "--end", "5", "--tag", "title=A=B", "--tag", "artist=",
            "--cover", "none", "--id3v2-version", "4", "--identical-file", "--threads", "1",
            "--exact", "--verify", "first-seam", "--strict", "--limit", "duration_s=60.5",
            "--limit", "streams=2",
        )
    )  # fmt: skip
    assert encoding == {
        "bitrate": "128k", "vbr_quality": 2.5, "abr": True, "preset": "best",
        "sample_rate": 44_100, "channels": 1, "audio_stream": 2, "start": "0:01", "end": "5",
        "tags": {"title": "A=B", "artist": ""}, "cover": "none", "id3v2_version": 4,
        "identical_file": True, "threads": 1, "exact": True, "verify": "first-seam",
        "strict": True,
        "limits": polymux.Limits(duration_s=60.5, streams=2),
    }  # fmt: skip
    assert set(encoding) == set(EncodingOptions.__annotations__)


def test_defaults_are_those_of_the_function() -> None:
    parameters = inspect.signature(polymux.convert_to_mp3).parameters
    encoding = _encoding(parsed("convert2mp3", "a.wav"))
    assert encoding == {name: parameters[name].default for name in encoding}


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["--tag", "title", "a.wav"],
        ["--tag", "=x", "a.wav"],
        ["--tags", "none", "--tag", "title=x", "a.wav"],
        ["--overwrite", "--skip-existing", "a.wav"],
        ["--id3v2-version", "2", "a.wav"],
        ["--channels", "two", "a.wav"],
        ["--verify", "some", "a.wav"],
        ["--preset", "\x1b[31mloud", "a.wav"],
        ["--no-such-\x1b[31moption", "a.wav"],
        ["--limit", "streams", "a.wav"],
    ],
)
def test_usage_errors_end_with_2(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["convert-to-mp3", *words])
    assert caught.value.code == exit_codes.USAGE
    assert "\x1b" not in capsys.readouterr().err


@pytest.mark.parametrize("limit", ["sterams=1", "streams=many", "duration_s=long"])
def test_limits_that_make_no_sense(limit: str) -> None:
    with pytest.raises(InvalidRequestError, match="limit"):
        limits.from_arguments(parsed("probe", "a.wav", "--limit", limit))


def test_help_documents_every_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--help"], ["convert-to-mp3", "--help"], ["probe", "--help"]):
        with pytest.raises(SystemExit) as caught:
            main(words)
        assert caught.value.code == 0
        text = capsys.readouterr().out
        codes = {value for name, value in vars(exit_codes).items() if isinstance(value, int)}
        assert codes <= set(map(int, re.findall(r"^  (\d+) ", text, re.MULTILINE)))


def test_the_table_of_exit_codes_is_written_once() -> None:
    """docs/commands.md has the rows of every command's help."""
    page = (Path(__file__).resolve().parents[2] / "docs/commands.md").read_text()
    rows = re.findall(r"^\| (\d+) \| (.*) \|$", page, re.MULTILINE)
    shown = re.findall(r"^  (\d+) +(.*)$", exit_codes.EPILOG, re.MULTILINE)
    assert [(code, text.replace("`", "'")) for code, text in rows] == shown
    assert len(rows) == sum(isinstance(value, int) for value in vars(exit_codes).values())


def test_no_command_shows_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == exit_codes.USAGE
    assert "convert-to-mp3" in capsys.readouterr().err


def test_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["version"]) == main(["--version"]) == exit_codes.SUCCESS
    assert capsys.readouterr().out == f"polymux {polymux.__version__}\n" * 2


def test_output_stands_next_to_the_input() -> None:
    assert planned("x/talk.mp4", "song.v2.flac", "noise") == [
        Item("x/talk.mp4", "x/talk.mp3"),
        Item("song.v2.flac", "song.v2.mp3"),
        Item("noise", "noise.mp3"),
    ]


def test_output_for_one_file(tree: Path) -> None:
    assert planned("in/a.wav", output="x.mp3") == [Item("in/a.wav", "x.mp3")]
    assert planned("in/a.wav", output="in") == [Item("in/a.wav", "in/a.mp3")]
    assert planned("in/a.wav", output="new/") == [Item("in/a.wav", "new/a.mp3")]
    assert planned("in/b/old.mp3", output="x.mp3") == [Item("in/b/old.mp3", "x.mp3")]


def test_several_files_need_a_folder(tree: Path) -> None:
    assert planned("a.wav", "b.wav", output="out") == [
        Item("a.wav", "out/a.mp3"),
        Item("b.wav", "out/b.mp3"),
    ]
    with pytest.raises(InvalidRequestError, match="folder"):
        planned("a.wav", "b.wav", output="in/a.wav")


def test_an_mp3_needs_an_output() -> None:
    (item,) = planned("talk.MP3")
    assert isinstance(item.error, polymux.OutputRefusedError)
    assert "-o" in str(item.error)


def test_streams() -> None:
    assert planned("-") == [Item("-", "-")]
    assert planned("-", output="x.mp3") == [Item("-", "x.mp3")]
    assert planned("a.wav", output="-") == [Item("a.wav", "-")]
    assert planned("-", "a.wav", output="out")[0] == Item("-", "out/stdin.mp3")
    with pytest.raises(InvalidRequestError, match="once"):
        planned("-", "-")
    with pytest.raises(InvalidRequestError, match="one file"):
        planned("a.wav", "b.wav", output="-")


def test_folders(tree: Path) -> None:
    (item,) = planned("in")
    assert isinstance(item.error, polymux.InputUnreadableError)
    assert "--recursive" in str(item.error)
    assert planned("in", recursive=True) == [
        Item("in/a.wav", "in/a.mp3", found=True),
        Item("in/b/c.flac", "in/b/c.mp3", found=True),
        Item("in/b/old.mp3", found=True, skipped="is_mp3"),
    ]
    assert planned("in", output="out", recursive=True) == [
        Item("in/a.wav", "out/a.mp3", found=True),
        Item("in/b/c.flac", "out/b/c.mp3", found=True),
        Item("in/b/old.mp3", "out/b/old.mp3", found=True),
    ]


def test_an_output_folder_inside_is_no_input(tree: Path) -> None:
    assert [item.name for item in planned("in", output="in/b", recursive=True)] == ["in/a.wav"]


def test_two_inputs_with_one_output(tree: Path) -> None:
    first, second = planned("x/a.wav", "y/a.flac", output="out")
    assert first.error is None
    assert isinstance(second.error, polymux.OutputRefusedError)
    assert "x/a.wav" in str(second.error)
    assert "y/a.flac" in str(second.error)


def test_existing_outputs_can_be_left_alone(tree: Path) -> None:
    (tree / "in/a.mp3").write_bytes(b"")
    assert planned("in/a.wav", skip_existing=True) == [
        Item("in/a.wav", "in/a.mp3", skipped="exists")
    ]
    assert planned("in/b/c.flac", skip_existing=True) == [Item("in/b/c.flac", "in/b/c.mp3")]


def test_progress_lines() -> None:
    progress = polymux.Progress(30.0, 120.0, 480_000, 0.5)
    assert terminal.progress_line(progress) == (
        "[######------------------]  25%  0:30 of 2:00  480.0 kB  60.0x  0:01 left"
    )
    silent = polymux.Progress(30.0, None, 480_000, 0.5)
    assert terminal.progress_line(silent) == "0:30  480.0 kB  60.0x"
    assert terminal.overall_line(1, 4, [progress, silent], 60.0, 2.0) == (
        "[########----------------]  31%  1 of 4 files  2 running  60.0x  0:04 left"
    )


class Terminal:
    """Standard error as a terminal, remembering what was written."""

    def __init__(self) -> None:
        self.written = ""

    def isatty(self) -> bool:
        return True

    def write(self, text: str) -> None:
        self.written += text

    def flush(self) -> None:
        pass


def test_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    monkeypatch.setenv("COLUMNS", "40")
    screen = terminal.Screen()
    screen.draw("file \x1b]0;title\x07 " + "x" * 100)
    screen.say("done")
    line, _, rest = shown.written.partition("\x1b[K")
    assert line.startswith("\rfile \\x1b]0;title\\x07 xxx")
    assert len(line) == 40
    assert rest == "\r\x1b[Kdone\n"


def test_nothing_is_drawn_when_piped_or_quiet(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    piped = terminal.Screen()
    piped.draw("progress")
    piped.say("line")
    assert capsys.readouterr().err == "line\n"
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    quiet = terminal.Screen(quiet=True)
    quiet.draw("progress")
    quiet.say("line")
    quiet.complain("error")
    assert shown.written == "error\n"
