from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.cli import main, operation_arguments
from polymux.cli.operation_commands import COMMANDS
from servers import steps
from servers.misbehaving import MisbehavingServer
from support import requests
from support.form_parsers import Field, File, starlette

if TYPE_CHECKING:
    from pathlib import Path

SOUND = b"ID3\x00\xff\r\n"


def words_of(command: operation_arguments.Command, values: dict[str, Any]) -> list[str]:
    """The command-line words for `values`."""
    words: list[str] = []
    for name, value in values.items():
        argument = next(one for one in command.arguments if one.name == name)
        text = value if isinstance(value, str) else json.dumps(value)
        if argument.metavar:
            words.append(text)
        elif isinstance(value, bool):
            option = argument.options[0]
            words.append(option if value else f"--no-{option[2:]}")
        elif argument.kind == "texts":
            for one in value if isinstance(value, list) else [value]:
                words += [argument.options[0], one]
        else:
            words += [argument.options[0], text]
    return words


@requests.each_field
def test_every_field_can_be_given(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    values = requests.with_field(variant, field, requests.sample(field))
    if field.type == "array" and field.items == "string":
        values[field.name] = ["x", "y"]
    if "written_as" in field.raw:
        values[field.name] = int(values[field.name])
    values = {k: "some.file" if v is requests.FILE else v for k, v in values.items()}
    command = operation_arguments.find_command(operation.name)
    parser = argparse.ArgumentParser(allow_abbrev=False)
    operation_arguments.add_arguments(parser, command)
    options = parser.parse_args(words_of(command, values))
    assert operation_arguments.values_of(command, options) == values


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_command_has_help(
    command: operation_arguments.Command, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in (command.name, command.operation, *command.aliases):
        with pytest.raises(SystemExit) as left:
            main(["request", name, "--help"])
        assert left.value.code == 0
        shown = " ".join(capsys.readouterr().out.split())
        assert command.summary in shown
        for argument in command.arguments:
            assert (argument.metavar or argument.options[0]) in shown
        assert "%%" not in shown


def show(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["request", *words]) == 0
    return capsys.readouterr().out


def test_a_request_as_http(capsys: pytest.CaptureFixture[str]) -> None:
    assert show(capsys, "search-music", "Blaue Donau", "--limit", "3") == (
        "POST /api/v1/musicsearch HTTP/1.1\nContent-Type: application/json\n"
        'Content-Length: 34\n\n{"song":"Blaue Donau","limit":"3"}\n'
    )


def test_a_request_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    shown = show(capsys, "generate-image", "dusk", "--width", "512", "--format", "json")
    described = json.loads(shown)
    assert described["query"] == {"model": "bytedance/sdxl-lightning-4step"}
    assert described["body"] == {"prompt": "dusk", "width": 512}
    assert described["path"] == "/api/v1/modelhost/imagegeneration"


def test_the_body_in_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sound, body = tmp_path / "talk.mp3", tmp_path / "body"
    sound.write_bytes(SOUND)
    words = ("stt", str(sound), "--task", "translate", "--extra-body", '{"x": true}')
    shown = show(capsys, *words, "-o", str(body))
    fields = dict(line.partition(": ")[::2] for line in shown.splitlines())
    assert fields["Content-Length"] == str(body.stat().st_size)
    assert starlette(body.read_bytes(), fields["Content-Type"]) == [
        Field("task", "translate"),
        Field("x", "true"),
        File("audio", "talk.mp3", "audio/mpeg", SOUND),
    ]


@pytest.mark.parametrize("text", ["@nobody is here", "[urgent] come", "{", "-5", "--", "naïve 🎵"])
def test_messages_that_only_look_like_something_else(
    text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["chat", "--model", "m", "--format", "json"]
    described = json.loads(show(capsys, *words, *(["--"] if text[0] == "-" else []), text))
    assert described["body"]["messages"] == [{"role": "user", "content": text}]
    messages = tmp_path / "messages.json"
    messages.write_text(json.dumps([{"role": "system", "content": text}]), encoding="utf-8")
    described = json.loads(show(capsys, *words, f"@{messages}"))
    assert described["body"]["messages"] == [{"role": "system", "content": text}]


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (["sing"], "sing"),
        (["transcibe"], "transcribe"),
        (["generate-video", "x", "--fps", "fast"], "--fps fast"),
        (["generate-image", "x", "--guidance-scale", "nan"], "guidance_scale"),
        (["generate-image", "x", "--width", "1000", "--height", "1"], "height 1"),
        (["generate-image", "x", "--model", "x/y"], "model x/y"),
        (["chat", "x", "--tools", "{", "--model", "m"], "--tools {"),
        (["chat", "x", "--tools", "[" * 100_000, "--model", "m"], "--tools"),
        (["chat", "x", "--extra-body", "[1]"], "--extra-body"),
        (["chat", "x", "--extra-body", '{"model": 1}', "--model", "m"], "model"),
        (["transcribe", "x.wav", "--url", "http://media.example/x"], "audio"),
    ],
)
def test_what_is_wrong_is_reported_and_nothing_is_shown(
    words: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["request", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert all(one in err for one in named.split())
    assert len(err) < 4000


def test_files_that_are_not_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["request", "songid", str(tmp_path / "none.mp3")]) == 5
    assert main(["request", "chat", "x", "--extra-body", f"@{tmp_path}/none.json"]) == 5
    assert main(["request", "chat", "x", "--extra-body", f"@{tmp_path}"]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("none.") == 2


@pytest.mark.parametrize("file_name", ["talk.mp3", 'a "b;c,=\\ @ü.mp3', "line\nend.mp3"])
def test_curl_sends_the_same(
    file_name: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert shutil.which("curl"), "curl is missing: scripts/setup test installs it"
    (tmp_path / file_name).write_bytes(SOUND)
    monkeypatch.chdir(tmp_path)
    text = 'It\'s "50 %" of $HOME `x` \\n\n\t\u202e🎵'
    extra = ("--extra-body", json.dumps({"note": text}))
    with MisbehavingServer() as server:
        server.script(steps.answer(), times=None)
        given = {"POLYMUX_BASE_URL": f"http://127.0.0.1:{server.port}", "no_proxy": "127.0.0.1",
                 "POLYMUX_API_KEY": "key-of-a-test", "LC_ALL": "C.UTF-8"}  # fmt: skip
        for words in (("chat", text, "--model", "m"), ("stt", file_name, *extra)):
            line = show(capsys, *words, "--format", "curl")
            assert line.count("\n") == 1
            subprocess.run(
                ["bash", "-c", line], env=os.environ | given, check=True, timeout=60,
                capture_output=True,
            )  # fmt: skip
    chat, transcription = server.requests
    assert chat.target == "/api/v1/fastllm/chatcompletion"
    assert chat.header("content-type") == "application/json"
    assert chat.header("authorization") == "Bearer key-of-a-test"
    assert contract.read_json("chat", chat.body).values["messages"][0]["content"] == text
    target = "/api/v1/modelhost/stt?model=turian%2Finsanely-fast-whisper-with-video"
    assert transcription.target == target
    parts = starlette(transcription.body, transcription.header("content-type") or "")
    found: dict[str, Any] = {part.name: part for part in parts}
    assert (found["note"].value, found["audio"].content) == (text, SOUND)
