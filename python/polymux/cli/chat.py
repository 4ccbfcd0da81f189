"""`polymux chat` and `polymux free-chat`: one answer, or a conversation on a terminal."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from polymux._util.text import shown
from polymux.cli import answers, exit_codes, server
from polymux.cli.answers import tell_end
from polymux.cli.operation_arguments import values_of
from polymux.cli.terminal import Screen, write_json, write_text
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    import argparse

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
    with server.answering(options, command.name) as client:
        if talks:
            from polymux.cli.conversation import Conversation

            talk = Conversation(client, command, values, options, screen, streams=streams)
            return talk.run()
        values["messages"] = with_system(values["messages"], options.system)
        return _answer(client, command, values, options, screen, streams=streams)


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


def _answer(
    client: Any,
    command: Command,
    values: dict[str, Any],
    options: argparse.Namespace,
    screen: Screen,
    *,
    streams: bool,
) -> int:
    from polymux.cli.calls import ask

    if not streams:
        result = ask(client, command, values, options, screen)
        return answers.show(result, screen, as_json=options.as_json)
    with ask(client, command, {**values, "stream": True}, options, screen) as stream:
        if options.as_json:
            _print_chunks(stream)
        else:
            print_stream(stream, screen)
    return exit_codes.SUCCESS


def _print_chunks(stream: ChatStream) -> None:
    for chunk in stream:
        write_json(json.loads(chunk.raw))


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
