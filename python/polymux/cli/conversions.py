"""Conversions to MP3: which inputs there are with their outputs, and how each goes.

Inputs are converted here, several at a time, or by a server, one after the other.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from polymux._util.text import clock, display_name, size
from polymux.cli import errors, server
from polymux.cli.errors import ExitCode
from polymux.cli.progress import Waiting
from polymux.cli.terminal import (
    Screen,
    overall_line,
    progress_line,
    standard_input,
    standard_output,
    write_json,
)
from polymux.errors import (
    InputUnreadableError,
    InvalidRequestError,
    NoAudioError,
    OutputExistsError,
    OutputFailedError,
    OutputRefusedError,
    PolymuxError,
    UnsupportedMediaError,
)
from polymux.media.options import CONVERSION_FIELDS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from polymux._native import _media
    from polymux.client.methods.synchronous import Operations
    from polymux.media.conversion import JobGroup
    from polymux.media.inputs import Destination, Source
    from polymux.media.media_file import ConversionOutcome

STREAM = "-"
_DRAW_INTERVAL_S = 0.1
_HERE_ONLY = (
    "recursive", "jobs", "abr", "preset", "threads", "exact", "verify", "identical_file", "tags",
    "tag", "cover", "id3v2_version", "strict", "limit",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class Item:
    """One input.

    Attributes:
        name: Path of the input as given or found; "-" is standard input.
        output: Path of the output; "-" is standard output.
        found: It was found in a folder, so that it need not be media at all.
        skipped: Why nothing is to be done; empty otherwise.
        error: Why nothing can be done; None otherwise.
    """

    name: str
    output: str = ""
    found: bool = False
    skipped: str = ""
    error: PolymuxError | None = None


def plan(
    names: list[str], output: str | None, *, recursive: bool, skip_existing: bool
) -> list[Item]:
    """Every input with its output, in the order of the command line.

    Args:
        names: Files, folders, and "-".
        output: What -o gave: a file, a folder, "-", or None for next to each input.
        recursive: Take the files in folders.
        skip_existing: Leave out what has an output already.

    Raises:
        InvalidRequestError: The combination makes no sense.
    """
    if names.count(STREAM) > 1:
        raise InvalidRequestError("standard input (-) can be converted once only")
    into_folder = _is_folder_wanted(names, output)
    taken: dict[str, str] = {}
    return [
        _settled(item, taken, skip_existing=skip_existing)
        for name in names
        for item in _items_of(name, output, into_folder=into_folder, recursive=recursive)
    ]


def _is_folder_wanted(names: list[str], output: str | None) -> bool:
    """Whether -o names a folder, judged before anything is created."""
    if output is None:
        return False
    several = len(names) > 1 or (names[0] != STREAM and Path(names[0]).is_dir())
    if output == STREAM:
        if several:
            raise InvalidRequestError("only one file can be written to standard output")
        return False
    place = Path(output)
    if several and place.exists() and not place.is_dir():
        raise InvalidRequestError(
            f"several inputs need a folder for -o, and '{display_name(output)}' is a file"
        )
    return several or output.endswith(os.sep) or place.is_dir()


def _items_of(
    name: str, output: str | None, *, into_folder: bool, recursive: bool
) -> Iterator[Item]:
    if name == STREAM:
        if output is None:
            yield Item(name, STREAM)
        else:
            yield Item(name, str(Path(output, "stdin.mp3")) if into_folder else output)
    elif Path(name).is_dir():
        if not recursive:
            yield Item(name, error=_is_a_folder(name))
            return
        for path in _files_below(Path(name), output):
            below = path.relative_to(name)
            wanted = str(Path(output, _mp3(below))) if output is not None else None
            yield _item(str(path), wanted, found=True)
    else:
        wanted = output
        if output is not None and into_folder:
            wanted = str(Path(output, _mp3(Path(name)).name))
        yield _item(name, wanted, found=False)


def _is_a_folder(name: str) -> InputUnreadableError:
    return InputUnreadableError(
        f"cannot read '{display_name(name)}': it is a folder; add --recursive to convert the "
        "files in it"
    )


def _item(name: str, output: str | None, *, found: bool) -> Item:
    if output is not None:
        return Item(name, output, found)
    if not name.lower().endswith(".mp3"):
        return Item(name, str(_mp3(Path(name))), found)
    if found:
        return Item(name, found=True, skipped="is_mp3")
    return Item(
        name,
        error=OutputRefusedError(
            f"'{display_name(name)}' is an MP3 already; give -o to convert it into another file"
        ),
    )


def _mp3(path: Path) -> Path:
    return path.with_suffix(".mp3") if path.name else path


def _files_below(folder: Path, output: str | None) -> Iterator[Path]:
    """Regular files, sorted; hidden ones and the output folder itself are left out."""
    leave_out = os.path.realpath(output) if output is not None else None
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and os.path.realpath(Path(place, name)) != leave_out
        )
        for name in sorted(files):
            path = Path(place, name)
            if not name.startswith(".") and path.is_file():
                yield path


def _settled(item: Item, taken: dict[str, str], *, skip_existing: bool) -> Item:
    """The item, or why it will not be converted."""
    if item.skipped or item.error or item.output == STREAM:
        return item
    key = os.path.realpath(item.output)
    if key in taken:
        return Item(item.name, found=item.found, error=_output_taken(item, taken[key]))
    taken[key] = item.name
    if skip_existing and os.path.lexists(item.output):
        return Item(item.name, item.output, item.found, skipped="exists")
    return item


def _output_taken(item: Item, other: str) -> OutputRefusedError:
    return OutputRefusedError(
        f"'{display_name(item.name)}' and '{display_name(other)}' would both be written to "
        f"'{display_name(item.output)}'; convert them separately with -o"
    )


def run_here(options: argparse.Namespace, native: _media.ConvertOptions) -> int:
    """Converts every input on this computer; the exit code.

    Args:
        options: Parsed.
        native: What they say of the encoding.
    """
    from polymux.media.conversion import checked_concurrency

    concurrency = checked_concurrency(options.jobs)
    items = plan(
        options.inputs,
        options.output,
        recursive=options.recursive,
        skip_existing=options.skip_existing,
    )
    return _LocalConversions(items, options).run(native, concurrency)


def run_elsewhere(options: argparse.Namespace) -> int:
    """Has a server convert every input, or converts what lies at an address; the exit code."""
    _refuse_what_is_for_files_here(options)
    return _RemoteConversions(_remote_items(options), options).run()


def _refuse_what_is_for_files_here(options: argparse.Namespace) -> None:
    given = [
        f"--{name.replace('_', '-')}"
        for name in _HERE_ONLY
        if getattr(options, name) != options.parser.get_default(name)
    ]
    if given:
        where = "on this computer only, without --server"
        if options.server is None:
            where = "with an INPUT only, without --url"
        raise InvalidRequestError(f"{', '.join(given)}: works {where}")


def _remote_items(options: argparse.Namespace) -> list[Item]:
    if options.url is None:
        return plan(
            options.inputs,
            options.output,
            recursive=False,
            skip_existing=options.skip_existing,
        )
    if options.inputs:
        raise InvalidRequestError("give either an INPUT or --url")
    from polymux.cli.answers import name_in  # A conversion here starts without the client.

    output = options.output or f"{name_in(options.url)[0] or 'converted'}.mp3"
    if output != STREAM and (output.endswith(os.sep) or Path(output).is_dir()):
        output = str(Path(output, f"{name_in(options.url)[0] or 'converted'}.mp3"))
    skipped = "exists" if options.skip_existing and os.path.lexists(output) else ""
    return [Item(options.url, output, skipped=skipped)]


class _Conversions:
    """The conversions of one command, and their bookkeeping.

    Args:
        items: What was planned.
        options: Parsed.

    Raises:
        InvalidRequestError: An MP3 would go to a terminal, or where JSON goes.
    """

    def __init__(self, items: list[Item], options: argparse.Namespace) -> None:
        if any(item.output == STREAM for item in items):
            if options.json:
                raise InvalidRequestError("--json and an MP3 cannot both go to standard output")
            if sys.stdout.isatty():
                raise InvalidRequestError(
                    "an MP3 is not written to a terminal: redirect standard output or give -o FILE"
                )
        self._items = items
        self._options = options
        self._json: bool = options.json
        self._screen = Screen(quiet=options.quiet or options.json)
        self._counts = {"converted": 0, "failed": 0, "skipped": 0}
        self._made: list[Path] = []

    @contextmanager
    def _folders(self) -> Iterator[None]:
        """Removes the folders that had to be made, and in which nothing was written."""
        try:
            yield
        finally:
            for folder in reversed(self._made):
                with suppress(OSError):  # Only those in which nothing was written are empty.
                    folder.rmdir()

    def _make_folder_of(self, output: str) -> OutputFailedError | None:
        """Makes the folder that the output lies in, and notes each one made."""
        missing = []
        folder = Path(output).parent
        while not folder.exists():
            missing.append(folder)
            folder = folder.parent
        for path in reversed(missing):
            try:
                path.mkdir()
            except OSError as error:
                return OutputFailedError(
                    f"cannot make the folder '{display_name(os.fspath(path))}': {error.strerror}",
                    errno=error.errno,
                )
            self._made.append(path)
        return None

    def _count(self, status: str, item: Item, **facts: Any) -> None:
        self._counts[status] += 1
        if self._json:
            write_json({"status": status, "input": item.name, **facts})

    def _say_converted(self, item: Item, facts: str) -> None:
        names = [
            "standard stream" if name == STREAM else display_name(name)
            for name in (item.name, item.output)
        ]
        self._screen.say(f"{' -> '.join(names)}  ({facts})")

    def _summarise(self, elapsed_s: float | None = None) -> None:
        if self._json:
            took = {} if elapsed_s is None else {"elapsed_s": round(elapsed_s, 3)}
            write_json({"status": "summary", **self._counts, **took})
        elif len(self._items) != 1 or self._counts["skipped"]:
            said = ", ".join(f"{count} {word}" for word, count in self._counts.items())
            self._screen.say(said if elapsed_s is None else f"{said} in {elapsed_s:.1f} s")


class _LocalConversions(_Conversions):
    """Conversions on this computer, several at a time."""

    def __init__(self, items: list[Item], options: argparse.Namespace) -> None:
        super().__init__(items, options)
        self._todo = [item for item in items if not item.skipped]
        self._started = time.monotonic()
        self._last_drawn = 0.0
        self._finished_s = 0.0

    def run(self, native: _media.ConvertOptions, concurrency: int) -> int:
        """Converts everything; the exit code."""
        from polymux.media.conversion import JobGroup

        for item in self._items:
            if item.skipped:
                self._count("skipped", item, reason=item.skipped)
        ended: SimpleQueue[int] = SimpleQueue()
        group = JobGroup(
            self._tasks(),
            native,
            overwrite=self._options.overwrite,
            concurrency=concurrency,
            notify=ended.put,
        )
        wait_s = _DRAW_INTERVAL_S if self._screen.draws else None
        with self._folders():
            try:
                while True:
                    for outcome in group.fill():
                        self._tell(outcome)
                    if not group.running:
                        break
                    with suppress(Empty):
                        self._tell(group.collect(ended.get(timeout=wait_s)))
                    self._draw(group)
            finally:
                self._screen.clear()
                group.close()
            self._summarise(time.monotonic() - self._started)
        return ExitCode.FAILURE if self._counts["failed"] else ExitCode.SUCCESS

    def _tasks(self) -> Iterator[tuple[Source, Destination | Exception]]:
        for item in self._todo:
            source: Source = standard_input() if item.name == STREAM else item.name
            if item.error is not None:
                yield source, item.error
            elif item.output == STREAM:
                yield source, standard_output()
            else:
                yield source, self._make_folder_of(item.output) or item.output

    def _tell(self, outcome: ConversionOutcome) -> None:
        item = self._todo[outcome.index]
        error = outcome.error
        if isinstance(error, BrokenPipeError) and item.output == STREAM:
            raise error
        if item.found and isinstance(error, (UnsupportedMediaError, NoAudioError)):
            self._count("skipped", item, reason="not_media")
        elif error is not None:
            self._fail(item, error)
        elif outcome.file is not None:
            report = outcome.file.report
            self._finished_s += report.duration_s
            self._count("converted", item, output=item.output, report=report.to_dict())
            facts = f"{clock(report.duration_s)}, {size(report.bytes)}, {report.speed:.1f}x"
            self._say_converted(item, facts)
            for warning in report.warnings:
                self._screen.say(f"  warning: {warning.message}")

    def _fail(self, item: Item, error: Exception) -> None:
        if isinstance(error, PolymuxError):
            details = error.to_dict()
        else:
            details = {"type": type(error).__name__, "code": "error", "message": str(error)}
        self._count("failed", item, error=details)
        if not self._json:
            advice = ""
            if isinstance(error, OutputExistsError):
                advice = " (--overwrite replaces it, --skip-existing leaves such inputs out)"
            self._screen.complain(f"polymux: {error}{advice}")

    def _draw(self, group: JobGroup) -> None:
        now = time.monotonic()
        if not self._screen.draws or now - self._last_drawn < _DRAW_INTERVAL_S:
            return
        self._last_drawn = now
        running = [job.progress for job in group.running.values()]
        if len(self._todo) > 1:
            finished = self._counts["converted"] + self._counts["failed"]
            elapsed_s = now - self._started
            text = overall_line(finished, len(self._todo), running, self._finished_s, elapsed_s)
        elif running:
            text = progress_line(running[0])
        else:
            return
        self._screen.draw(text)


class _RemoteConversions(_Conversions):
    """Conversions by a server, or of an address, one after the other."""

    def __init__(self, items: list[Item], options: argparse.Namespace) -> None:
        super().__init__(items, options)
        self._code = ExitCode.SUCCESS
        given = {name: getattr(options, ours) for name, ours in CONVERSION_FIELDS.items()}
        self._fields = {name: value for name, value in given.items() if value is not None}

    def run(self) -> int:
        """Converts everything; the exit code."""
        with self._folders(), self._answering() as client:
            for item in self._items:
                self._run(client, item)
        self._summarise()
        is_one = len(self._items) == 1
        return self._code if is_one or not self._counts["failed"] else ExitCode.FAILURE

    @contextmanager
    def _answering(self) -> Iterator[Operations]:
        """The server that is named on the command line; else this computer."""
        if self._options.server is not None:
            with server.connected(self._options, "convert-to-mp3 --server") as client:
                yield client
            return
        from polymux.local.sync_local import Local

        server.refuse_without_server(self._options, "no server is named, give --server URL")
        errors.is_done_here()
        with Local() as local:
            yield local

    def _run(self, client: Operations, item: Item) -> None:
        """Converts one input; only what concerns all of them is raised."""
        if item.skipped:
            self._count("skipped", item, reason=item.skipped)
            return
        try:
            url, count = self._convert(client, item)
        except InvalidRequestError:
            raise  # So it would be with every other input.
        except PolymuxError as error:
            self._code = errors.code_of(error)
            self._count("failed", item, error=error.to_dict())
            if not self._json:
                self._screen.clear()
                errors.say(errors.message_of(error))
            return
        # Of what was made here the address is one that goes with the command.
        more = {"url": url} if self._options.server is not None else {}
        self._count("converted", item, output=item.output, **more)
        self._say_converted(item, size(count))

    def _convert(self, client: Operations, item: Item) -> tuple[str, int]:
        if item.error is not None:
            raise item.error
        if item.output != STREAM:
            self._prepare(item.output)
        source: Any = ("stdin", standard_input()) if item.name == STREAM else item.name
        where = {"url": item.name} if self._options.url is not None else {"file": source}
        with Waiting(self._screen, is_here=self._options.server is None) as waiting:
            made = client.request(
                "convert_to_mp3",
                {**where, **self._fields},
                timeout=self._options.deadline_s,
                on_upload=waiting.on_upload,
                on_progress=waiting.on_progress,
            )
        self._screen.draw(f"fetching {made}")
        if item.output == STREAM:
            count = 0
            for piece in made:
                count += sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        else:
            saved = made.save(item.output, overwrite=self._options.overwrite)
            count = saved.stat().st_size
        self._screen.clear()
        return str(made), count

    def _prepare(self, output: str) -> None:
        """Refuses what could not be saved later, before anything is sent."""
        if not self._options.overwrite and os.path.lexists(output):
            raise OutputExistsError(
                "it exists already (--overwrite replaces it, --skip-existing leaves such inputs "
                "out)",
                input_name=output,
            )
        if error := self._make_folder_of(output):
            raise error
        if not Path(output).parent.is_dir():
            folder = display_name(str(Path(output).parent))
            raise OutputFailedError(f"cannot write into '{folder}': it is no folder")
