"""`polymux batch`: run one operation on many inputs."""

from __future__ import annotations

import argparse
import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Any

from polymux._util.text import clock, display_name
from polymux.batches.inputs import Listed
from polymux.batches.manifest import report_of
from polymux.cli import JSON_LINES, add_quiet, errors, server
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG, ExitCode
from polymux.cli.operation_arguments import add_arguments, extra_body_of, find_command, values_of
from polymux.cli.operation_names import NAMES
from polymux.cli.terminal import Screen, standard_input, write_json
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from polymux.batches.results import BatchItem, BatchProgress, BatchReport
    from polymux.cli import Parser
    from polymux.cli.operation_arguments import Command

_EPILOG = """\
INPUT is a file, a directory (searched recursively for files that the operation supports), a quoted
glob pattern ('music/**/*.flac'), or - for a list of paths on standard input, one per line, or
separated by null bytes with -0. For operations on text, INPUT is a file with one text per line, or
with one JSON object of fields per line if its name ends with .jsonl; - reads such a file from
standard input.

A manifest (polymux-batch.db in the output directory) records the progress. After an interruption,
run the command again with --resume to skip finished items. Options of the operation that you leave
out are then those of the earlier run. Invalid lines of a file are reported and left out.

Press Ctrl-C once to finish the running items and stop, twice to stop at once. If the server limits
the rate of requests, the batch waits and then continues.

The batch runs on this machine unless you set --server. POLYMUX_BASE_URL is ignored here, so that
files do not leave this machine by accident. --ray distributes the work over a Ray cluster. If INPUT
follows --ray, write --ray=ADDRESS or --ray=local.

With --json, each line of standard output is one JSON object:
  {"status": "done" | "failed", "id", "input", "outputs", "copied_from", "error_code", ...}
  {"status": "summary", "total", "done", "failed", "waiting", "kept", "copied", ...} (the last line)

"""
_EXAMPLES = """\
examples:
  polymux batch convert-to-mp3 recordings/ --output-dir mp3/ --bitrate 128k
  polymux batch convert-to-mp3 --output-dir mp3/ --resume --retry-failed
  find . -name '*.wav' -print0 | polymux batch transcribe -0 - --output-dir texts/ --workers 2
  polymux batch generate-image prompts.txt --output-dir images/ --server https://server.example
  polymux batch --show mp3/polymux-batch.db --report mp3.csv

"""


def describe(parser: Parser) -> None:
    """Add the command's arguments to argparse, and those of an operation only if it is used."""
    parser.allow_abbrev = False
    parser.description = (
        "Run one operation on many inputs. 'polymux batch OPERATION --help' lists its options."
    )
    parser.epilog = _EPILOG + _EXAMPLES + EPILOG
    parser.add_argument(
        "--show", metavar="FILE", help="Print the status of the batch in this manifest"
    )
    parser.add_argument(
        "--report",
        metavar="FILE",
        help="With --show: file for a table of all items (.csv, .jsonl or .parquet)",
    )
    parser.add_argument(
        "--json",
        dest="as_json",
        action="store_true",
        help="With --show: print one JSON object per line",
    )
    add_quiet(parser)
    parser.set_defaults(run=partial(_show, parser))
    operations = parser.add_subparsers(title="operations", metavar="OPERATION", dest="operation")
    for _, name, aliases, title in NAMES:
        operations.add_parser(
            name,
            aliases=aliases,
            help=title[0].lower() + title[1:],
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
            describe=partial(_describe_operation, name),
        )


def _describe_operation(name: str, parser: Parser) -> None:
    command = find_command(name)
    first, *others = command.arguments
    parser.set_defaults(run=partial(run, command))
    parser.description = command.summary
    parser.epilog = _EPILOG + EPILOG
    what = "a file, directory, pattern or -" if first.kind == "file" else "a file of texts, or -"
    parser.add_argument("inputs", metavar="INPUT", nargs="*", help=f"Input: {what}; see below")
    _add_arguments(parser.add_argument_group("batch"))
    own = [one for one in others if one.name != "stream" or one.kind != "boolean"]
    add_arguments(parser, command._replace(arguments=tuple(own)))
    server.add_arguments(parser, where="URL of the server to use (default: run locally)")


def _add_arguments(group: Any) -> None:
    output = group.add_argument(
        "--output-dir", metavar="DIR", required=True, help="Output directory"
    )
    add_old_option(group, "--out", output)
    group.add_argument(
        "-j",
        "--workers",
        type=int,
        metavar="N",
        help="Number of inputs to process in parallel (default: twice the number of CPU cores for "
        "local conversions, else 4; with --ray: as many as fit into the cluster)",
    )
    group.add_argument(
        "--ray",
        metavar="ADDRESS",
        nargs="?",
        const="local",
        help="Run the batch on a Ray cluster: HOST:PORT, 'auto' for the cluster of this machine, "
        "or 'local' to start one for this batch (without ADDRESS: local)",
    )
    group.add_argument(
        "--ray-cpus",
        type=float,
        metavar="N",
        default=1.0,
        help="With --ray: CPUs per worker (default: 1)",
    )
    group.add_argument(
        "--ray-gpus",
        type=float,
        metavar="N",
        default=0.0,
        help="With --ray: GPUs per worker, such as 0.25 (default: 0)",
    )
    group.add_argument(
        "--resume", action="store_true", help="Continue the batch and skip finished items"
    )
    group.add_argument(
        "--retry-failed", action="store_true", help="Continue the batch and retry failed items"
    )
    group.add_argument(
        "--fail-fast", action="store_true", help="Start no more items after the first failure"
    )
    group.add_argument(
        "--overwrite",
        action="store_true",
        help="Replace existing files that are not from this batch",
    )
    group.add_argument(
        "--manifest",
        metavar="FILE",
        help="Manifest file (default: polymux-batch.db in the output directory)",
    )
    group.add_argument(
        "--report", metavar="FILE", help="File for a table of all items (.csv, .jsonl or .parquet)"
    )
    group.add_argument(
        "-0",
        dest="by_zeros",
        action="store_true",
        help="Paths on standard input (INPUT -) are separated by null bytes, not by newlines",
    )
    add_quiet(group)
    group.add_argument("--json", dest="as_json", action="store_true", help=JSON_LINES)


def run(command: Command, options: argparse.Namespace) -> int:
    """Run a batch. Return the exit code."""
    from polymux.batches.api import batch

    own = command._replace(
        arguments=tuple(one for one in command.arguments[1:] if hasattr(options, one.name))
    )
    fields = {**values_of(own, options), "extra_body": extra_body_of(options)}
    if command.models and options.selected_model is not None:
        fields["model"] = options.selected_model
    if not options.inputs and not (options.resume or options.retry_failed):
        raise InvalidRequestError(
            "INPUT: missing. Pass inputs, or use --resume to continue a batch"
        )
    if options.inputs.count("-") > 1:
        raise InvalidRequestError("INPUT: standard input (-) can be used only once")
    screen = BatchScreen(quiet=options.quiet, as_json=options.as_json)
    with ExitStack() as stack:
        client = None
        if options.server is not None and options.ray is not None:
            raise InvalidRequestError("--server and --ray cannot be used together")
        if options.server is not None:
            client = stack.enter_context(server.connected(options, f"batch {command.name}"))
        else:
            server.refuse_without_server(options, "requires --server")
            errors.is_done_here()
        stack.callback(screen.clear)
        report = batch(
            command.operation,
            list(_inputs(command, options)),
            output_dir=options.output_dir,
            workers=options.workers,
            client=client,
            ray=options.ray,
            ray_cpus=options.ray_cpus,
            ray_gpus=options.ray_gpus,
            resume=options.resume,
            retry_failed=options.retry_failed,
            fail_fast=options.fail_fast,
            overwrite=options.overwrite,
            manifest=options.manifest,
            report=options.report,
            timeout=options.deadline_s,
            on_progress=screen.on_progress,
            on_item=screen.on_item,
            **fields,
        )
    screen.summarise(report)
    return ExitCode.FAILURE if report.failed or report.unread else ExitCode.SUCCESS


def _inputs(command: Command, options: argparse.Namespace) -> Iterator[Any]:
    for one in options.inputs:
        if one == "-":
            yield Listed(standard_input(), b"\0" if options.by_zeros else b"\n")
        elif command.arguments[0].kind == "file":
            yield one
        else:
            yield Path(one)


def _show(parser: Parser, options: argparse.Namespace) -> int:
    """Print the status of a manifest. Return the exit code."""
    if options.show is None:
        parser.error("missing OPERATION or --show FILE")
    screen = BatchScreen(quiet=options.quiet, as_json=options.as_json)
    report = report_of(options.show)
    if options.report is not None:
        report.write(options.report)
    for item in report.items(None if options.as_json else "failed"):
        screen.on_item(item)
    screen.summarise(report)
    return ExitCode.SUCCESS


_DRAWN_EVERY_S = 0.2
_PRINTED_EVERY_S = 15.0
_COUNTS = ("total", "done", "failed", "waiting", "kept", "copied", "repeated", "ignored", "remade")


class BatchScreen:
    """Shows progress and failures.

    The progress line is redrawn on a terminal, else printed from time to time.

    Args:
        quiet: Show only errors.
        as_json: Print one JSON object for each item to standard output.
        clock: Monotonic clock in seconds.
    """

    def __init__(
        self, *, quiet: bool, as_json: bool, clock: Callable[[], float] = monotonic
    ) -> None:
        self.as_json = as_json
        self._screen = Screen(quiet=quiet)
        self._clock = clock
        self._shown_at = clock()
        self._is_stopping = False

    def on_progress(self, now: BatchProgress) -> None:
        if now.is_stopping and not self._is_stopping:
            self._is_stopping = True
            self._screen.say("polymux: finishing the running items. Press Ctrl-C again to stop now")
        every_s = _DRAWN_EVERY_S if self._screen.draws else _PRINTED_EVERY_S
        if self._clock() - self._shown_at < every_s:
            return
        self._shown_at = self._clock()
        if self._screen.draws:
            self._screen.draw(progress_line(now))
        else:
            self._screen.say(f"polymux: {progress_line(now)}")

    def on_item(self, item: BatchItem) -> None:
        """Show an item that has ended, or an item of a manifest."""
        if self.as_json:
            write_json({"status": item.state} | item.to_dict())
        elif item.state == "failed":
            name, words = display_name(os.fsencode(item.input)), item.error_message or ""
            self._screen.complain(f"polymux: {words if name in words else f'{name}: {words}'}")

    def clear(self) -> None:
        """Remove the progress line."""
        self._screen.clear()

    def summarise(self, report: BatchReport) -> None:
        """Print a summary."""
        counts = {name: getattr(report, name) for name in _COUNTS}
        if self.as_json:
            elapsed_s = round(report.elapsed_s, 3)
            path = os.fspath(report.manifest)
            others = {"unread": report.unread, "elapsed_s": elapsed_s, "manifest": path}
            write_json({"status": "summary", **counts, **others})
            return
        for one in report.unread:
            self._screen.complain(f"polymux: {one}")
        words = [f"{counts[name]} {name}" for name in ("done", "failed", "waiting") if counts[name]]
        more = [
            words_
            for name, words_ in (
                ("kept", "{} done in earlier runs"),
                ("copied", "{} with results copied from identical inputs"),
                ("remade", "{} processed again because their input or output had changed"),
                ("repeated", "{} duplicate input{s} skipped"),
                ("ignored", "{} file{s} of unsupported types ignored"),
            )
            if counts[name]
            for words_ in [words_.format(counts[name], s="" if counts[name] == 1 else "s")]
        ]
        took = f" in {report.elapsed_s:.1f} s" if report.elapsed_s else ""
        self._screen.say(f"{', '.join(words) or 'nothing to do'}{took}")
        if more:
            self._screen.say(f"  {', '.join(more)}")
        if report.unread:
            self._screen.say("  correct these inputs, then use --resume with the same INPUT")
        if report.failed:
            manifest = display_name(os.fsencode(report.manifest))
            self._screen.say(
                f"  use --retry-failed to retry them, or 'polymux batch --show {manifest}' for "
                "details"
            )


def progress_line(now: BatchProgress) -> str:
    """Return counts, speed and remaining time.

    Example:
        >>> from polymux.batches.results import BatchProgress
        >>> from polymux.cli.batch import progress_line
        >>> progress_line(BatchProgress(30, 2, 100, False, 0, 0, 32, 0, 16.0, 0.0, False))
        '32 of 100 items  2 failed  2.0/s  0:34 left'
    """
    total = f"at least {now.total}" if now.is_counting else str(now.total)
    parts = [f"{now.done + now.failed} of {total} items"]
    if now.failed:
        parts.append(f"{now.failed} failed")
    if now.items_per_s:
        parts.append(f"{now.items_per_s:.1f}/s")
    if now.paused_s > 0:
        parts.append(f"rate limited by the server, waiting {now.paused_s:.0f} s")
    elif now.eta_s is not None:
        parts.append(f"{clock(now.eta_s)} left")
    return "  ".join(parts)
