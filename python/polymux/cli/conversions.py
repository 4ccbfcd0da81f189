"""Conversions to MP3: plan inputs and outputs, and run the conversions.

Local conversions run in parallel, conversions on a server one after the other.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import contextmanager, suppress
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

from polymux._util.deprecation import notice
from polymux._util.frozen import Record
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
    InputNotFoundError,
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
    "recursive", "workers", "abr", "preset", "threads", "exact", "verify", "identical_file", "tags",
    "tag", "cover", "id3v2_version", "strict", "input_limit",
)  # fmt: skip
#: Names options, where the error of `convert_to_mp3` names its arguments.
_EXISTS = "already exists. Use --overwrite to replace it, or --skip-existing to skip the input"


class Item(Record):
    """One input.

    Attributes:
        name: Path of the input as given or found; "-" is standard input.
        output: Path of the output; "-" is standard output.
        found: Whether it was found in a directory and may not be media.
        skipped: Reason to skip it; empty otherwise.
        error: Error that prevents its conversion; None otherwise.
    """

    name: str
    output: str = ""
    found: bool = False
    skipped: str = ""
    error: PolymuxError | None = None


def plan(
    names: list[str],
    output: str | None,
    *,
    output_dir: str | None = None,
    recursive: bool,
    skip_existing: bool,
) -> list[Item]:
    """Return all inputs with their outputs, in the order of the command line.

    Args:
        names: Files, directories, and "-". As with ffmpeg, a new MP3 after one input is its output.
        output: Output file, or "-". Default: next to each input.
        output_dir: Output directory, instead of `output`.
        recursive: Convert the files in directories.
        skip_existing: Skip inputs whose output exists.

    Raises:
        InvalidRequestError: The arguments contradict each other.
    """
    if names.count(STREAM) > 1:
        raise InvalidRequestError("INPUT: standard input (-) can be used only once")
    if output is None and output_dir is None and _names_an_output(names):
        names, output = names[:1], names[1]
    folder = _folder_wanted(names, output, output_dir)
    taken: dict[str, str] = {}
    return [
        _settled(item, taken, skip_existing=skip_existing)
        for name in names
        for item in _items_of(name, output, folder, recursive=recursive)
    ]


def _names_an_output(names: list[str]) -> bool:
    """Return whether the second of two names is a new MP3, which cannot be an input."""
    if len(names) != 2 or Path(names[0]).is_dir():
        return False
    return names[1].lower().endswith(".mp3") and not os.path.lexists(names[1])


def _check_suffix(output: str) -> None:
    """Reject an output with the suffix of another media format."""
    if Path(output).suffix.lower() in ("", ".mp3"):
        return
    if _content_type(output).startswith(("audio/", "image/", "video/")):
        other = display_name(str(_mp3(Path(output))))
        raise InvalidRequestError(
            f"--output: the output is an MP3 (got '{display_name(output)}', allowed the suffix "
            f".mp3). Use -o '{other}'"
        )


def _content_type(name: str) -> str:
    from polymux._native import core  # Most conversions do not need this module.

    found: str = core.content_type_of(os.fsencode(name).decode("ascii", "replace"))
    return found


def _folder_wanted(names: list[str], output: str | None, output_dir: str | None) -> str | None:
    """Return the output directory, if any. Checked before anything is created."""
    if output_dir is not None:
        if Path(output_dir).exists() and not Path(output_dir).is_dir():
            raise InvalidRequestError(f"--output-dir: not a directory: {display_name(output_dir)}")
        return output_dir
    if output is None:
        return None
    several = len(names) > 1 or (names[0] != STREAM and Path(names[0]).is_dir())
    if output == STREAM:
        if several:
            raise InvalidRequestError("--output: only one file can be written to standard output")
        return None
    place = Path(output)
    if several and place.exists() and not place.is_dir():
        raise InvalidRequestError(
            f"--output: '{display_name(output)}' is a file, but there are several inputs. Use "
            "--output-dir"
        )
    if several or output.endswith(os.sep) or place.is_dir():
        errors.say(notice("a directory as --output", "--output-dir"))
        return output
    _check_suffix(output)
    return None


def _items_of(
    name: str, output: str | None, folder: str | None, *, recursive: bool
) -> Iterator[Item]:
    if name == STREAM:
        yield Item(name, str(Path(folder, "stdin.mp3")) if folder is not None else output or STREAM)
    elif Path(name).is_dir():
        if not recursive:
            yield Item(name, error=_is_a_folder(name))
            return
        for path in _files_below(Path(name), folder):
            below = path.relative_to(name)
            wanted = str(Path(folder, _mp3(below))) if folder is not None else None
            yield _item(str(path), wanted, found=True)
    else:
        wanted = output
        if folder is not None:
            wanted = str(Path(folder, _mp3(Path(name)).name))
        yield _item(name, wanted, found=False)


def _is_a_folder(name: str) -> InputUnreadableError:
    return InputUnreadableError(
        f"cannot read '{display_name(name)}': is a directory. Use --recursive to convert its files"
    )


def _item(name: str, output: str | None, *, found: bool) -> Item:
    if output is not None:
        return Item(name, output, found)
    if not name.lower().endswith(".mp3"):
        return Item(name, str(_mp3(Path(name))), found)
    if found:
        return Item(name, found=True, skipped="is_mp3")
    shown = display_name(name)
    if not os.path.lexists(name):
        return Item(name, error=InputNotFoundError(f"cannot open '{shown}': file not found"))
    return Item(
        name,
        error=OutputRefusedError(
            f"'{shown}' is already an MP3. If it is the output, use -o '{shown}'; else use -o FILE "
            "to write to another file"
        ),
    )


def _mp3(path: Path) -> Path:
    return path.with_suffix(".mp3") if path.name else path


def _files_below(folder: Path, output_dir: str | None) -> Iterator[Path]:
    """Yield regular files in sorted order, without hidden ones and the output directory."""
    leave_out = os.path.realpath(output_dir) if output_dir is not None else None
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
    """Return the item, or the reason not to convert it."""
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
        f"'{display_name(item.name)}' and '{display_name(other)}' have the same output "
        f"'{display_name(item.output)}'. Convert them separately with --output"
    )


def run_here(options: argparse.Namespace, native: _media.ConvertOptions) -> int:
    """Convert all inputs locally. Return the exit code.

    Args:
        options: Parsed command line.
        native: Encoding options.
    """
    from polymux.media.conversion import checked_concurrency

    concurrency = checked_concurrency(options.workers)
    items = plan(
        options.inputs,
        options.output,
        output_dir=options.output_dir,
        recursive=options.recursive,
        skip_existing=options.skip_existing,
    )
    return _LocalConversions(items, options).run(native, concurrency)


def run_elsewhere(options: argparse.Namespace) -> int:
    """Convert all inputs on a server, or convert a URL. Return the exit code."""
    _refuse_what_is_for_files_here(options)
    return _RemoteConversions(_remote_items(options), options).run()


def _refuse_what_is_for_files_here(options: argparse.Namespace) -> None:
    given = [
        f"--{name.replace('_', '-')}"
        for name in _HERE_ONLY
        if getattr(options, name) != options.parser.get_default(name)
    ]
    if given:
        other = "--url" if options.server is None else "--server"
        raise InvalidRequestError(f"{', '.join(given)}: not supported with {other}")


def _remote_items(options: argparse.Namespace) -> list[Item]:
    if options.url is None:
        return plan(
            options.inputs,
            options.output,
            output_dir=options.output_dir,
            recursive=False,
            skip_existing=options.skip_existing,
        )
    if options.inputs:
        raise InvalidRequestError("INPUT and --url cannot be used together")
    from polymux.cli.answers import name_in  # Local conversions do not import the client.

    name = f"{name_in(options.url)[0] or 'converted'}.mp3"
    folder = _folder_wanted([options.url], options.output, options.output_dir)
    output = str(Path(folder, name)) if folder is not None else options.output or name
    skipped = "exists" if options.skip_existing and os.path.lexists(output) else ""
    return [Item(options.url, output, skipped=skipped)]


def _is_not_media(name: str, error: Exception | None) -> bool:
    """Return whether a file of a directory has no audio, or is not media by name and content."""
    if isinstance(error, UnsupportedMediaError):
        return not _content_type(name).startswith(("audio/", "video/"))
    return isinstance(error, NoAudioError)


class _Conversions:
    """The conversions of one command with their counters.

    Args:
        items: The planned inputs.
        options: Parsed command line.

    Raises:
        InvalidRequestError: An MP3 would be written to a terminal, or together with JSON.
    """

    def __init__(self, items: list[Item], options: argparse.Namespace) -> None:
        if any(item.output == STREAM for item in items):
            if options.json:
                raise InvalidRequestError(
                    "--json: not supported if the MP3 is written to standard output. Use -o FILE"
                )
            if sys.stdout.isatty():
                raise InvalidRequestError(
                    "standard output: must not be a terminal, because the output is an MP3. "
                    "Redirect it, or use -o FILE"
                )
        self._items = items
        self._options = options
        self._json: bool = options.json
        self._screen = Screen(quiet=options.quiet or options.json)
        self._counts = {"converted": 0, "failed": 0, "skipped": 0}
        self._made: list[Path] = []

    @contextmanager
    def _folders(self) -> Iterator[None]:
        """Remove the created directories that are still empty at the end."""
        try:
            yield
        finally:
            for folder in reversed(self._made):
                with suppress(OSError):  # Fails for directories that are not empty.
                    folder.rmdir()

    def _make_folder_of(self, output: str) -> OutputFailedError | None:
        """Create the directory of the output and remember each new directory."""
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
                    f"cannot create directory '{display_name(os.fspath(path))}': {error.strerror}",
                    errno=error.errno,
                )
            self._made.append(path)
        return None

    def _count(self, status: str, item: Item, **facts: Any) -> None:
        self._counts[status] += 1
        if self._json:
            write_json({"status": status, "input": item.name, **facts})

    def _say_converted(self, item: Item, facts: str) -> None:
        source = "standard input" if item.name == STREAM else display_name(item.name)
        target = "standard output" if item.output == STREAM else display_name(item.output)
        self._screen.say(f"{source} -> {target}  ({facts})")

    def _summarise(self, elapsed_s: float | None = None) -> None:
        if self._json:
            took = {} if elapsed_s is None else {"elapsed_s": round(elapsed_s, 3)}
            write_json({"status": "summary", **self._counts, **took})
        elif len(self._items) != 1 or self._counts["skipped"]:
            summary = ", ".join(f"{count} {word}" for word, count in self._counts.items())
            self._screen.say(summary if elapsed_s is None else f"{summary} in {elapsed_s:.1f} s")


class _LocalConversions(_Conversions):
    """Local conversions, several at a time."""

    def __init__(self, items: list[Item], options: argparse.Namespace) -> None:
        super().__init__(items, options)
        self._todo = [item for item in items if not item.skipped]
        self._started = time.monotonic()
        self._last_drawn = 0.0
        self._finished_s = 0.0
        self._code: int = ExitCode.SUCCESS

    def run(self, native: _media.ConvertOptions, concurrency: int) -> int:
        """Convert all inputs. Return the exit code."""
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
        return self._code if len(self._items) == 1 or not self._code else ExitCode.FAILURE

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
        if item.found and _is_not_media(item.name, error):
            self._count("skipped", item, reason="not_media")
        elif error is not None:
            self._fail(item, error)
        elif outcome.file is not None:
            report = outcome.file.report
            self._finished_s += report.duration_s
            self._count("converted", item, output=item.output, report=report.to_dict())
            facts = f"{clock(report.duration_s)}, {size(report.bytes)}, {report.speed:.1f}x"
            if report.reference:
                facts += f", all frames equal those of {report.reference}"
            self._say_converted(item, facts)
            for warning in report.warnings:
                self._screen.say(f"  warning: {warning.message}")

    def _fail(self, item: Item, error: Exception) -> None:
        self._code = errors.code_of(error)
        if isinstance(error, PolymuxError):
            details = error.to_dict()
        else:
            details = {"type": type(error).__name__, "code": "error", "message": str(error)}
        self._count("failed", item, error=details)
        if not self._json:
            words = str(error)
            if isinstance(error, OutputExistsError):  # Its advice is for Python.
                words = f"cannot write '{display_name(item.output)}': {_EXISTS}"
            self._screen.complain(f"polymux: {words}")

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
    """Conversions on a server or of a URL, one after the other."""

    def __init__(self, items: list[Item], options: argparse.Namespace) -> None:
        super().__init__(items, options)
        self._code = ExitCode.SUCCESS
        given = {name: getattr(options, ours) for name, ours in CONVERSION_FIELDS.items()}
        self._fields = {name: value for name, value in given.items() if value is not None}

    def run(self) -> int:
        """Convert all inputs. Return the exit code."""
        with self._folders(), self._answering() as client:
            for item in self._items:
                self._run(client, item)
        self._summarise()
        is_one = len(self._items) == 1
        return self._code if is_one or not self._counts["failed"] else ExitCode.FAILURE

    @contextmanager
    def _answering(self) -> Iterator[Operations]:
        """Yield the client of `--server`, else a local one."""
        if self._options.server is not None:
            with server.connected(self._options, "convert-to-mp3 --server") as client:
                yield client
            return
        from polymux.local.sync_local import Local

        server.refuse_without_server(self._options, "requires --server")
        errors.is_done_here()
        with Local() as local:
            yield local

    def _run(self, client: Operations, item: Item) -> None:
        """Convert one input. Raise only errors that affect all inputs."""
        if item.skipped:
            self._count("skipped", item, reason=item.skipped)
            return
        try:
            url, count = self._convert(client, item)
        except InvalidRequestError:
            raise  # All other inputs would fail the same way.
        except PolymuxError as error:
            self._code = errors.code_of(error)
            self._count("failed", item, error=error.to_dict())
            if not self._json:
                self._screen.clear()
                errors.say(errors.message_of(error))
            return
        # URLs of local outputs are not shown, because they end with the command.
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
        self._screen.draw(f"downloading {made}")
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
        """Check that the output can be saved before anything is sent."""
        if not self._options.overwrite and os.path.lexists(output):
            raise OutputExistsError(_EXISTS, input_name=output)
        if error := self._make_folder_of(output):
            raise error
        if not Path(output).parent.is_dir():
            folder = display_name(str(Path(output).parent))
            raise OutputFailedError(f"cannot write into '{folder}': not a directory")
