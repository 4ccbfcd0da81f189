"""`polymux chat` and `polymux free-chat`: one answer, or a conversation in the terminal."""

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
The answer goes to standard output; reasoning, notices and errors go to standard error. MESSAGES is
a text, a JSON list of messages, or @FILE with such a list. Use - to read the text from standard
input, which is also the default if standard input is not a terminal. --json prints the whole
response; with --stream, it prints each chunk on one line.

Without MESSAGES in a terminal, an interactive conversation starts. Ctrl-C stops the current answer,
Ctrl-D ends the conversation, and /help lists more commands.

examples:
  polymux chat "Why is the sky blue?"
  git diff | polymux chat --system "Write a commit message for this diff."
  polymux chat --model llama-3.3-70b-versatile --temperature 0

"""
_MAX_TEXT_BYTES = 64 << 20
_PROMPT = "> "
_COMMAND = re.compile(r"/[a-z]+")
_COMMANDS_HELP = """\
/clear          start a new conversation
/system TEXT    set the system prompt; without TEXT, show it
/save FILE      save the conversation: .json for 'polymux chat @FILE', otherwise as text
/quit           end the conversation (also Ctrl-D)
Ctrl-C stops the current answer; press it twice to end the conversation."""


def with_stream_help(command: Command) -> Command:
    """Describe the default of `--stream`, which is not that of the API; see `_streams`."""
    several = any(one.name == "n" for one in command.arguments)
    words = "Stream the answer while it is generated. Default: yes, except with --json" + (
        " or an --n above 1." if several else "."
    )
    arguments = [
        one._replace(help=words) if one.name == "stream" else one for one in command.arguments
    ]
    return command._replace(arguments=tuple(arguments))


def add_arguments(group: Any) -> None:
    """Add the chat options that are not fields of the operations."""
    group.add_argument("--system", metavar="TEXT", help="System prompt")


def run(command: Command, options: argparse.Namespace) -> int:
    """Answer once, or hold a conversation. Return the exit code."""
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
    """Return whether to stream the answer. Default: True for a single answer as text."""
    if talks and options.as_json:
        raise InvalidRequestError(
            "--json: not supported in an interactive conversation. Pass MESSAGES, or - to read "
            "it from standard input"
        )
    wanted = values.pop("stream", None)
    if wanted is None:
        return not options.as_json and values.get("n", 1) == 1
    return bool(wanted)


def with_system(messages: Any, system: str | None) -> Any:
    """Put the system prompt before the messages."""
    if system is None:
        return messages
    if isinstance(messages, str):
        messages = [{"role": "user", "content": messages}]
    system_message = {"role": "system", "content": system}
    return [system_message, *messages] if isinstance(messages, list) else messages


def _from_standard_input() -> str:
    data = sys.stdin.buffer.read(_MAX_TEXT_BYTES + 1)
    if len(data) > _MAX_TEXT_BYTES:
        raise InvalidRequestError("standard input: too large (allowed 64 MiB)")
    try:
        text = data.decode().removeprefix("\ufeff").rstrip("\r\n")
    except UnicodeDecodeError as error:
        byte = shown(data[error.start : error.start + 1])
        raise InvalidRequestError(
            f"standard input: invalid UTF-8 (got {byte} at byte {error.start})"
        ) from None
    if not text.strip():
        raise InvalidRequestError(
            "MESSAGES: missing. Pass a text as an argument or on standard input"
        )
    return text


def print_stream(stream: ChatStream, screen: Screen) -> None:
    """Print the first choice of a stream while it arrives, and how it ended if that matters."""
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
                last = chunk.content[-1]  # Before the write, which a signal can interrupt.
                write_text(chunk.content)
                sys.stdout.flush()
    finally:
        screen.think("")
        if last != "\n":
            write_text("\n")
            sys.stdout.flush()
    tell_end(stream.finish_reason, calls.found, screen)


class ToolCalls:
    """Assembles tool calls from the chunks of a stream."""

    def __init__(self) -> None:
        self._by_index: dict[Any, list[str]] = {}

    def add(self, pieces: tuple[Any, ...]) -> None:
        """Add the tool calls of a chunk."""
        for piece in pieces:
            function = piece.get("function") or {}
            name, arguments = (str(function.get(one) or "") for one in ("name", "arguments"))
            call = self._by_index.setdefault(piece.get("index"), ["", ""])
            call[0] += name
            call[1] += arguments

    @property
    def found(self) -> list[tuple[str, str]]:
        """Names and arguments of the tool calls."""
        return [(name, arguments) for name, arguments in self._by_index.values()]


class Conversation:
    """An interactive conversation with a model.

    Args:
        ask: Calls the model with all messages.
        system: System prompt.
        screen: Standard error, for messages.
        streams: Stream the answers.
    """

    def __init__(
        self, ask: Callable[[Any], Any], system: str | None, screen: Screen, *, streams: bool
    ) -> None:
        self._ask = ask
        self._system = system
        self._screen = screen
        self._streams = streams
        self._messages: list[dict[str, str]] = []

    def run(self) -> int:
        """Run the conversation until it ends. Return the exit code."""
        with suppress(ImportError):
            import readline  # noqa: F401 - `input` edits lines with it
        self._screen.say("Ctrl-D or /quit ends the conversation, /help lists all commands")
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
                self._screen.say("press Ctrl-C again, Ctrl-D or /quit to end the conversation")
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
        """Read a line. The prompt goes to standard error if standard output is redirected."""
        if sys.stdout.isatty():
            return input(_PROMPT)
        sys.stderr.write(_PROMPT)
        sys.stderr.flush()
        return input()

    def _answer(self, text: str) -> bool:
        """Call the model and print the answer. Return False if Ctrl-C stopped the answer."""
        self._messages.append({"role": "user", "content": text})
        answered = ""
        stream = None
        try:
            result = self._ask(with_system(list(self._messages), self._system))
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
            self._screen.complain("(answer stopped)")
            return False
        except PolymuxError as error:
            report(error)
        finally:
            # Without an answer, remove the question: user and assistant must alternate.
            if answered:
                self._messages.append({"role": "assistant", "content": answered})
            else:
                self._messages.pop()
        return True

    def _obey(self, word: str, rest: str) -> None:
        if word == "/help":
            self._screen.say_text(_COMMANDS_HELP)
        elif word == "/clear":
            self._messages.clear()
            self._screen.say("conversation cleared")
        elif word == "/system":
            self._system = rest or self._system
            self._screen.say(f"system prompt: {self._system or 'none'}")
        elif word == "/save":
            self._save(rest)
        else:
            self._screen.complain(f"unknown command {word}. /help lists all commands")

    def _save(self, name: str) -> None:
        if not name:
            self._screen.complain("/save: missing file name. Use /save FILE")
            return
        messages = with_system(list(self._messages), self._system)
        path = Path(name)
        with suppress(RuntimeError):  # "~name" of an unknown user: a normal file name
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
