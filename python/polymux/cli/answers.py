"""Prints results to standard output or files: text, URLs, saved files, transcripts or JSON."""

from __future__ import annotations

import json
import os
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from polymux._util.atomic_file import PendingFile, write_atomically
from polymux._util.text import display_name, path_in, printable
from polymux.cli import errors
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import ExitCode
from polymux.cli.terminal import write_json, write_line, write_text
from polymux.client.responses import ChatCompletion, Prediction, Song, SongList
from polymux.client.responses.prediction import files_of
from polymux.errors import (
    DecodeError,
    InvalidRequestError,
    OutputError,
    OutputExistsError,
    OutputFailedError,
    PolymuxError,
)
from polymux.media import subtitles
from polymux.media.media_file import MediaFile

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from polymux.cli.terminal import Screen

FORMATS = ("txt", "srt", "vtt", "json")
_MAX_STEM_CHARACTERS = 60
_NO_NAME = re.compile(r"[^\w.-]+")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}")


def show(result: Any, screen: Screen, *, as_json: bool = False, saver: Saver | None = None) -> int:
    """Print the result of an operation and save its files.

    Args:
        result: The client's result.
        screen: Standard error, for messages.
        as_json: Print the whole result as one JSON value.
        saver: Saves the files. Their paths are then printed instead of their URLs.

    Returns:
        The exit code.
    """
    files = files_of(result)
    lacks_files = saver is not None and not files and _should_have_files(result)
    if as_json:
        write_json({"url": str(result)} if isinstance(result, MediaFile) else result.json())
    elif not files:
        code = _text(result, screen)
        if not lacks_files:
            return code
    if saver is not None:
        if lacks_files:
            screen.complain("polymux: the result contains no files, so nothing was saved")
            return ExitCode.SERVER_FAILED
        return _save(files, saver, screen, as_json=as_json)
    for _, file in files:
        if not as_json:
            write_line(str(file))
    return ExitCode.SUCCESS


def show_job(result: Any, screen: Screen, *, as_json: bool) -> bool:
    """Print the ID of a running job. Return False if the result is not a job."""
    if not isinstance(result, Prediction):
        return False
    if as_json:
        write_json(result.json())
    else:
        write_line(result.id or "")
        screen.say(f"job status: {printable(result.status)}")
    return True


def _should_have_files(result: Any) -> bool:
    """Return whether the output is a list of strings (or empty), as with operations on files."""
    output = result.output if isinstance(result, Prediction) else None
    return isinstance(output, list) and all(isinstance(one, str) for one in output)


def _save(
    files: list[tuple[str, MediaFile]], saver: Saver, screen: Screen, *, as_json: bool
) -> int:
    """Download each file even if others fail. Return the exit code of the first failure.

    The operation is done and may have cost money, so a failed download must not require a new call.
    """
    code = ExitCode.SUCCESS
    for number, (label, file) in enumerate(files):
        screen.draw(f"downloading {file}")
        try:
            path = display_name(str(saver.save(file, label)))
        except PolymuxError as error:
            screen.clear()
            screen.complain(f"polymux: file not saved, but still available at {file}")
            code = code or errors.report(error)
            continue
        except BaseException:  # Ctrl-C too
            for _, left in files[number:]:
                screen.complain(f"polymux: file not saved, but still available at {left}")
            raise
        screen.clear()
        screen.say(f"saved {path}") if as_json else write_line(path)
    return code


def _text(result: Any, screen: Screen) -> int:
    if isinstance(result, SongList):
        for song in result:
            _song(song)
        if not result:
            screen.say("no results")
    elif isinstance(result, Song):
        _song(result)
    elif isinstance(result, ChatCompletion):
        _completion(result, screen)
    elif isinstance(result, Prediction):
        return _prediction(result, screen)
    else:
        write_whole(result.text)
    return ExitCode.SUCCESS


def write_whole(text: str) -> None:
    """Write a text and make sure that it ends with a newline."""
    write_text(text if text.endswith("\n") else text + "\n")


def _song(song: Song) -> None:
    names = (song.name, song.url)
    write_text("\t".join(printable(name) for name in names if name) + "\n")


def _prediction(job: Prediction, screen: Screen) -> int:
    output = job.output
    if output is None:
        screen.complain("polymux: the job ended without output")
        return ExitCode.SERVER_FAILED
    readable = isinstance(output, (str, list)) or (isinstance(output, dict) and "text" in output)
    if readable and not (isinstance(output, list) and any(isinstance(o, str) for o in output)):
        write_whole(job.text)
    else:
        write_json(output)
    return ExitCode.SUCCESS


def _completion(completion: ChatCompletion, screen: Screen) -> None:
    for number, choice in enumerate(completion.choices):
        message = choice.message
        if message.reasoning:
            screen.say_text(message.reasoning)
        if message.content:
            write_whole(("\n" if number else "") + message.content)
        tell_end(
            choice.finish_reason, [(one.name, one.arguments) for one in message.tool_calls], screen
        )


def tell_end(reason: str | None, calls: list[tuple[str, str]], screen: Screen) -> None:
    """Report tool calls, and an answer that was cut off."""
    for name, arguments in calls:
        screen.say(f"tool call: {display_name(name)}({printable(arguments)})")
    if reason == "length":
        screen.say("the answer is incomplete: maximum length reached")
    elif reason == "content_filter":
        screen.say("the answer is incomplete: stopped by the content filter")


def add_output_argument(group: Any, files: str) -> None:
    """Add `--output-dir`. `files`: a phrase for the files that it saves."""
    output = group.add_argument(
        "--output-dir",
        metavar="DIR",
        help=f"Directory in which to save {files}; prints their paths, and never overwrites files",
    )
    add_old_option(group, "--save", output)


def stem_of(text: str) -> str:
    """Convert text to the stem of a file name (letters, digits, dashes); may be empty.

    Example:
        >>> from polymux.cli.answers import stem_of
        >>> stem_of("A cat, asleep -- on ../../a mat!")
        'a-cat-asleep-on-a-mat'
    """
    words = re.findall(r"\w+", text.lower())
    stem = ""
    for word in words:
        longer = f"{stem}-{word}" if stem else word[:_MAX_STEM_CHARACTERS]
        if len(longer) > _MAX_STEM_CHARACTERS:
            break
        stem = longer
    return stem


def name_in(url: str) -> tuple[str, str]:
    """Return stem and suffix of the file name in a URL; both may be empty."""

    last = unquote(path_in(url)).rpartition("/")[2]
    stem, suffix = os.path.splitext(_NO_NAME.sub("-", last))  # noqa: PTH122 - no path yet
    if not _SUFFIX.fullmatch(suffix):
        suffix = ""
    return stem.strip(".-_")[:_MAX_STEM_CHARACTERS], suffix


class Saver:
    """Saves files to a directory and creates it if necessary.

    Args:
        folder: Output directory.
        stem: Start of the file names. Default: the names in the URLs.
    """

    def __init__(self, folder: str, stem: str = "") -> None:
        self._folder = Path(folder)
        self._stem = stem

    def prepare(self) -> None:
        """Create the directory before the operation is called.

        Raises:
            OutputFailedError: It cannot be created or is not a directory.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self._folder, os.W_OK | os.X_OK):
                raise PermissionError("permission denied")
        except OSError as error:
            name = display_name(os.fspath(self._folder))
            reason = error.strerror or str(error)
            raise OutputFailedError(
                f"output directory '{name}': not writable: {reason}", errno=error.errno
            ) from None

    def save(self, file: MediaFile, label: str = "") -> Path:
        """Download a file under the first unused name. Never overwrites files.

        Args:
            file: The file.
            label: Distinguishes the file from others of the same result.

        Returns:
            The path.
        """
        stem, suffix = name_in(str(file))
        stem = "-".join(filter(None, (self._stem or stem or "polymux", label)))
        for path in self._paths(stem, suffix):
            if os.path.lexists(path):
                continue
            try:
                return file.save(path, overwrite=False)
            except OutputExistsError:  # Another process created it in the meantime.
                continue
        raise AssertionError("unreachable")

    def _paths(self, stem: str, suffix: str) -> Iterator[Path]:
        yield self._folder / f"{stem}{suffix}"
        for number in count(2):
            yield self._folder / f"{stem}-{number}{suffix}"


def add_transcript_arguments(group: Any) -> None:
    group.add_argument(
        "--format",
        dest="transcript_format",
        choices=FORMATS,
        help="Output format: txt (plain text), srt or vtt (subtitles), or json (text with "
        "timestamps); default: the suffix of the output file, else txt",
    )
    group.add_argument(
        "-o",
        "--output",
        dest="transcript_file",
        metavar="FILE",
        help="Output file; - is standard output (default: -)",
    )
    group.add_argument("--overwrite", action="store_true", help="Replace an existing output file")


class Transcript(NamedTuple):
    """Format and output file of a transcript."""

    form: str
    whole: bool
    file: str | None
    overwrite: bool

    def show(self, job: Prediction) -> int:
        """Print or write the transcript. Return the exit code."""
        text = self._text(job)
        if self.file is None:
            write_text(text)
            return ExitCode.SUCCESS
        data = text.encode("utf-8", "backslashreplace")
        try:
            write_atomically(Path(self.file), data, overwrite=self.overwrite)
        except OutputError:
            write_text(text)  # Do not lose the finished transcript.
            raise
        return ExitCode.SUCCESS

    def _text(self, job: Prediction) -> str:
        if self.whole or self.form == "json":
            chunks = [
                {"text": one.text, "start_s": one.start_s, "end_s": one.end_s} for one in job.chunks
            ]
            return (
                json.dumps(job.json() if self.whole else {"text": job.text, "chunks": chunks})
                + "\n"
            )
        if self.form == "txt":
            return job.text.strip() + "\n"
        if not job.chunks and job.text:
            raise DecodeError(
                "transcript: cannot be written as subtitles, because the response has no "
                "timestamps. Use --format txt"
            )
        return (subtitles.srt if self.form == "srt" else subtitles.vtt)(job.chunks)


def transcript_of(options: argparse.Namespace) -> Transcript:
    """Validate the transcript options before anything is sent.

    Raises:
        InvalidRequestError: The options contradict each other.
        OutputError: The file already exists or cannot be written.
    """
    form, file = options.transcript_format, options.transcript_file
    if file == "-":
        file = None
    if options.as_json and form not in (None, "txt"):
        raise InvalidRequestError("--json and --format cannot be used together")
    if form is None:
        suffix = Path(file or "").suffix[1:].lower()
        form = suffix if suffix in FORMATS else "txt"
    if file is not None and not options.wait_for_end:
        raise InvalidRequestError("--output and --no-wait cannot be used together")
    if file is not None and not options.overwrite and os.path.lexists(file):
        raise OutputExistsError("already exists. Use --overwrite to replace it", input_name=file)
    if file is not None:
        PendingFile(Path(file), overwrite=options.overwrite).discard()
    return Transcript(form, options.as_json, file, options.overwrite)
