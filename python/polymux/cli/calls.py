"""The operations as commands, such as `polymux generate-image "a lighthouse"`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.cli import JSON, add_quiet, answers, chat, server
from polymux.cli.answers import Saver, stem_of
from polymux.cli.errors import EPILOG, ExitCode
from polymux.cli.operation_arguments import add_arguments, find_command, values_of
from polymux.cli.progress import ask
from polymux.cli.terminal import Screen
from polymux.client.methods.results import JOBS, RESULTS
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    import argparse

    from polymux.cli import Parser
    from polymux.cli.operation_arguments import Command

#: Operations that can take long without a GPU; --local limits their duration.
_GENERATIONS = ("generate_image", "upscale_image", "generate_video", "generate_music")
#: Operations whose output names are derived from the input text.
_MADE_OF_TEXT = ("generate_image", "generate_video", "generate_music", "download_music")


def describe(parser: Parser) -> None:
    """Add the arguments of the operation in the parser's name to argparse."""
    from polymux.cli import identify  # It calls `run`.

    command = find_command(parser.prog.rpartition(" ")[2])
    parser.allow_abbrev = False
    is_chat = command.operation in chat.OPERATIONS
    is_of_songs = command.operation in identify.OPERATIONS
    act = chat.run if is_chat else identify.run if is_of_songs else run
    parser.set_defaults(run=partial(act, command))
    parser.usage = f"%(prog)s [options] [{command.arguments[0].metavar}]"
    parser.description = command.summary
    more = chat.HELP if is_chat else identify.HELP if is_of_songs else ""
    parser.epilog = more + server.KEY_HELP + server.LOCAL_HELP + EPILOG
    add_arguments(parser, chat.with_stream_help(command) if is_chat else command)
    if is_of_songs:
        identify.add_arguments(parser, command)
    group = parser.add_argument_group("output")
    if command.operation == "transcribe":
        answers.add_transcript_arguments(group)
    elif RESULTS[command.operation] in ("MediaFile", "Prediction"):
        answers.add_output_argument(group, "the output files")
    if command.operation in JOBS:
        group.add_argument(
            "--no-wait",
            dest="wait_for_end",
            action="store_false",
            help="Print the job's ID and exit; see 'polymux predictions'",
        )
    if is_chat:
        chat.add_arguments(group)
    group.add_argument("--json", dest="as_json", action="store_true", help=JSON)
    add_quiet(group)
    server.add_arguments(parser, local=True)
    if command.operation in _GENERATIONS:
        server.add_max_generation(parser)


def run(command: Command, options: argparse.Namespace) -> int:
    """Run the operation on a server or locally and show the result. Return the exit code."""
    values = values_of(command, options)
    screen = Screen(quiet=options.quiet)
    saver = _saver(command, options, values)
    transcript = answers.transcript_of(options) if command.operation == "transcribe" else None
    makes_files = RESULTS[command.operation] in ("MediaFile", "Prediction")
    if options.local and makes_files and getattr(options, "output_dir", "") is None:
        raise InvalidRequestError(
            "--local: output files are deleted when the command ends. Use --output-dir DIR to keep "
            "them"
        )
    with server.answering(options, command.name) as client:
        result = ask(client, command, values, options, screen)
        if not getattr(options, "wait_for_end", True) and answers.show_job(
            result, screen, as_json=options.as_json
        ):
            return ExitCode.SUCCESS
        if transcript is not None:
            return transcript.show(result)
        return answers.show(result, screen, as_json=options.as_json, saver=saver)


def _saver(command: Command, options: argparse.Namespace, values: dict[str, Any]) -> Saver | None:
    folder = getattr(options, "output_dir", None)
    if folder is None:
        return None
    if not getattr(options, "wait_for_end", True):
        raise InvalidRequestError("--output-dir and --no-wait cannot be used together")
    first = command.arguments[0]
    value, stem = values.get(first.name), ""
    if first.kind == "file":
        stem = "upscaled"
        if isinstance(value, str):
            stem = f"{Path(value).stem[:60]}-{stem}"
    elif command.operation in _MADE_OF_TEXT and isinstance(value, str):
        stem = stem_of(value)
    saver = Saver(folder, stem)
    saver.prepare()
    return saver
