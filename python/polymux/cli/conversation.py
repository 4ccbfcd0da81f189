"""A conversation with a chat model on a terminal."""

from __future__ import annotations

import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.atomic_file import write_atomically
from polymux._util.text import display_name
from polymux.cli import answers, exit_codes
from polymux.cli.calls import ask
from polymux.cli.chat import print_stream, with_system
from polymux.cli.errors import report
from polymux.errors import OutputError, PolymuxError

if TYPE_CHECKING:
    import argparse

    from polymux.cli.operation_arguments import Command
    from polymux.cli.terminal import Screen
    from polymux.client.methods.synchronous import Operations


_PROMPT = "> "
_COMMAND = re.compile(r"/[a-z]+")
_HELP = """\
/clear          forget what was said
/system TEXT    tell the model something before all else; without TEXT, show what it is told
/save FILE      write the conversation: as JSON to a .json for 'polymux chat @FILE', else as text
/quit           end the conversation, as Ctrl-D does
Ctrl-C ends the answer that is coming; twice, the conversation."""


class Conversation:
    """Reads lines, asks the model with all that was said before, and prints its answers.

    Args:
        client: Whom to ask.
        command: The operation.
        values: Its fields but for the messages.
        options: Parsed; `system`, and the rest for the call.
        screen: For all that is no answer.
        streams: Print answers as they come.
    """

    def __init__(
        self,
        client: Operations,
        command: Command,
        values: dict[str, Any],
        options: argparse.Namespace,
        screen: Screen,
        *,
        streams: bool,
    ) -> None:
        self._client = client
        self._command = command
        self._values = values
        self._options = options
        self._screen = screen
        self._streams = streams
        self._system: str | None = options.system
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
                return exit_codes.SUCCESS
            except KeyboardInterrupt:
                self._screen.complain("")
                if interrupted:
                    return exit_codes.INTERRUPTED
                self._screen.say("Ctrl-C once more, Ctrl-D or /quit ends the conversation")
                interrupted = True
                continue
            interrupted = False
            if line in ("/quit", "/exit"):
                return exit_codes.SUCCESS
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
            result = self._ask()
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

    def _ask(self) -> Any:
        messages = with_system(list(self._said), self._system)
        values = {**self._values, "messages": messages}
        if self._streams:
            values["stream"] = True
        return ask(self._client, self._command, values, self._options, self._screen)

    def _obey(self, word: str, rest: str) -> None:
        if word == "/help":
            self._screen.say_text(_HELP)
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
