"""`polymux chat`: single answers and interactive conversations on a pseudo-terminal."""

from __future__ import annotations

import json
import os
import signal
from typing import TYPE_CHECKING, Any

import pytest
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.commands import Terminal, call, started

if TYPE_CHECKING:
    from pathlib import Path

    from servers.reference import ReferenceServer

COMPLETION = "/api/v1/fastllm/chatcompletion"
DONE = b"data: [DONE]\n\n"


def event(**choice: Any) -> bytes:
    return b"data: " + json.dumps({"choices": [{"index": 0, **choice}]}).encode() + b"\n\n"


def sent_messages(server: ReferenceServer) -> list[list[tuple[str, str]]]:
    """The role and text of every message, per request."""
    bodies = [one.body.values["messages"] for one in server.calls]
    return [[(one["role"], one["content"]) for one in messages] for messages in bodies]


@pytest.mark.parametrize("name", ["chat", "free-chat"])
def test_the_answer_is_shown_as_it_comes(
    server: ReferenceServer, tmp_path: Path, name: str
) -> None:
    server.chats.pause_s = 0.5
    process = started(name, "one two", cwd=tmp_path, server=server)
    assert process.stdout is not None
    first = os.read(process.stdout.fileno(), 1000)
    assert process.poll() is None
    assert first == b"You "
    rest, errors = process.communicate(timeout=60)
    assert (first + rest, errors) == (b"You said: one two\n", b"")
    assert server.calls[0].body.get("stream") is True


@pytest.mark.parametrize("words", [[], ["-"]])
def test_the_text_from_standard_input(
    server: ReferenceServer, tmp_path: Path, words: list[str]
) -> None:
    text = "\ufeffGrüße,\n  [a] {b} @c\r\n\n".encode()
    call("chat", *words, "--system", "Be kind.", cwd=tmp_path, server=server, stdin=text)
    assert sent_messages(server) == [[("system", "Be kind."), ("user", "Grüße,\n  [a] {b} @c")]]


def test_no_text_on_standard_input(server: ReferenceServer, tmp_path: Path) -> None:
    for text, says in ((b" \n", b"MESSAGES"), (b"ab\xff", b"\\xff")):
        assert says in call("chat", cwd=tmp_path, server=server, stdin=text, code=2).stderr
    assert server.requests == []


def test_a_file_of_messages(server: ReferenceServer, tmp_path: Path) -> None:
    (tmp_path / "m.json").write_text('[{"role": "user", "content": "a"}]')
    call("chat", "@m.json", "--system", "s", cwd=tmp_path, server=server)
    done = call("chat", "@nowhere.json", cwd=tmp_path, server=server, code=5)
    assert b"nowhere.json" in done.stderr
    call("chat", "@everyone who reads nowhere.json", cwd=tmp_path, server=server)
    assert sent_messages(server) == [
        [("system", "s"), ("user", "a")], [("user", "@everyone who reads nowhere.json")],
    ]  # fmt: skip


def test_whole_answers_and_chunks_as_json(server: ReferenceServer, tmp_path: Path) -> None:
    done = call("chat", "hi", "--no-stream", "--n", "2", cwd=tmp_path, server=server)
    assert done.stdout == b"You said: hi\n\nYou said: hi\n"
    assert server.calls[0].body.get("stream") is None
    several = call("chat", "hi", "--n", "2", "--stream", cwd=tmp_path, server=server)
    assert several.stdout == b"You said: hi\n"
    done = call("chat", "hi", "--stream", "--json", cwd=tmp_path, server=server)
    chunks = [json.loads(line) for line in done.stdout.splitlines()]
    texts = [chunk["choices"][0]["delta"].get("content", "") for chunk in chunks]
    assert "".join(texts) == "You said: hi"


def test_the_model_that_is_set(server: ReferenceServer, tmp_path: Path) -> None:
    for more in ((), ("--model", "other")):
        call("chat", "hi", *more, cwd=tmp_path, server=server, POLYMUX_CHAT_MODEL="mine")
    assert [one.body.get("model") for one in server.calls] == ["mine", "other"]


def test_thinking_and_notices_go_to_standard_error(tmp_path: Path) -> None:
    asked = {"index": 0, "function": {"name": "weather", "arguments": '{"city":'}}
    more = {"index": 0, "function": {"arguments": "1}"}}
    with MisbehavingServer() as server:
        server.script(
            steps.event_stream(),
            steps.send(event(delta={"reasoning": "Let me "}) + event(delta={"reasoning": "see."})),
            steps.send(event(delta={"content": "Blue"})),
            steps.send(event(delta={"tool_calls": [asked]}) + event(delta={"tool_calls": [more]})),
            steps.send(event(delta={}, finish_reason="length") + DONE),
            steps.close(),
        )
        done = call("chat", "why?", cwd=tmp_path, server=server)
    assert done.stdout == b"Blue\n"
    thought, asked_for, _ = done.stderr.decode().splitlines()
    assert thought == "Let me see."
    assert 'weather({"city":1})' in asked_for


def test_a_terminal_is_not_driven_by_an_answer(tmp_path: Path) -> None:
    text = "a\x1b]0;title\x07\tb\nc\u200dd\x9b1m"
    body = [steps.event_stream(), steps.send(event(delta={"content": text}, finish_reason="stop"))]
    with MisbehavingServer() as server:
        server.script(*body, steps.send(DONE), steps.close(), times=2)
        with Terminal("chat", "x", cwd=tmp_path, server=server) as terminal:
            terminal.wait_for(r"a\\x1b\]0;title\\x07\s+b\r\nc\u200dd\\x9b1m\r\n")
            assert terminal.end() == 0
        assert call("chat", "x", cwd=tmp_path, server=server).stdout.decode() == text + "\n"


@pytest.mark.parametrize(
    ("attribute", "code", "says"),
    [("fails_after", 9, b"the model went away"), ("ends_after", 7, b"polymux: ")],
)
def test_an_answer_that_breaks_off(
    server: ReferenceServer, tmp_path: Path, attribute: str, code: int, says: bytes
) -> None:
    setattr(server.chats, attribute, 3)
    done = call("chat", "one two", cwd=tmp_path, server=server, code=code)
    assert done.stdout == b"You said: \n"
    assert says in done.stderr
    assert done.stderr.count(b"\n") == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_signals_end_an_answer(
    server: ReferenceServer, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    server.chats.text = "word " * 1000
    server.chats.pause_s = 0.05
    process = started("chat", "x", cwd=tmp_path, server=server)
    assert process.stdout is not None
    assert os.read(process.stdout.fileno(), 5) == b"word "
    process.send_signal(number)
    rest, errors = process.communicate(timeout=20)
    assert (process.returncode, errors.count(b"\n")) == (code, 1)
    assert rest.endswith(b"\n")
    server.wait_closed(server.connections[0])


def test_a_conversation(server: ReferenceServer, tmp_path: Path) -> None:
    """The conversation continues after an error and after an unknown user in a path."""
    asked = [
        ("first", "\r\nYou said: first\r\n"),
        ("second", "\r\nYou said: second\r\n"),
        ("/save talk.json", r"\n[^>\n]*talk\.json"),
        ("/save talk.json", r"\n[^>\n]*\bexists\b"),
        ("/save talk.txt", r"\n[^>\n]*talk\.txt"),
        ("/save ~nosuchuser/x", "'~nosuchuser/x'"),
        ("/save ~/home.txt", r"\n[^>\n]*home\.txt"),
        ("/system Be long.", r"\n[^>\n]*Be long\."),
        ("/clear", r"\n[^>\n]+\n> "),
        ("/usr/bin is what?", "You said: /usr/bin is what"),
        ("/nothing", r"\n[^>\n]*/nothing\b.*/help"),
    ]
    with Terminal("chat", "--system", "Be brief.", cwd=tmp_path, server=server) as terminal:
        terminal.wait_for("/help")
        terminal.wait_for("> ")
        for words, answer in asked:
            terminal.press(f"{words}\r")
            terminal.wait_for(answer)
        server.fail(400, "no such model", path=COMPLETION)
        terminal.press("one\r")
        terminal.wait_for(r"no such model.*\b400\b")
        terminal.press("/help\r")
        terminal.wait_for("/clear .*\r\n/system .*\r\n/save .*\r\n/quit ")
        # Before the prompt appears, the terminal would handle Ctrl-D instead of readline.
        terminal.wait_for("\r\n> ")
        terminal.press("\x04")
        assert terminal.end() == 0
    assert sent_messages(server) == [
        [("system", "Be brief."), ("user", "first")],
        [("system", "Be brief."), ("user", "first"), ("assistant", "You said: first"),
         ("user", "second")],
        [("system", "Be long."), ("user", "/usr/bin is what?")],
    ]  # fmt: skip
    saved = json.loads((tmp_path / "talk.json").read_text())
    assert [one["role"] for one in saved] == ["system", *["user", "assistant"] * 2]
    for name in ("talk.txt", "home.txt"):
        assert (tmp_path / name).read_text().startswith("system:\nBe brief.\n\nuser:\nfirst\n")
    assert len(server.connections) == 1


def test_control_c_ends_the_answer_and_then_the_conversation(
    server: ReferenceServer, tmp_path: Path
) -> None:
    server.chats.text = "word " * 1000
    server.chats.pause_s = 0.05
    with Terminal("chat", cwd=tmp_path, server=server) as terminal:
        terminal.wait_for("> ")
        terminal.press("go\r")
        terminal.wait_for("word word ")
        terminal.press("\x03")
        terminal.wait_for("> ")
        server.chats.text, server.chats.pause_s = "short", 0
        terminal.press("on\r")
        terminal.wait_for("short")
        terminal.wait_for("> ")
        terminal.press("half a line")
        terminal.wait_for("half a line")
        terminal.interrupt("Ctrl-C")
        terminal.press("still here\r")
        terminal.wait_for("short")
        terminal.wait_for("> ")
        terminal.interrupt("Ctrl-C")
        terminal.wait_for("> ")
        terminal.interrupt("\r\n$")
        assert terminal.end() == 130
    calls = sent_messages(server)
    assert [role for role, _ in calls[1]] == ["user", "assistant", "user"]
    assert calls[1][1][1].startswith("word word")
    assert calls[2][-1] == ("user", "still here")
