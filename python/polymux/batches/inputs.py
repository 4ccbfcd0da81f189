"""Finds the items of a batch from files, directories, patterns, lists and texts.

Items are found one by one. SQLite sorts the names of a directory on disk, which keeps memory use
constant even for a million files.
"""

from __future__ import annotations

import glob
import hashlib
import json
import os
import re
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any, BinaryIO

from polymux._util.text import display_name, shown
from polymux.batches.records import Found
from polymux.batches.spec import canonical
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Iterator

    from polymux.batches.spec import BatchSpec

_MAX_LINE_BYTES = 16 << 20
_MAX_STEM_BYTES = 160
_SLUG_CHARACTERS = 40
#: Maximum number of unreadable directories and invalid lines that are reported individually.
_MAX_UNREAD = 100
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON_SUFFIXES = (b".jsonl", b".ndjson")


class Inputs:
    """Finds the items of a batch.

    Args:
        spec: The operation and its common fields.
        out: Absolute path of the output directory. Nothing in it is an input. But if an input
            directory is the output directory or inside it, only actual outputs are excluded.
        is_output: Returns whether a name relative to `out` is an output.

    Attributes:
        ignored: Number of files in directories that the operation does not support.
        unread: Error messages of the first unreadable directories and invalid lines.
    """

    def __init__(
        self, spec: BatchSpec, out: bytes, is_output: Callable[[bytes], bool] = lambda _: False
    ) -> None:
        self._spec = spec
        self._out = os.path.realpath(out)
        self._is_output = is_output
        self._texts = 0
        self.ignored = 0
        self.unread: list[str] = []

    def find(self, inputs: Iterable[Any]) -> Generator[Found]:
        """Find the items.

        Args:
            inputs: Mappings of fields; `Listed`; for an operation on files also paths of files or
                directories, or patterns, else texts, and paths of files with texts.

        Raises:
            InputError: A file with texts cannot be read.
            InvalidRequestError: A line is too large, or a path contains a null byte.
            TypeError: An input has another type.
        """
        for one in inputs:
            if isinstance(one, Mapping):
                yield self._of_fields(self._spec.named(one))
            elif isinstance(one, Listed):
                yield from self._listed(one)
            elif not isinstance(one, (str, bytes, os.PathLike)):
                raise TypeError(
                    f"input: invalid type (got {type(one).__name__}, allowed a path, a text or a "
                    "mapping of fields)"
                )
            elif self._spec.is_file:
                yield from self._named(os.fsencode(one))
            elif isinstance(one, os.PathLike):
                yield from self._texts_of(os.fsencode(one))
            else:
                text = one if isinstance(one, str) else one.decode()
                yield self._of_fields({self._spec.first: text})

    def _listed(self, listed: Listed) -> Iterator[Found]:
        for number, line in enumerate(listed.lines(), 1):
            if self._spec.is_file:
                if b"\0" in line:
                    raise InvalidRequestError(
                        f"line {number} of standard input: contains a null byte. Use -0 if "
                        "null bytes separate the paths"
                    )
                yield from self._named(line, is_listed=True)
            else:
                yield from self._of_line(line, number, b"standard input", is_json=False)

    def _named(self, name: bytes, *, is_listed: bool = False) -> Iterator[Found]:
        """Find the file with this name, the files in this directory, or matches of this pattern."""
        if os.path.isdir(name):  # noqa: PTH112 - byte for byte
            yield from self._below(name)
        elif not is_listed and not os.path.lexists(name) and glob.has_magic(name):
            root = _fixed_part(name)
            is_inside = self._is_own(root)
            with closing(_Sorted()) as paths:
                paths.add(glob.iglob(name, recursive=True))  # noqa: PTH207 - byte for byte
                for path in paths:
                    if os.path.isfile(path) and not self._is_made(path, is_inside):  # noqa: PTH113
                        yield self._of_file(path, os.path.relpath(path, root))
        else:
            # Keep the directories of a list in the output names, but not those of a single file.
            parts = [one for one in name.split(b"/") if one not in (b"", b".", b"..")]
            yield self._of_file(name, b"/".join(parts if is_listed else parts[-1:]))

    def _is_own(self, path: bytes) -> bool:
        real = os.path.realpath(path)
        return real == self._out or real.startswith(self._out + b"/")

    def _is_made(self, path: bytes, is_inside: bool) -> bool:  # noqa: FBT001
        """Return whether a file is an output of this run or an earlier one."""
        if not is_inside:
            return self._is_own(path)
        real = os.path.realpath(path)
        return self._is_output(os.path.relpath(real, self._out))

    def _below(self, root: bytes) -> Iterator[Found]:
        """Find files recursively, without hidden ones; links to directories are followed."""
        is_inside = self._is_own(root)
        entered: set[tuple[int, int]] = set()
        waiting, links = [root], list[bytes]()
        # Links last, so files are named after their real location in this directory.
        while waiting or links:
            here = waiting.pop() if waiting else links.pop(0)
            try:
                status = os.stat(here)  # noqa: PTH116 - byte for byte
                mark = (status.st_dev, status.st_ino)
                if mark in entered or (not is_inside and self._is_own(here)):
                    continue
                entered.add(mark)
                folders = list[bytes]()
                with closing(_Sorted()) as names, os.scandir(here) as found:
                    names.add(one.name for one in found if not one.name.startswith(b"."))
                    for name in names:
                        path = os.path.join(here, name)  # noqa: PTH118 - byte for byte
                        if os.path.isdir(path):  # noqa: PTH112
                            (links if os.path.islink(path) else folders).append(path)  # noqa: PTH114
                        elif not os.path.isfile(path):  # noqa: PTH113
                            continue
                        elif not self._spec.reads(name):
                            self.ignored += 1
                        elif not (is_inside and self._is_made(path, is_inside)):
                            yield self._of_file(path, os.path.relpath(path, root))
                waiting += reversed(folders)
            except OSError as error:
                self._leave_out(f"cannot read directory '{display_name(here)}': {error.strerror}")

    def _leave_out(self, words: str) -> None:
        """Report an input that cannot be read, and continue with the others."""
        if len(self.unread) < _MAX_UNREAD:
            self.unread.append(words)

    def _of_file(self, path: bytes, label: bytes) -> Found:
        absolute = os.path.abspath(path)  # noqa: PTH100 - does not resolve links
        fields = canonical({self._spec.first: os.fsdecode(absolute)})
        stem = os.path.splitext(label)[0]  # noqa: PTH122 - byte for byte
        return Found(path, fields, _bounded(stem), _size_of(absolute))

    def _of_fields(self, fields: Mapping[str, Any], number: int | None = None) -> Found:
        """Create an item from fields, named after its file, else after its number and text."""
        described = canonical(fields)
        first = fields.get(self._spec.first)
        if self._spec.is_file and isinstance(first, str):
            path = os.fsencode(first)
            found = self._of_file(path, os.path.basename(path))  # noqa: PTH119
            # With several fields, show all of them: several items may use the same file.
            shown_as = path if len(fields) == 1 else described.encode()
            return found._replace(fields=described, input=shown_as)
        self._texts = self._texts + 1 if number is None else number
        slug = _slug(first if isinstance(first, str) else "")
        stem = f"{self._texts:06}{'-' if slug else ''}{slug}"
        return Found(described.encode(), described, os.fsencode(stem), None)

    def _texts_of(self, path: bytes) -> Iterator[Found]:
        """Read a file with one text per line, or with JSON objects according to its suffix."""
        is_json = os.path.splitext(path)[1].lower() in _JSON_SUFFIXES  # noqa: PTH122
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - byte for byte
                for number, line in enumerate(_lines(file, b"\n"), 1):
                    if line.strip():
                        yield from self._of_line(line, number, path, is_json=is_json)
        except FileNotFoundError:
            raise InputNotFoundError("file not found", input_name=os.fsdecode(path)) from None
        except OSError as error:
            raise InputUnreadableError(
                error.strerror or "cannot be read",
                input_name=os.fsdecode(path),
                errno=error.errno,
            ) from error

    def _of_line(
        self, line: bytes, number: int, source: bytes, *, is_json: bool
    ) -> Iterator[Found]:
        """Yield the item of a line, unless it is invalid."""
        try:
            text = line.decode("utf-8").strip()
            fields = _json_object(text) if is_json else {self._spec.first: text}
            found = self._of_fields(self._spec.named(fields), number)
        except UnicodeDecodeError:
            problem = "invalid UTF-8"
        except (TypeError, InvalidRequestError) as error:
            problem = str(error)
        except (ValueError, RecursionError) as error:
            problem = f"invalid JSON: {error}"
        else:
            yield found
            return
        self._leave_out(f"line {number} of '{display_name(source)}': {problem}")


def _json_object(text: str) -> dict[str, Any]:
    value = json.loads(text)
    if not isinstance(value, dict):
        raise InvalidRequestError(f"must be a JSON object (got {shown(value)})")
    return value


class Listed:
    """A list of inputs.

    Args:
        file: Binary file, read only as far as necessary.
        separator: Separator of the inputs: a newline, or a null byte for arbitrary names.
    """

    def __init__(self, file: BinaryIO, separator: bytes = b"\n") -> None:
        self._file = file
        self._separator = separator

    def lines(self) -> Iterator[bytes]:
        """Iterate over the inputs that are not empty."""
        for line in _lines(self._file, self._separator):
            if line:
                yield line


def _lines(file: BinaryIO, separator: bytes) -> Iterator[bytes]:
    """Split at separators. Removes a byte order mark if the separator is a newline."""
    mark = _BYTE_ORDER_MARK if separator == b"\n" else b""  # Common in files from Windows.
    for line in _pieces(file, separator):
        yield line.removeprefix(mark)
        mark = b""


def _pieces(file: BinaryIO, separator: bytes) -> Iterator[bytes]:
    left = b""
    read = getattr(file, "read1", file.read)  # Does not wait for a full buffer.
    while piece := read(1 << 16):
        *whole, left = (left + piece).split(separator)
        yield from whole
        if len(left) > _MAX_LINE_BYTES:
            raise InvalidRequestError("list of inputs: a line is too large (allowed 16 MiB)")
    yield left


class _Sorted:
    """Sorts any number of names with a temporary database."""

    def __init__(self) -> None:
        self._connection = sqlite3.connect("")
        self._connection.execute("CREATE TABLE names (name BLOB PRIMARY KEY) WITHOUT ROWID")

    def add(self, names: Iterable[bytes]) -> None:
        self._connection.executemany(
            "INSERT OR IGNORE INTO names VALUES (?)", ((name,) for name in names)
        )

    def __iter__(self) -> Iterator[bytes]:
        for (name,) in self._connection.execute("SELECT name FROM names ORDER BY name"):
            yield name

    def close(self) -> None:
        self._connection.close()


def _fixed_part(pattern: bytes) -> bytes:
    """Return the part of a pattern before the first wildcard, as a directory."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)  # noqa: PTH120 - byte for byte
    return pattern or b"."


def _size_of(path: bytes) -> int | None:
    """Return the size, or None if it is not a file. Its processing then reports the error."""
    try:
        status = os.stat(path)  # noqa: PTH116 - byte for byte
    except (OSError, ValueError):  # ValueError: a null byte.
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _bounded(stem: bytes) -> bytes:
    """Return a stem without ".." whose parts are short enough for additions."""
    parts = []
    for part in stem.split(b"/"):
        if part in (b"", b".", b".."):
            continue
        short = part
        if len(part) > _MAX_STEM_BYTES:
            digest = hashlib.sha256(part).hexdigest()[:8].encode()
            # Do not cut within a UTF-8 character.
            cut = part[: _MAX_STEM_BYTES - 9]
            short = cut.decode("utf-8", "ignore").encode() if _is_utf8(part) else cut
            short += b"-" + digest
        parts.append(short)
    return b"/".join(parts)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _slug(text: str) -> str:
    """Return the start of a text as part of a file name: letters, digits, dashes."""
    return "-".join(re.findall(r"\w+", text[:200].lower()))[:_SLUG_CHARACTERS].strip("-")
