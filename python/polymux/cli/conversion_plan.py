"""From the words of the command line to inputs with their outputs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.text import display_name
from polymux.errors import (
    InputUnreadableError,
    InvalidRequestError,
    OutputRefusedError,
    PolymuxError,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = "-"


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
