"""`polymux convert-to-mp3`: convert audio and video files."""

from __future__ import annotations

import argparse
from functools import partial
from typing import TYPE_CHECKING, Any

from polymux._util.text import shown
from polymux.cli import JSON_LINES, add_quiet, server
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG
from polymux.errors import InvalidRequestError
from polymux.media.options import Limits, native_options

if TYPE_CHECKING:
    from polymux.cli import Parser
    from polymux.media.options import EncodingOptions

_EPILOG = """\
The output is written next to the input with the suffix .mp3, unless you set --output or
--output-dir. As with ffmpeg, 'INPUT NEW.mp3' writes INPUT to NEW.mp3, if it does not exist yet.
Existing files are kept unless you set --overwrite. With --recursive, files that are
not media or have no audio are skipped and counted. Files with the name of a media file that cannot
be read count as failed. Subdirectories are recreated in --output-dir.

Conversions run on this machine unless you set --server, which rejects options that only work
locally. POLYMUX_BASE_URL is ignored here, so that files do not leave this machine by accident.

With --url, the output is named after the file in the URL and written to the current directory,
unless you set --output or --output-dir. URLs of private networks are blocked (SSRF protection), and
options that only work for files are rejected.

With --json, each line of standard output is one JSON object. Local conversions have a "report",
conversions on a server have the "url" of the output:
  {"status": "converted", "input", "output", "report": {duration_s, frames, bytes, warnings, ...}}
  {"status": "failed", "input", "error": {"type", "code", "message", ...}}
  {"status": "skipped", "input", "reason": "exists" | "is_mp3" | "not_media"}
  {"status": "summary", "converted", "failed", "skipped", "elapsed_s"}     (the last line)

examples:
  polymux convert-to-mp3 talk.mp4
  polymux convert-to-mp3 talk.mp4 short.mp3 --start 0:30
  polymux convert-to-mp3 --bitrate 128k -o short.mp3 --start 0:30 --end 1:00 talk.mp4
  polymux convert-to-mp3 --recursive --skip-existing --output-dir mp3/ recordings/
  polymux convert-to-mp3 - < talk.mp4 > talk.mp3
  polymux convert-to-mp3 talk.mp4 --server https://server.example
  polymux convert-to-mp3 --url https://files.example/talk.ogg

"""


def describe(parser: Parser) -> None:
    parser.description = (
        "Convert audio and video files to MP3, with the same frames as the ffmpeg program."
    )
    parser.epilog = _EPILOG + EPILOG
    parser.add_argument(
        "inputs", metavar="INPUT", nargs="*", help="File, directory, or - for standard input"
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        help="Output file; - is standard output (default: next to the input)",
    )
    output.add_argument("--output-dir", metavar="DIR", help="Output directory")
    _add_file_arguments(parser)
    _add_encoding_arguments(parser)
    _add_content_arguments(parser)
    add_limit_argument(parser)
    parser.add_argument(
        "--url", help="URL of a media file, or page URL of an online video, instead of INPUT"
    )
    server.add_arguments(parser, where="URL of the server to use (default: run locally)")
    parser.set_defaults(run=run, parser=parser)


def _add_file_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("files")
    group.add_argument(
        "-r", "--recursive", action="store_true", help="Convert files in directories, recursively"
    )
    existing = group.add_mutually_exclusive_group()
    existing.add_argument("--overwrite", action="store_true", help="Replace existing output files")
    existing.add_argument(
        "--skip-existing", action="store_true", help="Skip inputs whose output already exists"
    )
    workers = group.add_argument(
        "-j",
        "--workers",
        type=int,
        metavar="N",
        help="Number of inputs to process in parallel (default: twice the number of CPU cores)",
    )
    add_old_option(group, "--jobs", workers)
    add_quiet(group)
    group.add_argument("--json", action="store_true", help=JSON_LINES)


def _add_encoding_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("encoding")
    group.add_argument(
        "-b", "--bitrate", metavar="RATE", help="Constant bitrate, such as 128k or 128000"
    )
    group.add_argument(
        "-V",
        "--vbr-quality",
        type=float,
        metavar="Q",
        help="Variable bitrate quality, at least 0 (best) and below 10 (default: 0 without "
        "--bitrate)",
    )
    group.add_argument("--abr", action="store_true", help="Use --bitrate as an average bitrate")
    group.add_argument(
        "--preset",
        choices=("ffmpeg", "best", "fast"),
        default="ffmpeg",
        help="Encoder preset: ffmpeg encodes like the ffmpeg program, best sounds better at "
        "constant bitrates, fast needs about half the time (default: ffmpeg)",
    )
    group.add_argument(
        "--sample-rate",
        type=int,
        metavar="HZ",
        help="Sample rate of the MP3, 8000 to 48000 Hz (default: the supported rate nearest to the "
        "input's)",
    )
    group.add_argument(
        "--channels",
        type=int,
        metavar="N",
        help="Number of channels, 1 or 2 (default: 1 for mono input, else 2)",
    )
    group.add_argument(
        "--threads",
        type=int,
        metavar="N",
        help="Maximum number of threads per file (default: all cores)",
    )
    group.add_argument(
        "--exact",
        action="store_true",
        help="With --abr or a variable bitrate: encode sequentially, which makes all frames "
        "identical to ffmpeg's even in files over 15 s (they always are with only --bitrate)",
    )
    group.add_argument(
        "--verify",
        nargs="?",
        const="sequential",
        choices=("sequential", "ffmpeg", "first-seam", "all"),
        metavar="REFERENCE",
        help="Compare every audio frame with those of one encoder for the whole file (sequential, "
        "the default) or of the ffmpeg program (ffmpeg), and fail if one differs",
    )
    group.add_argument(
        "--identical-file",
        action="store_true",
        help="Make the whole file, including tags, identical to that of 'ffmpeg -vn'; implies "
        "--exact for an average or variable bitrate",
    )


def _add_content_arguments(command: argparse.ArgumentParser) -> None:
    group = command.add_argument_group("content")
    group.add_argument(
        "--audio-stream",
        type=int,
        metavar="INDEX",
        help="Index of the stream to convert; see 'polymux probe' (default: the best audio stream)",
    )
    group.add_argument(
        "--start",
        metavar="TIME",
        help="Start time: seconds, or [HH:]MM:SS[.mmm] (default: the start of the input)",
    )
    group.add_argument(
        "--end",
        metavar="TIME",
        help="End time: seconds, or [HH:]MM:SS[.mmm] (default: the end of the input)",
    )
    text = group.add_mutually_exclusive_group()
    text.add_argument(
        "--tags",
        choices=("copy", "none"),
        default="copy",
        help="Copy the tags of the input, or write none (default: copy)",
    )
    text.add_argument(
        "--tag",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        type=partial(_pair, "KEY=VALUE"),
        help="Tag to write instead of the input's text tags; repeatable",
    )
    group.add_argument(
        "--cover",
        choices=("copy", "none"),
        default="copy",
        help="Copy the cover image of the input, or write none (default: copy)",
    )
    group.add_argument(
        "--id3v2-version", type=int, choices=(3, 4), default=3, help="ID3v2 version (default: 3)"
    )
    group.add_argument("--strict", action="store_true", help="Fail if the input is damaged")


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
    """Convert all inputs. Return the exit code."""
    if not options.inputs and options.url is None:
        options.parser.error("missing INPUT or --url")
    from polymux.cli import conversions

    if options.server is not None or options.url is not None:
        return conversions.run_elsewhere(options)
    server.refuse_without_server(options, "requires --server", has_deadline=False)
    return conversions.run_here(options, native_options(_encoding(options)))


def add_limit_argument(command: argparse.ArgumentParser) -> None:
    limit = command.add_argument(
        "--input-limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        type=partial(_pair, "NAME=NUMBER"),
        help="Limit on inputs: probe_bytes, streams, duration_s, sample_rate_hz, channels, "
        "tag_bytes or chapters, as in polymux.Limits; repeatable",
    )
    add_old_option(command, "--limit", limit)


def _pair(form: str, text: str) -> tuple[str, str]:
    name, found, value = text.partition("=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"invalid value {shown(text)} (expected {form})")
    return name, value


def limits_of(options: argparse.Namespace) -> Limits | None:
    """Return the limits of the command line; None for the defaults.

    Raises:
        InvalidRequestError: A limit is unknown, or its value is not a number.
    """
    if not options.input_limit:
        return None
    known = frozenset(Limits.names())
    values: dict[str, Any] = {}
    for name, text in options.input_limit:
        if name not in known:
            raise InvalidRequestError(
                f"--input-limit: unknown limit {shown(name)} (known: {', '.join(sorted(known))})"
            )
        try:
            values[name] = float(text) if name == "duration_s" else int(text)
        except ValueError:
            kind = "a number" if name == "duration_s" else "an integer"
            raise InvalidRequestError(
                f"--input-limit {name}: invalid value (got {shown(text)}, allowed {kind})"
            ) from None
    return Limits(**values)
