"""`polymux convert-to-mp3`."""

from __future__ import annotations

import argparse
from dataclasses import fields
from functools import partial
from typing import TYPE_CHECKING, Any

from polymux._util.text import shown
from polymux.cli import server
from polymux.cli.errors import EPILOG
from polymux.errors import InvalidRequestError
from polymux.media.options import Limits, native_options

if TYPE_CHECKING:
    from polymux.cli import Parser
    from polymux.media.options import EncodingOptions

_EPILOG = """\
The output stands next to the input, with .mp3 in the place of its suffix, unless -o says
otherwise. Existing files are kept unless --overwrite is given. With --recursive, files that are no
media, or have no audio, are counted and left out; folders of the input appear below -o FOLDER.

Everything is done on this computer unless --server names one that does it; options that only this
computer has are refused then. A server is never taken from the environment here, so that no file
leaves this computer unasked.

With --url the output has the name that the address ends with, in this folder unless -o says
otherwise. What lies in this computer's own network is refused, and so are options that a server
does not have: they are for files.

With --json, each line of standard output is one object ("report" is of files that are converted
here; of a server's there is its "url"):
  {"status": "converted", "input", "output", "report": {duration_s, frames, bytes, warnings, ...}}
  {"status": "failed", "input", "error": {"type", "code", "message", ...}}
  {"status": "skipped", "input", "reason": "exists" | "is_mp3" | "not_media"}
  {"status": "summary", "converted", "failed", "skipped", "elapsed_s"}     (the last line)

examples:
  polymux convert-to-mp3 talk.mp4
  polymux convert-to-mp3 --bitrate 128k -o short.mp3 --start 0:30 --end 1:00 talk.mp4
  polymux convert-to-mp3 --recursive --skip-existing -o mp3/ recordings/
  polymux convert-to-mp3 - < talk.mp4 > talk.mp3
  polymux convert-to-mp3 talk.mp4 --server https://server.example
  polymux convert-to-mp3 --url https://files.example/talk.ogg

"""


def describe(parser: Parser) -> None:
    """Describes the command to argparse."""
    parser.description = (
        "Converts any audio or video to MP3, with the frames of the ffmpeg program."
    )
    parser.epilog = _EPILOG + EPILOG
    parser.add_argument(
        "inputs", metavar="INPUT", nargs="*", help="a file, a folder, or - for standard input"
    )
    parser.add_argument(
        "-o", "--output", metavar="FILE_OR_FOLDER", help="where to write; - is standard output"
    )
    _add_file_arguments(parser)
    _add_encoding_arguments(parser)
    _add_content_arguments(parser)
    add_limit_argument(parser)
    parser.add_argument("--url", help="address of a media file or a page, instead of INPUT")
    server.add_arguments(parser, where="have it done by this server; default: done here")
    parser.set_defaults(run=run, parser=parser)


def _add_file_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("files")
    group.add_argument(
        "-r", "--recursive", action="store_true", help="convert what is in folders, at any depth"
    )
    existing = group.add_mutually_exclusive_group()
    existing.add_argument("--overwrite", action="store_true", help="replace existing outputs")
    existing.add_argument(
        "--skip-existing", action="store_true", help="leave out inputs that have an output"
    )
    group.add_argument(
        "-j", "--jobs", type=int, metavar="N", help="files at a time (default: twice the cores)"
    )
    group.add_argument("-q", "--quiet", action="store_true", help="show errors only")
    group.add_argument("--json", action="store_true", help="one JSON object per line")


def _add_encoding_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("encoding")
    group.add_argument("-b", "--bitrate", metavar="RATE", help="constant, such as 128k or 128000")
    group.add_argument(
        "-V",
        "--vbr-quality",
        type=float,
        metavar="Q",
        help="variable bitrate, 0 (best) to below 10 (default: 0 without --bitrate)",
    )
    group.add_argument("--abr", action="store_true", help="make --bitrate an average")
    group.add_argument(
        "--preset", choices=("ffmpeg", "best", "fast"), default="ffmpeg", help="default: ffmpeg"
    )
    group.add_argument("--sample-rate", type=int, metavar="HZ", help="8000 to 48000")
    group.add_argument("--channels", type=int, metavar="N", help="1 or 2")
    group.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="maximum number of threads for one file; at a constant bitrate 1 makes every frame "
        "ffmpeg's (default: all cores)",
    )
    group.add_argument(
        "--exact",
        action="store_true",
        help="with --abr or variable bitrate: one encoder from beginning to end, so that every "
        "frame is ffmpeg's also in files over 15 s (with --bitrate alone, use --threads 1)",
    )
    group.add_argument(
        "--verify",
        choices=("first-seam", "all"),
        help="compare every frame of the segment behind the first seam of parallel encoding, or "
        "behind all; costs time (default: only the frames at the seam)",
    )
    group.add_argument(
        "--identical-file",
        action="store_true",
        help="make the whole file, tags included, equal to that of 'ffmpeg -vn'; at average or "
        "variable bitrate this means --exact too",
    )


def _add_content_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("content")
    group.add_argument(
        "--audio-stream", type=int, metavar="INDEX", help="as 'polymux probe' numbers"
    )
    group.add_argument("--start", metavar="TIME", help="seconds, or [HH:]MM:SS[.mmm]")
    group.add_argument("--end", metavar="TIME", help="seconds, or [HH:]MM:SS[.mmm]")
    text = group.add_mutually_exclusive_group()
    text.add_argument(
        "--tags", choices=("copy", "none"), default="copy", help="the input's tags; default: copy"
    )
    text.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        type=partial(_pair, "KEY=VALUE"),
        help="replaces the input's text tags; may be repeated",
    )
    group.add_argument(
        "--cover", choices=("copy", "none"), default="copy", help="the picture; default: copy"
    )
    group.add_argument("--id3v2-version", type=int, choices=(3, 4), default=3, help="default: 3")
    group.add_argument("--strict", action="store_true", help="damaged input is an error")


def _encoding(options: argparse.Namespace) -> EncodingOptions:
    return {
        "bitrate": options.bitrate,
        "vbr_quality": options.vbr_quality,
        "abr": options.abr,
        "preset": options.preset,
        "sample_rate": options.sample_rate,
        "channels": options.channels,
        "audio_stream": options.audio_stream,
        "start": options.start,
        "end": options.end,
        "tags": dict(options.tag) if options.tag else options.tags,
        "cover": options.cover,
        "id3v2_version": options.id3v2_version,
        "identical_file": options.identical_file,
        "threads": options.threads,
        "exact": options.exact,
        "verify": options.verify,
        "strict": options.strict,
        "limits": limits_of(options),
    }


def run(options: argparse.Namespace) -> int:
    """Converts every input; the exit code."""
    if not options.inputs and options.url is None:
        options.parser.error("the following arguments are required: INPUT")
    from polymux.cli import conversions

    if options.server is not None or options.url is not None:
        return conversions.run_elsewhere(options)
    server.refuse_without_server(
        options, "no server is named, give --server URL", has_deadline=False
    )
    return conversions.run_here(options, native_options(_encoding(options)))


def add_limit_argument(command: argparse.ArgumentParser) -> None:
    """Adds `--limit NAME=NUMBER`, which may be repeated."""
    command.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        type=partial(_pair, "NAME=NUMBER"),
        help="what an input may cost: probe_bytes, streams, duration_s, sample_rate_hz, channels, "
        "tag_bytes or chapters, as in polymux.Limits; may be repeated",
    )


def _pair(form: str, text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not of the form {form}")
    return name, value


def limits_of(options: argparse.Namespace) -> Limits | None:
    """The limits that were asked for; None for the defaults.

    Raises:
        InvalidRequestError: There is no such limit, or the value is not a number.
    """
    if not options.limit:
        return None
    known = {item.name for item in fields(Limits)}
    values: dict[str, Any] = {}
    for name, text in options.limit:
        if name not in known:
            raise InvalidRequestError(
                f"there is no limit {shown(name)}; there are {', '.join(sorted(known))}"
            )
        try:
            values[name] = float(text) if name == "duration_s" else int(text)
        except ValueError:
            raise InvalidRequestError(f"--limit {name} is a number, not {shown(text)}") from None
    return Limits(**values)
