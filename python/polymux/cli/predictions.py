"""`polymux predictions`: list, inspect, wait for and cancel jobs of a server."""

from __future__ import annotations

import json
import sys
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any

from polymux._util.text import printable
from polymux.cli import JSON, JSON_ARRAY, add_action, answers, server
from polymux.cli.answers import Saver
from polymux.cli.errors import EPILOG, ExitCode
from polymux.cli.progress import Waiting
from polymux.cli.terminal import Screen, write_json, write_line, write_text
from polymux.client.responses.prediction import files_of
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterator

    from polymux.cli import Parser
    from polymux.client.responses import Prediction
    from polymux.client.sync_client import Client

_MAX_LISTED = 100
_EPILOG = """\
examples:
  id=$(polymux generate-video "waves at dusk" --no-wait)
  polymux predictions wait "$id" --output-dir videos

"""


def describe(parser: Parser) -> None:
    parser.description = (
        "Manage the jobs of your API key on a server, such as those started with --no-wait."
    )
    parser.epilog = _EPILOG + server.KEY_HELP + EPILOG
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    listed = _add(
        actions, "list", _list, "list ID, status, model and time of jobs, newest first", JSON_ARRAY
    )
    listed.add_argument(
        "--limit",
        dest="most",
        type=int,
        default=_MAX_LISTED,
        metavar="N",
        help=f"Maximum number of jobs (default: {_MAX_LISTED})",
    )
    _add(actions, "get", _get, "show details of a job")
    _add(actions, "cancel", _get, "cancel a job")
    waited = _add(actions, "wait", _wait, "wait until a job ends and print its output")
    answers.add_output_argument(waited, "its output files")


def _add(
    actions: Any, name: str, act: Callable[..., int], summary: str, json_help: str = JSON
) -> argparse.ArgumentParser:
    parser = add_action(
        actions, name, partial(_run, act), summary, more=server.KEY_HELP, json_help=json_help
    )
    if name != "list":
        parser.add_argument("id", metavar="ID", help="ID of the job, as --no-wait prints it")
    server.add_arguments(parser)
    return parser


def _run(act: Callable[..., int], options: argparse.Namespace) -> int:
    with server.connected(options, f"predictions {options.action}") as client:
        return act(client, options, Screen(quiet=options.quiet))


def _list(client: Client, options: argparse.Namespace, screen: Screen) -> int:
    if options.most < 1:
        raise InvalidRequestError(f"--limit: out of range (got {options.most}, allowed 1 or more)")
    jobs = islice(client.predictions.list(), min(options.most, sys.maxsize))
    if options.as_json:
        write_json([job.json() for job in jobs])
        return ExitCode.SUCCESS
    count = 0
    for count, job in enumerate(jobs, 1):  # noqa: B007 - used after the loop
        facts = (job.id, job.status, job.model, job.created_at)
        write_text("\t".join(printable(fact or "-") for fact in facts) + "\n")
    if not count:
        screen.say("no jobs")
    return ExitCode.SUCCESS


def _get(client: Client, options: argparse.Namespace, screen: Screen) -> int:  # noqa: ARG001
    """Print a job. The action "cancel" cancels it first."""
    act = client.predictions.cancel if options.action == "cancel" else client.predictions.get
    job = act(options.id)
    if options.as_json:
        write_json(job.json())
    else:
        for name, value in _facts(job):
            write_line(f"{name:<10} {value}")
    return ExitCode.SUCCESS


def _wait(client: Client, options: argparse.Namespace, screen: Screen) -> int:
    saver = None
    if options.output_dir is not None:
        saver = Saver(options.output_dir)
        saver.prepare()
    with Waiting(screen) as waiting:
        job = client.predictions.wait(options.id, on_progress=waiting.on_progress)
    return answers.show(job, screen, as_json=options.as_json, saver=saver)


def _facts(job: Prediction) -> Iterator[tuple[str, object]]:
    for name in ("id", "status", "model", "created_at", "started_at", "completed_at", "error"):
        value = getattr(job, name)
        if value is not None:
            yield name.removesuffix("_at"), value
    files = files_of(job)
    for _, file in files:
        yield "file", file
    if not files and job.output is not None:
        yield "output", json.dumps(job.output, ensure_ascii=False)
    for line in job.logs.splitlines():
        yield "log", line
