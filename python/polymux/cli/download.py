"""Files that a server has made, saved under names that people recognise."""

from __future__ import annotations

import os
import re
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

from polymux._util.text import display_name, path_in
from polymux.errors import OutputExistsError, OutputFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.media.media_file import MediaFile

_MAX_STEM_CHARACTERS = 60
_NO_NAME = re.compile(r"[^\w.-]+")
_SUFFIX = re.compile(r"\.[A-Za-z0-9]{1,5}")


def stem_of(text: str) -> str:
    """A text as the beginning of a file's name: letters, digits, dashes; empty where none is left.

    Example:
        >>> from polymux.cli.download import stem_of
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
    """Stem and suffix of the file that an address names; either may be empty."""

    last = unquote(path_in(url)).rpartition("/")[2]
    stem, suffix = os.path.splitext(_NO_NAME.sub("-", last))  # noqa: PTH122 - no path yet
    if not _SUFFIX.fullmatch(suffix):
        suffix = ""
    return stem.strip(".-_")[:_MAX_STEM_CHARACTERS], suffix


class Saver:
    """Saves files into a folder, which is made where it is missing.

    Args:
        folder: Where to.
        stem: What the names begin with; default: the names in the addresses.
    """

    def __init__(self, folder: str, stem: str = "") -> None:
        self._folder = Path(folder)
        self._stem = stem

    def prepare(self) -> None:
        """Makes the folder, before anything is asked for that could not be saved then.

        Raises:
            OutputFailedError: It cannot be made, or is no folder.
        """
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            if not os.access(self._folder, os.W_OK | os.X_OK):
                raise PermissionError("no permission to write in it")
        except OSError as error:
            name = display_name(os.fspath(self._folder))
            reason = error.strerror or str(error)
            raise OutputFailedError(
                f"cannot save into the folder '{name}': {reason}", errno=error.errno
            ) from None

    def save(self, file: MediaFile, label: str = "") -> Path:
        """Fetches a file, under the first name that is free; nothing is ever overwritten.

        Args:
            file: What a server has made.
            label: What tells it from other files of the same answer.

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
            except OutputExistsError:  # Somebody took the name meanwhile.
                continue
        raise AssertionError("numbers came to an end")

    def _paths(self, stem: str, suffix: str) -> Iterator[Path]:
        yield self._folder / f"{stem}{suffix}"
        for number in count(2):
            yield self._folder / f"{stem}-{number}{suffix}"
