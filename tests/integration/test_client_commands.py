"""Every operation as a command against a server."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from polymux.cli.operation_commands import COMMANDS
from servers import media
from support.commands import Terminal, call, run

if TYPE_CHECKING:
    from pathlib import Path

    from servers.reference import ReferenceServer

ADDRESS = "https://videos.example/watch"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talk.wav").write_bytes(media.wav())
    (tmp_path / "pic.png").write_bytes(media.png())
    return tmp_path


#: Command -> (arguments, expected standard output).
PRINTED = {
    "chat": (["hello there"], "You said: hello there\n"),
    "free-chat": (["hello there"], "You said: hello there\n"),
    "search-music": (
        ["danube", "--limit", "2"],
        "danube 1 - Reference\thttps://songs.example/1\n"
        "danube 2 - Reference\thttps://songs.example/1\n",
    ),
    "transcribe": (["talk.wav"], "This is a test.\n"),
    "identify-song": (["talk.wav"], "Blue Danube - Strauss\thttps://songs.example/1\n"),
    "summarize-video": ([ADDRESS], "It is about boats.\n"),
    "read-text": (["pic.png"], "Dear Ada,\nhello.\n"),
}
#: Command -> (arguments, names of the saved files).
SAVED = {
    "generate-image": (["A cat, asleep"], ["a-cat-asleep.png"]),
    "upscale-image": (["pic.png"], ["pic-upscaled.png"]),
    "generate-video": (["waves/../at dusk", "--batch-size", "2"],
                       ["waves-at-dusk.mp4", "waves-at-dusk-2.mp4"]),
    "generate-music": (["slow piano"], ["slow-piano.wav", "slow-piano-spectrogram.jpg"]),
    "download-video": ([ADDRESS], ["000001-0.mp4"]),
    "download-music": (["blue danube"], ["blue-danube.mp3"]),
}  # fmt: skip
#: Command -> a key that its JSON output always contains (default "output").
KNOWN = {"chat": "choices", "free-chat": "response", "search-music": "song_name",
         "identify-song": "song_name", "summarize-video": "response", "read-text": "text",
         "download-video": "url", "download-music": "url"}  # fmt: skip


def test_every_operation_is_here() -> None:
    assert {*PRINTED, *SAVED, "convert-to-mp3"} == {command.name for command in COMMANDS}


@pytest.mark.parametrize("name", PRINTED)
def test_answers_that_are_printed(server: ReferenceServer, folder: Path, name: str) -> None:
    words, expected = PRINTED[name]
    done = call(name, *words, cwd=folder, server=server)
    assert (done.stdout.decode(), done.stderr) == (expected, b"")
    assert server.calls[0].request.header("authorization") == f"Bearer {server.token}"


@pytest.mark.parametrize("name", SAVED)
def test_files_are_addresses_or_saved(server: ReferenceServer, folder: Path, name: str) -> None:
    words, names = SAVED[name]
    done = call(name, *words, "--output-dir", "made/here", cwd=folder, server=server)
    assert done.stdout.decode().splitlines() == [f"made/here/{one}" for one in names]
    for one, served in zip(names, server.media.files.values(), strict=True):
        assert (folder / "made/here" / one).read_bytes() == served.content
    assert all(one.header("authorization") is None for one in server.media.requests)
    fetched = len(server.media.requests)
    addresses = call(name, *words, cwd=folder, server=server).stdout.decode().splitlines()
    assert len(addresses) == len(names)
    assert all(one.startswith(f"{server.url}/media/0") for one in addresses)
    assert len(server.media.requests) == fetched


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_by_its_aliases_and_as_json(server: ReferenceServer, folder: Path, command: Any) -> None:
    for alias in command.aliases:
        if command.name == "convert-to-mp3":
            call(alias, "talk.wav", "--server", server.url, cwd=folder, server=server)
            continue
        words = (PRINTED.get(command.name) or SAVED[command.name])[0]
        done = call(alias, *words, "--json", cwd=folder, server=server)
        assert done.stdout.count(b"\n") == 1
        answer = json.loads(done.stdout)
        first = answer[0] if isinstance(answer, list) else answer
        assert first[KNOWN.get(command.name, "output")]
    paths = {one.path.rpartition("/")[2] for one in server.calls}
    assert (paths, len(server.calls)) == ({command.aliases[0]}, len(command.aliases))


def test_fields_go_to_the_server(server: ReferenceServer, folder: Path) -> None:
    call(
        "generate-image", "dusk", "--width", "512", "--guidance-scale", "1.5", "--extra-body",
        '{"new": [1]}', "--disable-safety-checker", cwd=folder, server=server,
    )  # fmt: skip
    assert server.calls[0].model == "bytedance/sdxl-lightning-4step"
    assert server.calls[0].body.values == {
        "prompt": "dusk", "width": 512, "guidance_scale": 1.5, "new": [1],
        "disable_safety_checker": True,
    }  # fmt: skip
    model = "playgroundai/playground-v2.5-1024px-aesthetic"
    call("generate-image", "dusk", "--model", model, cwd=folder, server=server)
    assert server.calls[1].model == model


def test_a_file_from_standard_input(server: ReferenceServer, folder: Path) -> None:
    call("transcribe", "-", cwd=folder, server=server, stdin=b"RIFF of some kind")
    audio = server.calls[0].body.file("audio")
    assert audio is not None
    assert (audio.file_name, audio.size_bytes) == ("stdin", 17)


@pytest.mark.parametrize("output", [b"[]", b'["ftp://127.0.0.1/a.png"]'])
def test_nothing_to_save_is_no_success(
    server: ReferenceServer, folder: Path, output: bytes
) -> None:
    """The exit code is an error, because a script would expect a saved image."""
    words = ("generate-image", "x", "--output-dir", "out")
    for more in ((), ("--json",)):
        server.fail(200, body=b'{"id": "j", "status": "succeeded", "output": %s}' % output)
        call(*words, *more, cwd=folder, server=server, code=9)
        assert list((folder / "out").iterdir()) == []


def test_saved_files_beside_json(server: ReferenceServer, folder: Path) -> None:
    words = ("generate-image", "a cat", "--output-dir", ".", "--json")
    done = call(*words, cwd=folder, server=server)
    assert json.loads(done.stdout)["status"] == "succeeded"
    assert b"a-cat.png" in done.stderr
    assert call(*words, "-q", cwd=folder, server=server).stderr == b""


def test_a_folder_that_cannot_be_is_refused_before_the_work(
    server: ReferenceServer, folder: Path
) -> None:
    words = ("generate-image", "x", "--output-dir", "pic.png")
    assert b"'pic.png'" in call(*words, cwd=folder, server=server, code=1).stderr
    assert server.calls == []


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("txt", "This is a test.\n"),
        ("srt", "1\n00:00:00,000 --> 00:00:01,500\nThis is\n\n"
                "2\n00:00:01,500 --> 00:00:02,500\na test.\n\n"),
        ("vtt", "WEBVTT\n\n00:00:00.000 --> 00:00:01.500\nThis is\n\n"
                "00:00:01.500 --> 00:00:02.500\na test.\n\n"),
        ("json", '{"text": "This is a test.", "chunks": [{"text": " This is", "start_s": 0.0, '
                 '"end_s": 1.5}, {"text": " a test.", "start_s": 1.5, "end_s": null}]}\n'),
    ],
)  # fmt: skip
def test_forms_of_a_transcript(
    server: ReferenceServer, folder: Path, form: str, expected: str
) -> None:
    """If the output file exists, the command fails before it sends a request."""
    words = ("transcribe", "talk.wav", "--format", form)
    assert call(*words, cwd=folder, server=server).stdout.decode() == expected
    call(*words, "-o", "talk.out", cwd=folder, server=server)
    assert (folder / "talk.out").read_text() == expected
    (folder / "talk.out").write_text("mine")
    done = call(*words, "-o", "talk.out", cwd=folder, server=server, code=1)
    assert b"--overwrite" in done.stderr
    assert len(server.calls) == 2
    call(*words, "-o", "talk.out", "--overwrite", cwd=folder, server=server)
    assert (folder / "talk.out").read_text() == expected
    call("transcribe", "talk.wav", "-o", f"talk.{form}", cwd=folder, server=server)
    assert (folder / f"talk.{form}").read_text() == expected
    call(*words, "-o", "other.vtt", cwd=folder, server=server)
    assert (folder / "other.vtt").read_text() == expected


def test_a_job_that_nobody_waits_for(server: ReferenceServer, folder: Path) -> None:
    server.predictions.job_s = 1
    done = call("generate-video", "waves", "--no-wait", cwd=folder, server=server)
    identity = done.stdout.decode().strip()
    assert identity in server.predictions.jobs
    assert server.calls[0].request.header("prefer") == "respond-async"
    listed = call("predictions", "list", cwd=folder, server=server).stdout.decode()
    assert listed.startswith(f"{identity}\t")
    assert "\tanotherjesse/zeroscope-v2-xl\t20" in listed
    words = ("predictions", "wait", identity, "--output-dir", "out")
    assert call(*words, cwd=folder, server=server).stdout == b"out/000001-0.mp4\n"
    shown = call("predictions", "get", identity, cwd=folder, server=server).stdout.decode()
    assert f"id         {identity}\nstatus     succeeded\n" in shown
    assert f"file       {server.url}/media/000001-0.mp4?" in shown
    as_json = call("predictions", "get", identity, "--json", cwd=folder, server=server)
    assert json.loads(as_json.stdout)["id"] == identity


def test_a_job_is_cancelled(server: ReferenceServer, folder: Path) -> None:
    server.predictions.job_s = 60
    begun = call("generate-image", "x", "--no-wait", cwd=folder, server=server)
    identity = begun.stdout.decode().strip()
    done = call("predictions", "cancel", identity, cwd=folder, server=server)
    assert b"status     canceled\n" in done.stdout
    waited = call("predictions", "wait", identity, cwd=folder, server=server, code=9)
    assert waited.stdout == b""
    assert b"canceled" in waited.stderr


def test_a_list_ends_where_it_is_asked_to(server: ReferenceServer, folder: Path) -> None:
    assert call("predictions", "list", cwd=folder, server=server).stdout == b""
    for _ in range(3):
        call("generate-image", "x", cwd=folder, server=server)
    done = call("predictions", "list", "--limit", "2", "--json", cwd=folder, server=server)
    assert [one["id"] for one in json.loads(done.stdout)] == [*server.predictions.jobs][:0:-1]


def test_progress_on_a_terminal(server: ReferenceServer, folder: Path) -> None:
    server.predictions.job_s = 2
    with Terminal("generate-image", "x", cwd=folder, server=server) as terminal:
        terminal.wait_for(r"\r0:01 .*\x1b\[K")
        terminal.wait_for(r"\r\x1b\[K")
        terminal.wait_for(r"http://127\.0\.0\.1:\d+/media/000001-0\.png")
        assert terminal.end() == 0
    server.predictions.job_s = 1  # Twice the redraw interval of the progress line.
    with Terminal("generate-image", "x", "-q", cwd=folder, server=server) as terminal:
        assert terminal.end() == 0
        assert "\r0:0" not in terminal.text


def test_an_interrupted_wait_says_what_becomes_of_the_job(
    server: ReferenceServer, folder: Path
) -> None:
    server.predictions.job_s = 60
    begun = call("generate-image", "x", "--no-wait", cwd=folder, server=server)
    identity = begun.stdout.decode().strip()
    with Terminal("predictions", "wait", identity, cwd=folder, server=server) as terminal:
        terminal.wait_for("starting|processing")
        terminal.press("\x03")
        assert terminal.end() == 130
        assert f"polymux predictions cancel {identity}" in terminal.text


def test_letters_that_standard_output_has_not(server: ReferenceServer, folder: Path) -> None:
    """A locale that cannot encode a character must not lose an answer that was already paid for."""
    server.chats.text = "schön"
    for words, encoding in ((("--no-stream",), "ascii"), ((), "ascii:surrogateescape")):
        done = run("chat", "x", *words, cwd=folder, server=server, PYTHONIOENCODING=encoding)
        assert done.stdout == b"sch\\xf6n\n"
