"""What `polymux transcribe` makes of an answer: text, subtitles or JSON, printed or in a file."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.atomic_file import PendingFile, write_atomically
from polymux.cli import exit_codes
from polymux.cli.terminal import write_text
from polymux.errors import DecodeError, InvalidRequestError, OutputError, OutputExistsError
from polymux.media import subtitles

if TYPE_CHECKING:
    import argparse

    from polymux.client.responses import Prediction

FORMATS = ("txt", "srt", "vtt", "json")


def add_arguments(group: Any) -> None:
    """Describes the options to argparse."""
    group.add_argument(
        "--format",
        dest="transcript_format",
        choices=FORMATS,
        default="txt",
        help="text (default), subtitles, or text and times as JSON",
    )
    group.add_argument(
        "-o",
        "--output",
        dest="transcript_file",
        metavar="FILE",
        help="write it to a file (- is standard output)",
    )
    group.add_argument("--overwrite", action="store_true", help="replace an existing FILE")


class Wanted(NamedTuple):
    """Form and place of a transcript."""

    form: str
    whole: bool
    file: str | None
    overwrite: bool

    def show(self, job: Prediction) -> int:
        """Prints or writes the transcript; the exit code."""
        text = self._text(job)
        if self.file is None:
            write_text(text)
            return exit_codes.SUCCESS
        data = text.encode("utf-8", "backslashreplace")
        try:
            write_atomically(Path(self.file), data, overwrite=self.overwrite)
        except OutputError:
            write_text(text)  # The work is done: nobody shall have to ask for it again.
            raise
        return exit_codes.SUCCESS

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
                "the answer has a text without times, of which no subtitles can be made; "
                "--format txt takes it"
            )
        return (subtitles.srt if self.form == "srt" else subtitles.vtt)(job.chunks)


def wanted(options: argparse.Namespace) -> Wanted:
    """What the options ask for, refused before anything is sent where it cannot be.

    Raises:
        InvalidRequestError: The options contradict each other.
        OutputError: The file exists, or cannot be written.
    """
    form, file = options.transcript_format, options.transcript_file
    if file == "-":
        file = None
    if options.as_json and form != "txt":
        raise InvalidRequestError("--json and --format: give one of them")
    if file is not None and not options.wait_for_end:
        raise InvalidRequestError("-o needs the end of the job: leave out --no-wait")
    if file is not None and not options.overwrite and os.path.lexists(file):
        raise OutputExistsError("it exists already; --overwrite replaces it", input_name=file)
    if file is not None:
        PendingFile(Path(file), overwrite=options.overwrite).discard()
    return Wanted(form, options.as_json, file, options.overwrite)
