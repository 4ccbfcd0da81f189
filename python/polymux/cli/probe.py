"""`polymux probe`: show the properties of media files."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from polymux._util.text import clock, display_name, size
from polymux.cli import JSON_LINES
from polymux.cli.convert import add_limit_argument, limits_of
from polymux.cli.errors import EPILOG, ExitCode, code_of
from polymux.cli.terminal import Screen, standard_input, write_json, write_line
from polymux.errors import MissingDependencyError, PolymuxError
from polymux.media.probe import probe

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from polymux.cli import Parser
    from polymux.media.results import MediaInfo, StreamInfo

_JSON_HELP = """\
With --json, each line of standard output is one JSON object: {"input": NAME, "info": {...}} with
the fields of polymux.MediaInfo, or {"input": NAME, "error": {"type", "code", "message", ...}}.

"""


def describe(parser: Parser) -> None:
    parser.description = (
        "Show container, streams, tags, chapters and cover of media files, without decoding them."
    )
    parser.epilog = _JSON_HELP + EPILOG
    parser.add_argument("inputs", metavar="FILE", nargs="+", help="Media file, or - for stdin")
    parser.add_argument("--json", action="store_true", help=JSON_LINES)
    add_limit_argument(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> int:
    """Probe all inputs. Return the exit code."""
    screen = Screen()
    code: int = ExitCode.SUCCESS
    for name in options.inputs:
        source = standard_input() if name == "-" else name
        try:
            info = probe(source, limits=limits_of(options))
        except MissingDependencyError:
            raise
        except PolymuxError as error:
            code = code_of(error) if len(options.inputs) == 1 else ExitCode.FAILURE
            if options.json:
                write_json({"input": name, "error": error.to_dict()})
            else:
                screen.complain(f"polymux: {error}")
            continue
        if options.json:
            write_json({"input": name, "info": info.to_dict()})
        else:
            for line in _lines(name, info):
                write_line(line)
    return code


def _lines(name: str, info: MediaInfo) -> Iterator[str]:
    yield display_name(os.fsencode(name))
    yield f"  container  {info.container_long_name or info.container}"
    if info.duration_s is not None:
        yield f"  duration   {clock(info.duration_s)} ({info.duration_s:.3f} s)"
    if info.size_bytes is not None:
        yield f"  size       {size(info.size_bytes)}"
    if info.bitrate_bps is not None:
        yield f"  bitrate    {info.bitrate_bps / 1000:.0f} kbit/s"
    for stream in info.streams:
        chosen = "  <- used by convert-to-mp3" if stream.index == info.best_audio_stream else ""
        yield f"  stream {stream.index:<3} {_stream(stream)}{chosen}"
    for key, value in info.tags.items():
        yield f"  tag        {key}: {value}"
    for number, chapter in enumerate(info.chapters, 1):
        times = f"{clock(chapter.start_ms / 1000)} to {clock(chapter.end_ms / 1000)}"
        yield f"  chapter {number:<2} {times}  {chapter.title}".rstrip()
    if info.cover is not None:
        yield f"  cover      {info.cover.mime_type}, {size(len(info.cover.data))}"


def _stream(stream: StreamInfo) -> str:
    parts = [stream.type, stream.codec]
    if stream.width:
        parts.append(f"{stream.width}x{stream.height}")
    if stream.sample_rate_hz:
        parts.append(f"{stream.sample_rate_hz} Hz")
    if stream.channels:
        parts.append(stream.channel_layout or f"{stream.channels} channels")
    if stream.bitrate_bps:
        parts.append(f"{stream.bitrate_bps / 1000:.0f} kbit/s")
    parts += [
        word
        for word, is_shown in (
            (stream.language, bool(stream.language)),
            ("cover", stream.is_cover),
            ("encrypted", stream.encrypted),
        )
        if is_shown
    ]
    return ", ".join(parts)
