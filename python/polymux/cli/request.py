"""`polymux request`: validate and print the HTTP request of an operation."""

from __future__ import annotations

import argparse
import json
import shlex
from typing import TYPE_CHECKING, Any

from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG, ExitCode
from polymux.cli.operation_arguments import add_arguments, extra_body_of, find_command, values_of
from polymux.cli.terminal import write_line
from polymux.client.multipart import field_text
from polymux.client.request import build_request

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.cli import Parser
    from polymux.cli.operation_arguments import Command
    from polymux.client.request import Request

_EPILOG = """\
example:
  polymux request transcribe talk.mp4 --task translate --format curl

"""


def describe(parser: Parser) -> None:
    parser.description = (
        "Validate a request of an operation and print it without sending it: as HTTP, as a "
        "curl command or as JSON.\n'polymux request OPERATION --help' lists the operation's "
        "fields."
    )
    parser.epilog = _EPILOG + EPILOG
    parser.add_argument("operation", metavar="OPERATION", help="Method name, command or alias")
    parser.add_argument(
        "words", metavar="ARGUMENT", nargs=argparse.REMAINDER, help="Fields of the operation"
    )
    parser.set_defaults(run=run, parser_class=type(parser))


def run(options: argparse.Namespace) -> int:
    """Print the request. Return the exit code."""
    command = find_command(options.operation)
    given = _parser(command, options.parser_class).parse_args(options.words)
    values = values_of(command, given)
    extra_body = extra_body_of(given)
    model = given.selected_model if command.models else None
    request = build_request(command.operation, values, model=model, extra_body=extra_body)
    if given.format == "curl":
        write_line(" ".join(_curl(command, request, {**values, **(extra_body or {})})))
    elif given.format == "json":
        write_line(json.dumps(_described(request)))
    else:
        for line in _http(request, written=given.output is not None):
            write_line(line)
    if given.output is not None:
        with open(given.output, "wb") as file:  # noqa: PTH123 - accepts any path
            pieces = (request.body,) if isinstance(request.body, bytes) else request.body
            file.writelines(pieces)
    return ExitCode.SUCCESS


def _parser(command: Command, parser_class: type[argparse.ArgumentParser]) -> Any:
    """Return the parser of one operation's fields."""
    parser = parser_class(
        prog=f"polymux request {command.name}",
        description=command.summary,
        allow_abbrev=False,
    )
    add_arguments(parser, command)
    form = parser.add_argument(
        "--format",
        choices=("http", "curl", "json"),
        default="http",
        help="Output format: HTTP, a curl command or one JSON object (default: http)",
    )
    add_old_option(parser, "--show", form)
    parser.add_argument("-o", "--output", metavar="FILE", help="Write the body to this file")
    return parser


def _http(request: Request, *, written: bool) -> Iterator[str]:
    yield f"POST {request.target} HTTP/1.1"
    yield f"Content-Type: {request.content_type}"
    length = request.length_bytes
    yield "Transfer-Encoding: chunked" if length is None else f"Content-Length: {length}"
    yield ""
    if isinstance(request.body, bytes):
        yield request.body.decode()
    elif not written:
        yield "(multipart body; use --output FILE to write it to a file)"


def _described(request: Request) -> dict[str, Any]:
    body = json.loads(request.body) if isinstance(request.body, bytes) else None
    return {
        "method": "POST",
        "path": request.path,
        "query": dict(request.query),
        "content_type": request.content_type,
        "length_bytes": request.length_bytes,
        "body": body,
    }


def _curl(command: Command, request: Request, values: dict[str, Any]) -> Iterator[str]:
    yield "curl"
    yield f'"$POLYMUX_BASE_URL"{shlex.quote(request.target)}'
    yield '-H "Authorization: Bearer $POLYMUX_API_KEY"'
    if isinstance(request.body, bytes):
        yield "-H 'Content-Type: application/json'"
        yield f"--data-binary {_word(request.body.decode())}"
        return
    files = {one.name for one in command.arguments if one.kind == "file"}
    for name, value in values.items():
        if name in files:
            yield f"-F {_word(f'{name}={_curl_file(value)}')}"
        else:
            yield f"--form-string {_word(f'{name}={field_text(name, value)}')}"


def _curl_file(value: Any) -> str:
    if isinstance(value, tuple):
        return "@-"
    # curl's quoted file names need escapes only for these two characters.
    escaped = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'@"{escaped}"'


def _word(text: str) -> str:
    """Quote a text as one shell word; unprintable characters are escaped for bash."""
    if text.isprintable():
        return shlex.quote(text)
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return "$'" + "".join(one if one.isprintable() else _escape(one) for one in escaped) + "'"


def _escape(char: str) -> str:
    code = ord(char)
    if 0xDC80 <= code <= 0xDCFF:  # A byte of a file name that is not UTF-8.
        return f"\\x{code - 0xDC00:02x}"
    return f"\\U{code:08x}"
