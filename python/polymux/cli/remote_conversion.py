"""`polymux convert-to-mp3 --server`, and `--url`: conversions by a server, or of an address."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, size
from polymux.cli import convert, errors, exit_codes, server
from polymux.cli.conversion_plan import STREAM, Item, plan
from polymux.cli.conversions import make_folder_of
from polymux.cli.download import name_in
from polymux.cli.progress import Waiting
from polymux.cli.terminal import Screen, standard_input, write_json
from polymux.errors import InvalidRequestError, OutputExistsError, OutputFailedError, PolymuxError
from polymux.media.options import CONVERSION_FIELDS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from polymux.client.methods.synchronous import Operations

_HERE_ONLY = (
    "recursive", "jobs", "abr", "preset", "threads", "exact", "verify", "identical_file", "tags",
    "tag", "cover", "id3v2_version", "strict", "limit",
)  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Has every input converted, or what lies at an address; the exit code."""
    _refuse_what_is_for_files_here(options)
    items = _items(options)
    convert.refuse_what_cannot_be_printed(options, [item.output for item in items])
    screen = Screen(quiet=options.quiet or options.json)
    conversions = _Conversions(options, screen)
    try:
        with _answering(options) as client:
            for item in items:
                conversions.run(client, item)
    finally:
        for folder in reversed(conversions.made):
            with suppress(OSError):  # Only those in which nothing was written are empty.
                folder.rmdir()
    return conversions.end(len(items))


@contextmanager
def _answering(options: argparse.Namespace) -> Iterator[Operations]:
    """The server that is named on the command line; else this computer."""
    if options.server is not None:
        with server.connected(options, "convert-to-mp3 --server") as client:
            yield client
        return
    from polymux.local.sync_local import Local

    server.refuse_without_server(options, "no server is named, give --server URL")
    errors.is_done_here()
    with Local() as local:
        yield local


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


def _items(options: argparse.Namespace) -> list[Item]:
    if options.url is None:
        return plan(
            options.inputs,
            options.output,
            recursive=False,
            skip_existing=options.skip_existing,
        )
    if options.inputs:
        raise InvalidRequestError("give either an INPUT or --url")
    output = options.output or f"{name_in(options.url)[0] or 'converted'}.mp3"
    if output != STREAM and (output.endswith(os.sep) or Path(output).is_dir()):
        output = str(Path(output, f"{name_in(options.url)[0] or 'converted'}.mp3"))
    skipped = "exists" if options.skip_existing and os.path.lexists(output) else ""
    return [Item(options.url, output, skipped=skipped)]


class _Conversions:
    """One conversion after the other, and what is said of them."""

    def __init__(self, options: argparse.Namespace, screen: Screen) -> None:
        self._options = options
        self._screen = screen
        self._counts = {"converted": 0, "failed": 0, "skipped": 0}
        self._code = exit_codes.SUCCESS
        #: Folders that had to be made.
        self.made: list[Path] = []
        given = {name: getattr(options, ours) for name, ours in CONVERSION_FIELDS.items()}
        self._fields = {name: value for name, value in given.items() if value is not None}

    def run(self, client: Operations, item: Item) -> None:
        """Converts one input; only what concerns all of them is raised."""
        if item.skipped:
            self._count("skipped", {"input": item.name, "reason": item.skipped})
            return
        try:
            url, count = self._convert(client, item)
        except InvalidRequestError:
            raise  # So it would be with every other input.
        except PolymuxError as error:
            self._code = errors.code_of(error)
            self._count("failed", {"input": item.name, "error": error.to_dict()})
            if not self._options.json:
                self._screen.clear()
                errors.say(errors.message_of(error))
            return
        # Of what was made here the address is one that goes with the command.
        more = {"url": url} if self._options.server is not None else {}
        self._count("converted", {"input": item.name, "output": item.output, **more})
        names = [
            "standard stream" if name == STREAM else display_name(name)
            for name in (item.name, item.output)
        ]
        self._screen.say(f"{' -> '.join(names)}  ({size(count)})")

    def _convert(self, client: Operations, item: Item) -> tuple[str, int]:
        if item.error is not None:
            raise item.error
        if item.output != STREAM and not self._options.overwrite and os.path.lexists(item.output):
            raise OutputExistsError(
                "it exists already (--overwrite replaces it, --skip-existing leaves such inputs "
                "out)",
                input_name=item.output,
            )
        if item.output != STREAM and (error := make_folder_of(item.output, self.made)):
            raise error
        if item.output != STREAM and not Path(item.output).parent.is_dir():
            folder = display_name(str(Path(item.output).parent))
            raise OutputFailedError(f"cannot write into '{folder}': it is no folder")
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

    def _count(self, status: str, facts: dict[str, Any]) -> None:
        self._counts[status] += 1
        if self._options.json:
            write_json({"status": status, **facts})

    def end(self, inputs: int) -> int:
        """Says how it went altogether; the exit code."""
        if self._options.json:
            write_json({"status": "summary", **self._counts})
        elif inputs != 1 or self._counts["skipped"]:
            self._screen.say(", ".join(f"{count} {word}" for word, count in self._counts.items()))
        return self._code if inputs == 1 or not self._counts["failed"] else exit_codes.FAILURE
