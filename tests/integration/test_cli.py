"""The polymux command as a process: files, streams, folders, signals, exit codes."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.long_sound import write_long_wave
from support.mp3_frames import audio_frames, check_decodable, parse
from support.sounds import Sound

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus

PROGRAM = [sys.executable, "-W", "error", "-m", "polymux"]
HOUR_S = 3600


def polymux_command(
    *words: str | Path, cwd: Path, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, *map(str, words)], cwd=cwd, input=stdin, capture_output=True, check=False,
        timeout=120,
    )  # fmt: skip


def convert(
    *words: str | Path, cwd: Path, code: int = 0, stdin: bytes = b""
) -> subprocess.CompletedProcess[bytes]:
    done = polymux_command("convert-to-mp3", *words, cwd=cwd, stdin=stdin)
    assert done.returncode == code, done.stderr.decode()
    assert b"Traceback" not in done.stderr
    return done


def json_lines(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def content(corpus: Corpus) -> bytes:
    return corpus.wave(Sound(samples=22_050)).read_bytes()


@pytest.fixture
def folder(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "clip.wav").write_bytes(content)
    return tmp_path


@pytest.fixture(scope="module")
def long_wave(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long_wave(tmp_path_factory.mktemp("long") / "long.wav", 4 * HOUR_S)


def test_one_file_next_to_the_input(folder: Path) -> None:
    done = convert("clip.wav", cwd=folder)
    assert names_in(folder) == ["clip.mp3", "clip.wav"]
    check_decodable(parse(folder / "clip.mp3"))
    assert done.stdout == b""
    assert re.fullmatch(rb"clip\.wav -> clip\.mp3  \(0:00, [\d.]+ kB, [\d.]+x\)\n", done.stderr)


def test_the_short_name_and_options(folder: Path, content: bytes) -> None:
    done = polymux_command(
        "convert2mp3", "clip.wav", "-o", "x.mp3", "--bitrate", "96k", "--channels", "1",
        "--tag", "title=From the command line", "--id3v2-version", "4", "--quiet", cwd=folder,
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    expected = polymux.convert_to_mp3(content, bitrate="96k", channels=1).read()
    assert audio_frames(folder / "x.mp3") == audio_frames(expected)
    assert polymux.probe(folder / "x.mp3").tags["title"] == "From the command line"


def test_an_existing_output_is_kept_unless_told_otherwise(folder: Path) -> None:
    (folder / "clip.mp3").write_bytes(b"old")
    done = convert("clip.wav", cwd=folder, code=1)
    assert b"--overwrite" in done.stderr
    convert("clip.wav", "--skip-existing", cwd=folder)
    assert (folder / "clip.mp3").read_bytes() == b"old"
    convert("clip.wav", "--overwrite", cwd=folder)
    check_decodable(parse(folder / "clip.mp3"))


def test_streams(folder: Path, content: bytes) -> None:
    expected = polymux.convert_to_mp3(content, bitrate="128k").read()
    done = convert("-", "-b", "128k", cwd=folder, stdin=content)
    assert audio_frames(done.stdout) == audio_frames(expected)
    convert("-", "-b", "128k", "-o", "from-stdin.mp3", cwd=folder, stdin=content)
    assert audio_frames(folder / "from-stdin.mp3") == audio_frames(expected)
    done = convert("clip.wav", "-b", "128k", "-o", "-", cwd=folder)
    assert audio_frames(done.stdout) == audio_frames(expected)
    with (folder / "clip.wav").open("rb") as file:
        redirected = subprocess.run(
            [*PROGRAM, "convert-to-mp3", "-b", "128k", "-"],
            stdin=file, capture_output=True, check=True, timeout=60,
        )  # fmt: skip
    assert audio_frames(redirected.stdout) == audio_frames(expected)


def test_an_mp3_is_never_mixed_with_json(folder: Path) -> None:
    done = convert("clip.wav", "-o", "-", "--json", cwd=folder, code=2)
    assert b"standard output" in done.stderr
    assert done.stdout == b""


def test_exact_and_verify(corpus: Corpus, tmp_path: Path) -> None:
    wave = corpus.wave(Sound(samples=20 * 44_100))
    for words, has_seams in (("--exact", False), ("--verify all --threads 2", True)):
        options = ["-V", "2", "--overwrite", *words.split()]
        done = convert(wave, "-o", "out.mp3", "--json", *options, cwd=tmp_path)
        report = json_lines(done.stdout)[0]["report"]
        assert (report["seams"] > 0) == has_seams, words
        assert report["parted_frames"] == 0


def test_json_lines(folder: Path) -> None:
    (folder / "noise.wav").write_bytes(b"no media at all" * 100)
    done = convert("clip.wav", "noise.wav", "missing.wav", "--json", cwd=folder, code=1)
    assert done.stderr == b""
    *lines, summary = json_lines(done.stdout)
    by_input = {line["input"]: line for line in lines}
    converted = by_input["clip.wav"]
    assert converted["status"] == "converted"
    assert converted["output"] == "clip.mp3"
    assert converted["report"]["bytes"] == (folder / "clip.mp3").stat().st_size
    for name in ("seams", "absorbed_segments", "bumped_frames", "repairs", "inexact_frames",
                 "parted_frames"):  # fmt: skip
        assert converted["report"][name] == 0
    assert converted["report"]["sequential_fallback"] is False
    assert by_input["noise.wav"]["status"] == by_input["missing.wav"]["status"] == "failed"
    assert by_input["missing.wav"]["error"]["code"] == "input_not_found"
    del summary["elapsed_s"]
    assert summary == {"status": "summary", "converted": 1, "failed": 2, "skipped": 0}


def test_folders(folder: Path, content: bytes) -> None:
    for name in ("in/a.wav", "in/deep/b.wav", "in/c.jpg", "in/deep/notes.txt"):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if name.endswith("wav") else b"plain text, long enough" * 50)
    (folder / "in/only-text").mkdir()
    (folder / "in/only-text/readme").write_bytes(b"nothing to hear")
    done = convert("-r", "in", "-o", "out", cwd=folder)
    assert names_in(folder / "out") == ["a.mp3", "deep", "deep/b.mp3"]
    assert b"2 converted, 0 failed, 3 skipped" in done.stderr
    assert b"notes.txt" not in done.stderr
    again = convert("-r", "in", "-o", "out", "--skip-existing", "--json", cwd=folder)
    reasons = sorted(line["reason"] for line in json_lines(again.stdout)[:-1])
    assert reasons == ["exists", "exists", "not_media", "not_media", "not_media"]
    convert("in", cwd=folder, code=1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["clip.wav", "--bitrate", "1"], b"bitrate"),
        (["clip.wav", "--bitrate", "loud"], b"loud"),
        (["clip.wav", "--start", "soon"], b"start"),
        (["clip.wav", "--limit", "sterams=1"], b"sterams"),
        (["clip.wav", "--jobs", "0"], b"concurrency"),
        (["-", "-"], b"once"),
    ],
)
def test_wrong_options_end_with_2(folder: Path, words: list[str], said: bytes) -> None:
    done = convert(*words, cwd=folder, code=2)
    assert said in done.stderr
    assert names_in(folder) == ["clip.wav"]


@pytest.mark.parametrize("name", ["-x.wav", "file:x.wav", "concat:x.wav", "%03d.wav", "*.wav"])
def test_names_are_plain_names(folder: Path, content: bytes, name: str) -> None:
    (folder / name).write_bytes(content)
    convert("--", name, cwd=folder)
    check_decodable(parse(folder / name.replace(".wav", ".mp3")))


def test_control_characters_are_never_shown_raw(folder: Path, content: bytes) -> None:
    name = "a\x1b[31mred\x07\n.wav"
    (folder / name).write_bytes(content)
    (folder / f"broken{name}").write_bytes(b"no media" * 100)
    done = convert(name, f"broken{name}", f"missing{name}", cwd=folder, code=1)
    shown = done.stderr + polymux_command("probe", name, cwd=folder).stdout
    assert b"\x1b" not in shown
    assert b"\x07" not in shown
    assert b"\\x1b[31mred" in shown


def test_a_name_that_is_not_utf8(folder: Path, content: bytes) -> None:
    name = os.fsdecode(b"caf\xe9.wav")
    (folder / name).write_bytes(content)
    done = convert(name, "--json", cwd=folder)
    assert json_lines(done.stdout)[0]["input"] == name
    assert (folder / os.fsdecode(b"caf\xe9.mp3")).is_file()


def test_the_reader_of_standard_output_goes_away(tmp_path: Path) -> None:
    """The MP3 is larger than what a pipe holds, so the writer meets the closed end."""
    minutes = write_long_wave(tmp_path / "minutes.wav", 600)
    command = " ".join([*PROGRAM, "convert-to-mp3", "-b", "128k", "-o", "-", str(minutes)])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -c 1000 | wc -c; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == [b"1000", b"1"]
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


def test_standard_output_is_full(folder: Path) -> None:
    converting = ["convert-to-mp3", "clip.wav", "-o", "-"]
    for words in (["probe", "clip.wav"], converting, ["--help"], ["chat", "--help"]):
        with open("/dev/full", "wb") as full:  # noqa: PTH123
            done = subprocess.run(
                [*PROGRAM, *words],
                cwd=folder, stdout=full, stderr=subprocess.PIPE, check=False, timeout=60,
            )  # fmt: skip
        assert done.returncode == 1
        assert b"No space left" in done.stderr
        assert b"Traceback" not in done.stderr
        assert b"Exception ignored" not in done.stderr


def test_closed_streams(folder: Path) -> None:
    command = " ".join([*PROGRAM, "convert-to-mp3", "clip.wav"])
    done = subprocess.run(
        ["bash", "-c", f"{command} <&- >&- 2>&-"], cwd=folder, check=False, timeout=60
    )
    assert done.returncode == 0
    check_decodable(parse(folder / "clip.mp3"))


def started(*words: str | Path, cwd: Path, **options: Any) -> subprocess.Popen[bytes]:
    """The command while it converts: its temporary output file is there."""
    process = subprocess.Popen(
        [*PROGRAM, "convert-to-mp3", *map(str, words)],
        cwd=cwd, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **options,
    )  # fmt: skip
    deadline = time.monotonic() + 30
    while not list(cwd.glob(".*.part")):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return process


@pytest.mark.parametrize(
    ("number", "code", "said"),
    [(signal.SIGINT, 130, b"interrupted"), (signal.SIGTERM, 143, b"terminated")],
)
@pytest.mark.parametrize("files", [1, 3])
def test_signals_leave_nothing(
    long_wave: Path, tmp_path: Path, number: signal.Signals, code: int, said: bytes, files: int
) -> None:
    copies = []
    for index in range(files):
        (tmp_path / f"{index}.wav").symlink_to(long_wave)
        copies.append(f"{index}.wav")
    process = started(*copies, cwd=tmp_path)
    began = time.monotonic()
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == code, errors
    assert time.monotonic() - began < 2
    assert said in errors
    assert b"Traceback" not in errors
    assert names_in(tmp_path) == copies


def test_control_c_while_waiting_for_standard_input(tmp_path: Path) -> None:
    process = started("-", "-o", "a.mp3", cwd=tmp_path, stdin=subprocess.PIPE)
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.wait(timeout=30) == 130
    assert time.monotonic() - began < 2
    process.communicate()
    assert names_in(tmp_path) == []


def test_control_c_while_nobody_reads_standard_output(long_wave: Path, tmp_path: Path) -> None:
    process = subprocess.Popen(
        [*PROGRAM, "convert-to-mp3", "-b", "320k", "--identical-file", "-o", "-", long_wave],
        cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.read(10)
    time.sleep(1)  # The pipe is full by now, and the encoder waits in its write.
    process.send_signal(signal.SIGINT)
    began = time.monotonic()
    assert process.wait(timeout=30) == 130
    assert time.monotonic() - began < 2
    _, errors = process.communicate()
    assert errors == b"polymux: interrupted\n"


def drawn(*words: str | Path, cwd: Path, seconds: float) -> str:
    """What the command draws on a terminal in its first seconds; then it is interrupted."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*PROGRAM, "convert-to-mp3", *map(str, words)],
        cwd=cwd, stdin=theirs, stdout=theirs, stderr=theirs,
        env=os.environ | {"COLUMNS": "100", "TERM": "xterm"},
    )  # fmt: skip
    os.close(theirs)
    text = b""
    deadline = time.monotonic() + seconds
    with suppress(OSError):  # As a terminal reports that the other end was closed.
        while time.monotonic() < deadline:
            if select.select([ours], [], [], 0.05)[0]:
                text += os.read(ours, 65_536)
    process.send_signal(signal.SIGINT)
    process.wait(timeout=30)
    os.close(ours)
    return text.decode()


def test_progress_on_a_terminal(long_wave: Path, tmp_path: Path) -> None:
    text = drawn(long_wave, "-o", tmp_path / "a.mp3", cwd=tmp_path, seconds=3)
    assert re.search(r"\r\[[#-]{24}\] +\d+%  \d+:\d\d of 4:00:00  [\d.]+ [kM]B  [\d.]+x  ", text)
    several = drawn(long_wave, long_wave, "-o", tmp_path / "out", cwd=tmp_path, seconds=3)
    assert re.search(r"\r\[[#-]{24}\] +\d+%  \d of 2 files  \d running  [\d.]+x", several)


def test_an_mp3_is_not_written_to_a_terminal(folder: Path) -> None:
    text = drawn("clip.wav", "-o", "-", cwd=folder, seconds=30)
    assert "not written to a terminal" in text


def test_probe(folder: Path, corpus: Corpus) -> None:
    path = corpus.path("mkv_video")
    done = polymux_command("probe", path, cwd=folder)
    assert done.returncode == 0
    assert re.search(rb"stream 1 +audio, aac, 44100 Hz, stereo.*<- converted", done.stdout)
    done = polymux_command("probe", path, "missing.wav", "--json", cwd=folder)
    assert done.returncode == 1
    found, missing = json_lines(done.stdout)
    assert found["info"] == polymux.probe(path).to_dict()
    assert missing["error"]["code"] == "input_not_found"
    piped = polymux_command(
        "probe", "-", "--json", cwd=folder, stdin=(folder / "clip.wav").read_bytes()
    )
    assert json_lines(piped.stdout)[0]["info"]["container"] == "wav"


def test_doctor(folder: Path) -> None:
    done = polymux_command("doctor", cwd=folder)
    assert done.returncode == 0, done.stderr
    assert b"FFmpeg" in done.stdout
    assert b"LAME 3.1" in done.stdout
    found = json.loads(polymux_command("doctor", "--json", cwd=folder).stdout)
    assert found["polymux"] == polymux.__version__
    assert found["media"]["ok"] is True
    assert found["media"]["cores"] >= 1
    assert found["ffmpeg_program"]["version"]
