"""`polymux convert-to-mp3`: streams, folders, signals and exit codes."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.commands import PROGRAM, Terminal, call, run
from support.long_sound import write_long_wave
from support.mp3_frames import audio_frames, check_decodable, parse

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus


def convert(*words: str | Path, **options: Any) -> subprocess.CompletedProcess[bytes]:
    return call("convert-to-mp3", *words, **options)


def json_lines(output: bytes) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.splitlines()]


def names_in(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.fixture
def content(clip: Path) -> bytes:
    return clip.read_bytes()


@pytest.fixture
def folder(tmp_path: Path, content: bytes) -> Path:
    (tmp_path / "clip.wav").write_bytes(content)
    return tmp_path


def test_one_file_next_to_the_input(folder: Path) -> None:
    done = run("convert-to-mp3", "clip.wav", cwd=folder)
    assert names_in(folder) == ["clip.mp3", "clip.wav"]
    check_decodable(parse(folder / "clip.mp3"))
    assert done.stdout == b""
    assert re.fullmatch(rb"clip\.wav -> clip\.mp3  \(0:00, [\d.]+ kB, [\d.]+x\)\n", done.stderr)


def test_the_short_name_and_options(folder: Path, content: bytes) -> None:
    done = call(
        "convert2mp3", "clip.wav", "-o", "x.mp3", "--bitrate", "96k", "--channels", "1",
        "--tag", "title=From the command line", "--id3v2-version", "4", "--quiet", cwd=folder,
    )  # fmt: skip
    assert (done.stdout, done.stderr) == (b"", b"")
    expected = polymux.convert_to_mp3(content, bitrate="96k", channels=1).read()
    assert audio_frames(folder / "x.mp3") == audio_frames(expected)
    assert polymux.probe(folder / "x.mp3").tags["title"] == "From the command line"


def test_an_existing_output_is_kept_by_default(folder: Path) -> None:
    (folder / "clip.mp3").write_bytes(b"old")
    assert b"--overwrite" in convert("clip.wav", cwd=folder, code=1).stderr
    convert("clip.wav", "--skip-existing", cwd=folder)
    assert (folder / "clip.mp3").read_bytes() == b"old"
    convert("clip.wav", "--overwrite", cwd=folder)
    check_decodable(parse(folder / "clip.mp3"))


def test_streams(folder: Path, content: bytes) -> None:
    expected = audio_frames(polymux.convert_to_mp3(content, bitrate="128k").read())
    words = ("convert-to-mp3", "-b", "128k")
    piped = run(*words, "-", cwd=folder, stdin=content)
    assert audio_frames(piped.stdout) == expected
    call(*words, "-", "-o", "from-stdin.mp3", cwd=folder, stdin=content)
    assert audio_frames(folder / "from-stdin.mp3") == expected
    assert audio_frames(call(*words, "clip.wav", "-o", "-", cwd=folder).stdout) == expected
    # The command refuses to write the MP3 and JSON to the same stream.
    done = call(*words, "clip.wav", "-o", "-", "--json", cwd=folder, code=2)
    assert b"--json" in done.stderr
    assert done.stdout == b""


def test_json_lines(folder: Path) -> None:
    (folder / "noise.wav").write_bytes(b"no media at all" * 100)
    done = convert("clip.wav", "noise.wav", "missing.wav", "--json", cwd=folder, code=1)
    assert done.stderr == b""
    *lines, summary = json_lines(done.stdout)
    by_input = {line["input"]: line for line in lines}
    converted = by_input["clip.wav"]
    assert (converted["status"], converted["output"]) == ("converted", "clip.mp3")
    assert converted["report"]["bytes"] == (folder / "clip.mp3").stat().st_size
    for name in ("seams", "absorbed_segments", "bumped_frames", "repairs", "inexact_frames"):
        assert converted["report"][name] == 0
    assert converted["report"]["identical"] is True
    assert by_input["noise.wav"]["status"] == by_input["missing.wav"]["status"] == "failed"
    assert by_input["missing.wav"]["error"]["code"] == "input_not_found"
    del summary["elapsed_s"]
    assert summary == {"status": "summary", "converted": 1, "failed": 2, "skipped": 0}


def test_folders(folder: Path, content: bytes) -> None:
    for name in (
        "in/a.wav",
        "in/deep/b.wav",
        "in/c.jpg",
        "in/deep/notes.txt",
        "in/only-text/readme",
    ):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if name.endswith("wav") else b"plain text, long enough" * 50)
    done = convert("-r", "in", "--output-dir", "out", cwd=folder)
    assert names_in(folder / "out") == ["a.mp3", "deep", "deep/b.mp3"]
    assert re.search(rb"\b2\b.*\b0\b.*\b3\b", done.stderr)
    assert b"notes.txt" not in done.stderr
    again = convert("-r", "in", "--output-dir", "out", "--skip-existing", "--json", cwd=folder)
    reasons = sorted(line["reason"] for line in json_lines(again.stdout)[:-1])
    assert reasons == ["exists", "exists", "not_media", "not_media", "not_media"]
    convert("in", cwd=folder, code=1)


def test_damaged_media_in_a_folder_are_named_and_no_success(folder: Path, content: bytes) -> None:
    (folder / "in").mkdir()
    (folder / "in/good.wav").write_bytes(content)
    (folder / "in/notes.txt").write_bytes(b"plain text")
    damaged = {"noise.flac": b"no media at all" * 100, "empty.ogg": b"", "cut.mp4": bytes(5000)}
    for name, data in damaged.items():
        (folder / "in" / name).write_bytes(data)
    done = convert("-r", "in", cwd=folder, code=1)
    assert (folder / "in/good.mp3").exists()
    for name in damaged:
        assert name.encode() in done.stderr
    assert b"notes.txt" not in done.stderr
    assert re.search(rb"\b1\b.*\b3\b.*\b1\b", done.stderr)


def test_names_are_plain_names(folder: Path, content: bytes) -> None:
    odd = os.fsdecode(b"caf\xe9.wav")
    names = ["-x.wav", "file:x.wav", "concat:x.wav", "%03d.wav", "*.wav", odd]
    for name in names:
        (folder / name).write_bytes(content)
    done = convert("--json", "--", *names, cwd=folder)
    for name in names:
        check_decodable(parse(folder / name.replace(".wav", ".mp3")))
    assert {line.get("input") for line in json_lines(done.stdout)} == {*names, None}


def test_control_characters_are_never_shown_raw(folder: Path, content: bytes) -> None:
    name = "a\x1b[31mred\x07\n.wav"
    (folder / name).write_bytes(content)
    (folder / f"broken{name}").write_bytes(b"no media" * 100)
    done = convert(name, f"broken{name}", f"missing{name}", cwd=folder, code=1)
    shown = done.stderr + call("probe", name, cwd=folder).stdout
    assert b"\x1b" not in shown
    assert b"\x07" not in shown
    assert b"\\x1b[31mred" in shown


def test_the_reader_of_standard_output_goes_away(tmp_path: Path) -> None:
    """The MP3 is larger than the pipe buffer, so the write fails."""
    sound = write_long_wave(tmp_path / "sound.wav", 30)
    command = " ".join([*PROGRAM, "convert-to-mp3", "-b", "128k", "-o", "-", str(sound)])
    done = subprocess.run(
        ["bash", "-c", f"{command} | head -c 1000 | wc -c; echo ${{PIPESTATUS[0]}}"],
        capture_output=True, check=True, timeout=120,
    )  # fmt: skip
    assert done.stdout.split() == [b"1000", b"1"]
    assert b"Traceback" not in done.stderr
    assert b"Exception ignored" not in done.stderr


@pytest.mark.parametrize("words", ["probe clip.wav", "convert-to-mp3 clip.wav -o -", "--help"])
def test_standard_output_is_full(folder: Path, words: str) -> None:
    with open("/dev/full", "wb") as full:  # noqa: PTH123
        done = subprocess.run(
            [*PROGRAM, *words.split()],
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
    """Return the running command once its temporary output file exists."""
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


def ended(process: subprocess.Popen[bytes], number: signal.Signals) -> tuple[int, bytes]:
    """Send a signal. Return the exit code and standard error."""
    process.send_signal(number)
    code = process.wait(timeout=30)
    _, errors = process.communicate()
    return code, errors


@pytest.mark.parametrize(
    ("number", "files", "code"),
    [(signal.SIGINT, 1, 130), (signal.SIGINT, 3, 130), (signal.SIGTERM, 3, 143)],
)
def test_signals_leave_nothing(
    long_wave: Path, tmp_path: Path, number: signal.Signals, files: int, code: int
) -> None:
    copies = [f"{index}.wav" for index in range(files)]
    for name in copies:
        (tmp_path / name).symlink_to(long_wave)
    found, errors = ended(started(*copies, cwd=tmp_path), number)
    assert found == code, errors
    assert b"Traceback" not in errors
    assert names_in(tmp_path) == copies


def test_control_c_while_waiting_for_standard_input(tmp_path: Path) -> None:
    process = started("-", "-o", "a.mp3", cwd=tmp_path, stdin=subprocess.PIPE)
    assert ended(process, signal.SIGINT)[0] == 130
    assert names_in(tmp_path) == []


def test_progress_on_a_terminal(long_wave: Path, tmp_path: Path) -> None:
    one = r"\r\[[#-]{24}\] +\d+%.*\b4:00:00\b.*[\d.]+ [kM]B.*[\d.]+x  "
    several = r"\r\[[#-]{24}\] +\d+%.*\b2\b.*[\d.]+x"
    for words, drawn in (
        ([long_wave, "-o", "a.mp3"], one),
        ([long_wave] * 2 + ["--output-dir", "out"], several),
    ):
        with Terminal("convert-to-mp3", *words, cwd=tmp_path) as terminal:
            terminal.wait_for(drawn)
            terminal.press("\x03")
            assert terminal.end() == 130


def test_an_mp3_is_not_written_to_a_terminal(folder: Path) -> None:
    with Terminal("convert-to-mp3", "clip.wav", "-o", "-", cwd=folder) as terminal:
        terminal.wait_for("-o FILE")
        assert terminal.end() == 2


def test_probe(folder: Path, corpus: Corpus, content: bytes) -> None:
    path = corpus.path("mkv_video")
    done = call("probe", path, cwd=folder)
    assert re.search(rb"\b1\b.*audio, aac, 44100 Hz, stereo.*<-", done.stdout)
    done = call("probe", path, "missing.wav", "--json", cwd=folder, code=1)
    found, missing = json_lines(done.stdout)
    assert found["info"] == polymux.probe(path).to_dict()
    assert missing["error"]["code"] == "input_not_found"
    piped = call("probe", "-", "--json", cwd=folder, stdin=content)
    assert json_lines(piped.stdout)[0]["info"]["container"] == "wav"


def test_doctor(folder: Path) -> None:
    assert b"FFmpeg" in call("doctor", cwd=folder).stdout


def test_the_doctor_names_a_wrong_setting(folder: Path) -> None:
    """Of the file of a server, and of the user's configuration file."""
    text = """[engines.art]\nfamily = "diffusion"\noptions.models = {musik = "x"}\n"""
    (folder / "server.toml").write_text(text)
    for words, settings in (
        (("--config", "server.toml"), {}),
        ((), {"POLYMUX_CONFIG": str(folder / "server.toml")}),
    ):
        stderr = call("doctor", *words, cwd=folder, code=4, **settings).stderr.decode()
        assert "server.toml" in stderr
        assert "engines.art.options.models" in stderr
        assert "musik" in stderr


@pytest.mark.parametrize(
    ("words", "code"),
    [
        ("convert-to-mp3 missing.wav", 5),
        ("convert-to-mp3 missing.wav clip.wav", 1),
        ("convert-to-mp3 text.wav", 1),
        ("probe missing.wav", 5),
        ("probe missing.wav clip.wav", 1),
        ("config check text.wav", 4),
        ("serve --config missing.toml", 4),
        ("doctor --config missing.toml", 4),
        ("transcribe missing.wav --local", 5),
        ("transcribe clip.wav --local", 3),
        ("download-video ftp://example.org/ --local --output-dir out", 2),
    ],
)
def test_exit_codes(folder: Path, words: str, code: int) -> None:
    (folder / "text.wav").write_text("no media")
    call(*words.split(), cwd=folder, code=code, XDG_STATE_HOME=str(folder))


def test_the_doctor_tries_what_it_calls_ok(folder: Path) -> None:
    (folder / "modules").mkdir()
    for name in ("PIL", "fastapi"):
        (folder / f"modules/{name}.py").write_text("raise ImportError('a library is gone')")
    done = call("doctor", "--json", cwd=folder, PYTHONPATH=str(folder / "modules"))
    found = json.loads(done.stdout)
    for name in ("rapidocr", "tesseract", "upscale"):
        assert found["engines"][name]["ok"] is False
        assert "a library is gone" in found["engines"][name]["problem"]
    assert found["engines"]["chat"]["ok"] is found["numpy"] is True
    assert found["server"] is False
