"""`polymux chat` and `polymux free-chat`: one answer, or a conversation on a terminal."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.atomic_file import write_atomically
from polymux._util.text import display_name, shown
from polymux.cli import answers, server
from polymux.cli.answers import tell_end
from polymux.cli.errors import ExitCode, report
from polymux.cli.operation_arguments import values_of
from polymux.cli.progress import ask
from polymux.cli.terminal import Screen, write_json, write_text
from polymux.errors import InvalidRequestError, OutputError, PolymuxError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable

    from polymux.cli.operation_arguments import Command
    from polymux.client.chat_stream import ChatStream

OPERATIONS = ("chat", "free_chat")
HELP = """\
The answer goes to standard output as it comes, and nothing else does; the model's thinking and all
notices go to standard error. MESSAGES is a text, a JSON list of messages, or @FILE with such a
list; - reads the text from standard input, and so does leaving it out where that is no terminal.

Without MESSAGES on a terminal this is a conversation: it keeps what was said, Ctrl-C ends the
answer that is coming, Ctrl-D the conversation, and /help lists what else there is.

examples:
  polymux chat "Why is the sky blue?"
  git diff | polymux chat --system "Write a commit message for this diff."
  polymux chat --model llama-3.3-70b-versatile --temperature 0

"""
_MAX_TEXT_BYTES = 64 << 20
_PROMPT = "> "
_COMMAND = re.compile(r"/[a-z]+")
_COMMANDS_HELP = """\
/clear          forget what was said
/system TEXT    tell the model something before all else; without TEXT, show what it is told
/save FILE      write the conversation: as JSON to a .json for 'polymux chat @FILE', else as text
/quit           end the conversation, as Ctrl-D does
Ctrl-C ends the answer that is coming; twice, the conversation."""


def add_arguments(group: Any) -> None:
    """Describes what the chats have beside the operation's fields."""
    group.add_argument("--system", metavar="TEXT", help="what the model is told before all else")


def run(command: Command, options: argparse.Namespace) -> int:
    """Answers once, or holds a conversation; the exit code."""
    given = options.messages
    talks = given is None and sys.stdin.isatty()
    if given == "-" or (given is None and not talks):
        options.messages = None
    values = values_of(command, options)
    if not talks and options.messages is None:
        values["messages"] = _from_standard_input()
    screen = Screen(quiet=options.quiet)
    streams = _streams(values, options, talks=talks)
    more = {"stream": True} if streams else {}
    with server.answering(options, command.name) as client:

        def asked(messages: Any) -> Any:
            fields = {**values, "messages": messages, **more}
            return ask(client, command, fields, options, screen)

        if talks:
            return Conversation(asked, options.system, screen, streams=streams).run()
        result = asked(with_system(values["messages"], options.system))
        if not streams:
            return answers.show(result, screen, as_json=options.as_json)
        with result as stream:
            if options.as_json:
                for chunk in stream:
                    write_json(json.loads(chunk.raw))
            else:
                print_stream(stream, screen)
    return ExitCode.SUCCESS


def _streams(values: dict[str, Any], options: argparse.Namespace, *, talks: bool) -> bool:
    """Whether the answer is streamed, which is the default where pieces make sense."""
    if talks and options.as_json:
        raise InvalidRequestError("--json is for one answer: give MESSAGES, or - to read them")
    wanted = values.pop("stream", None)
    if wanted is None:
        return not options.as_json and values.get("n", 1) == 1
    return bool(wanted)


def with_system(messages: Any, system: str | None) -> Any:
    """The messages after what the model is told first."""
    if system is None:
        return messages
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    told = {"role": "system", "content": system}
    return [told, *messages] if isinstance(messages, list) else messages


def _from_standard_input() -> str:
    data = sys.stdin.buffer.read(_MAX_TEXT_BYTES + 1)
    if len(data) > _MAX_TEXT_BYTES:
        raise InvalidRequestError("standard input has more than 64 MiB")
    try:
        text = data.decode().removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = shown(data[error.start : error.start + 1])
        raise InvalidRequestError(
            f"standard input is no UTF-8: {byte} at byte {error.start}"
        ) from None
    if not text.strip():
        raise InvalidRequestError(
            "there is no text: give MESSAGES, or write them to standard input"
        )
    return text


def print_stream(stream: ChatStream, screen: Screen) -> None:
    """Prints the first choice of a stream as it comes, and how it ended where that matters."""
    calls = ToolCalls()
    last = "\n"
    try:
        for chunk in stream:
            if chunk.index:
                continue
            calls.add(chunk.tool_calls)
            if chunk.reasoning:
                screen.think(chunk.reasoning)
            if chunk.content:
                screen.think("")
                last = chunk.content[-1]  # Before a signal can come between.
                write_text(chunk.content)
                sys.stdout.flush()
    finally:
        screen.think("")
        if last != "\n":
            write_text("\n")
            sys.stdout.flush()
    tell_end(stream.finish_reason, calls.found, screen)


class ToolCalls:
    """Calls that a model asks for, put together from their pieces."""

    def __init__(self) -> None:
        self._by_index: dict[Any, list[str]] = {}

    def add(self, pieces: tuple[Any, ...]) -> None:
        """Takes the pieces of a chunk."""
        for piece in pieces:
            function = piece.get("function") or {}
            name, arguments = (str(function.get(one) or "") for one in ("name", "arguments"))
            call = self._by_index.setdefault(piece.get("index"), ["", ""])
            call[0] += name
            call[1] += arguments

    @property
    def found(self) -> list[tuple[str, str]]:
        """Name and arguments of each."""
        return [(name, arguments) for name, arguments in self._by_index.values()]


class Conversation:
    """Reads lines, asks the model with all that was said before, and prints its answers.

    Args:
        ask: Asks the model, with all messages.
        system: What the model is told before all else.
        screen: For all that is no answer.
        streams: Print answers as they come.
    """

    def __init__(
        self, ask: Callable[[Any], Any], system: str | None, screen: Screen, *, streams: bool
    ) -> None:
        self._ask = ask
        self._system = system
        self._screen = screen
        self._streams = streams
        self._said: list[dict[str, str]] = []

    def run(self) -> int:
        """Goes on until it is ended; the exit code."""
        with suppress(ImportError):
            import readline  # noqa: F401 - `input` edits lines with it
        self._screen.say("Ctrl-D or /quit ends the conversation, /help lists what else there is")
        interrupted = False
        while True:
            try:
                line = self._read().strip()
            except EOFError:
                self._screen.say("")
                return ExitCode.SUCCESS
            except KeyboardInterrupt:
                self._screen.complain("")
                if interrupted:
                    return ExitCode.INTERRUPTED
                self._screen.say("Ctrl-C once more, Ctrl-D or /quit ends the conversation")
                interrupted = True
                continue
            interrupted = False
            if line in ("/quit", "/exit"):
                return ExitCode.SUCCESS
            word, _, rest = line.partition(" ")
            if _COMMAND.fullmatch(word):
                self._obey(word, rest.strip())
            elif line:
                interrupted = not self._answer(line)

    def _read(self) -> str:
        """A line; the prompt is no part of what a redirected standard output gets."""
        if sys.stdout.isatty():
            return input(_PROMPT)
        sys.stderr.write(_PROMPT)
        sys.stderr.flush()
        return input()

    def _answer(self, text: str) -> bool:
        """Asks and prints; False where Ctrl-C ended the answer."""
        self._said.append({"role": "user", "content": text})
        answered = ""
        stream = None
        try:
            result = self._ask(with_system(list(self._said), self._system))
            if self._streams:
                stream = result
                with stream:
                    print_stream(stream, self._screen)
                answered = stream.text
            else:
                answers.show(result, self._screen)
                answered = result.text
        except KeyboardInterrupt:
            answered = "" if stream is None else stream.text
            self._screen.complain("(the answer was ended)")
            return False
        except PolymuxError as error:
            report(error)
        finally:
            # What has no answer is taken back, so that roles go on taking turns.
            if answered:
                self._said.append({"role": "assistant", "content": answered})
            else:
                self._said.pop()
        return True

    def _obey(self, word: str, rest: str) -> None:
        if word == "/help":
            self._screen.say_text(_COMMANDS_HELP)
        elif word == "/clear":
            self._said.clear()
            self._screen.say("all that was said is forgotten")
        elif word == "/system":
            self._system = rest or self._system
            self._screen.say(f"the model is told: {self._system or 'nothing'}")
        elif word == "/save":
            self._save(rest)
        else:
            self._screen.complain(f"there is no {word}; /help lists what there is")

    def _save(self, name: str) -> None:
        if not name:
            self._screen.complain("/save needs the name of a file")
            return
        messages = with_system(list(self._said), self._system)
        path = Path(name)
        with suppress(RuntimeError):  # ~ of nobody: a file may be called so
            path = path.expanduser()
        text = json.dumps(messages, indent=2, ensure_ascii=False) + "\n"
        if path.suffix != ".json":
            text = "\n".join(f"{one['role']}:\n{one['content'].rstrip()}\n" for one in messages)
        try:
            write_atomically(path, text.encode("utf-8", "backslashreplace"), overwrite=False)
        except OutputError as error:
            report(error)
        else:
            self._screen.say(f"saved {display_name(str(path))}")
