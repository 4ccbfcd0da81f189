"""From what was named, files, folders, patterns, lists and texts, to the items of a batch.

Everything is found piece by piece: a folder with a million files takes no memory but for one of
its names, as SQLite sorts them on the disk.
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
#: Folders that cannot be read and are told one by one.
_MAX_UNREADABLE_FOLDERS = 100
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_JSON_SUFFIXES = (b".jsonl", b".ndjson")


class Inputs:
    """Finds the items of a batch.

    Args:
        spec: What is to be done with them.
        out: The folder of the outputs, absolute: nothing below it is an input. Where it is the
            folder that is looked through, or holds that, only the outputs themselves are none.
        is_output: Whether a name below `out` is that of an output.

    Attributes:
        ignored: Files of folders so far that the operation does not read.
        unread: What kept folders from being read, in words: the first of them.
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
        """The items of what was named.

        Args:
            inputs: Mappings of fields; `Listed`; and for an operation on files paths of files,
                folders or patterns, else texts, and paths of files of texts.

        Raises:
            InputError: A file of texts cannot be read.
            InvalidRequestError: A line of JSON that is no object of fields.
            TypeError: Something else.
        """
        for one in inputs:
            if isinstance(one, Mapping):
                yield self._of_fields(self._spec.named(one))
            elif isinstance(one, Listed):
                yield from self._listed(one)
            elif not isinstance(one, (str, bytes, os.PathLike)):
                raise TypeError(
                    f"an input is a path, a text or a mapping of fields, not {type(one).__name__}"
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
                        f"line {number} of standard input has a zero byte: is it a list for -0?"
                    )
                yield from self._named(line, is_listed=True)
            else:
                yield self._of_line(line, number, b"standard input", is_json=False)

    def _named(self, name: bytes, *, is_listed: bool = False) -> Iterator[Found]:
        """Files: the one of that name, those in the folder of that name, or that fit a pattern."""
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
            # The tree of a list is kept; of one file it would say nothing.
            parts = [one for one in name.split(b"/") if one not in (b"", b".", b"..")]
            yield self._of_file(name, b"/".join(parts if is_listed else parts[-1:]))

    def _is_own(self, path: bytes) -> bool:
        real = os.path.realpath(path)
        return real == self._out or real.startswith(self._out + b"/")

    def _is_made(self, path: bytes, is_inside: bool) -> bool:  # noqa: FBT001
        """Whether a file is an output, of this run or an earlier one."""
        if not is_inside:
            return self._is_own(path)
        real = os.path.realpath(path)
        return self._is_output(os.path.relpath(real, self._out))

    def _below(self, root: bytes) -> Iterator[Found]:
        """The files of a folder at any depth, hidden ones left out, links to folders followed."""
        is_inside = self._is_own(root)
        entered: set[tuple[int, int]] = set()
        waiting, links = [root], list[bytes]()
        # Links last: what lies in the folder itself is named after its place there.
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
                # What lies elsewhere is done all the same.
                if len(self.unread) < _MAX_UNREADABLE_FOLDERS:
                    words = f"cannot read the folder '{display_name(here)}': {error.strerror}"
                    self.unread.append(words)

    def _of_file(self, path: bytes, label: bytes) -> Found:
        absolute = os.path.abspath(path)  # noqa: PTH100 - links stay as they are
        fields = canonical({self._spec.first: os.fsdecode(absolute)})
        stem = os.path.splitext(label)[0]  # noqa: PTH122 - byte for byte
        return Found(path, fields, _bounded(stem), _size_of(absolute))

    def _of_fields(self, fields: Mapping[str, Any], number: int | None = None) -> Found:
        """An item of fields: named after its file, else after its place and its text."""
        described = canonical(fields)
        first = fields.get(self._spec.first)
        if self._spec.is_file and isinstance(first, str):
            path = os.fsencode(first)
            found = self._of_file(path, os.path.basename(path))  # noqa: PTH119
            # Of a file that several items name, each with other fields, each is shown whole.
            shown_as = path if len(fields) == 1 else described.encode()
            return found._replace(fields=described, input=shown_as)
        self._texts = self._texts + 1 if number is None else number
        slug = _slug(first if isinstance(first, str) else "")
        stem = f"{self._texts:06}{'-' if slug else ''}{slug}"
        return Found(described.encode(), described, os.fsencode(stem), None)

    def _texts_of(self, path: bytes) -> Iterator[Found]:
        """A file of texts, one a line, or of JSON objects where its name says so."""
        is_json = os.path.splitext(path)[1].lower() in _JSON_SUFFIXES  # noqa: PTH122
        try:
            with open(path, "rb") as file:  # noqa: PTH123 - byte for byte
                for number, line in enumerate(_lines(file, b"\n"), 1):
                    if line.strip():
                        yield self._of_line(line, number, path, is_json=is_json)
        except FileNotFoundError:
            raise InputNotFoundError(
                "there is no such file of texts", input_name=os.fsdecode(path)
            ) from None
        except OSError as error:
            raise InputUnreadableError(
                error.strerror or "it cannot be read",
                input_name=os.fsdecode(path),
                errno=error.errno,
            ) from error

    def _of_line(self, line: bytes, number: int, source: bytes, *, is_json: bool) -> Found:
        where = f"line {number} of '{display_name(source)}'"
        try:
            text = line.decode("utf-8").strip()
        except UnicodeDecodeError:
            raise InvalidRequestError(f"{where} is no UTF-8") from None
        if not is_json:
            return self._of_fields({self._spec.first: text}, number)
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InvalidRequestError(f"{where} is no JSON: {error}") from None
        if not isinstance(fields, dict):
            raise InvalidRequestError(f"{where} is no object of fields but {shown(fields)}")
        return self._of_fields(self._spec.named(fields), number)


class Listed:
    """A list of inputs, one a line.

    Args:
        file: Open for reading; read as far as items are wanted.
        separator: What ends each: a line end, or a zero byte for names of any kind.
    """

    def __init__(self, file: BinaryIO, separator: bytes = b"\n") -> None:
        self._file = file
        self._separator = separator

    def lines(self) -> Iterator[bytes]:
        """Those that are not empty."""
        for line in _lines(self._file, self._separator):
            if line:
                yield line


def _lines(file: BinaryIO, separator: bytes) -> Iterator[bytes]:
    """Pieces between separators, without them; of lines also without a byte order mark."""
    mark = _BYTE_ORDER_MARK if separator == b"\n" else b""  # Editors of Windows begin texts so.
    for line in _pieces(file, separator):
        yield line.removeprefix(mark)
        mark = b""


def _pieces(file: BinaryIO, separator: bytes) -> Iterator[bytes]:
    left = b""
    read = getattr(file, "read1", file.read)  # What is there, and not all that may come.
    while piece := read(1 << 16):
        *whole, left = (left + piece).split(separator)
        yield from whole
        if len(left) > _MAX_LINE_BYTES:
            raise InvalidRequestError("a line of the list has more than 16 MiB: it is no list")
    yield left


class _Sorted:
    """Names in their order, however many: a temporary database that goes with this."""

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
    """The folder of a pattern above which nothing varies."""
    while glob.has_magic(pattern):
        pattern = os.path.dirname(pattern)  # noqa: PTH120 - byte for byte
    return pattern or b"."


def _size_of(path: bytes) -> int | None:
    """None where it is no file: that is found out, and told, when it is its turn."""
    try:
        status = os.stat(path)  # noqa: PTH116 - byte for byte
    except (OSError, ValueError):  # A zero byte.
        return None
    return status.st_size if stat.S_ISREG(status.st_mode) else None


def _bounded(stem: bytes) -> bytes:
    """A stem that stays below its folder, and whose parts leave room for what is added to them."""
    parts = []
    for part in stem.split(b"/"):
        if part in (b"", b".", b".."):
            continue
        short = part
        if len(part) > _MAX_STEM_BYTES:
            told = hashlib.sha256(part).hexdigest()[:8].encode()
            # Cut where a character of UTF-8 begins.
            cut = part[: _MAX_STEM_BYTES - 9]
            short = cut.decode("utf-8", "ignore").encode() if _is_utf8(part) else cut
            short += b"-" + told
        parts.append(short)
    return b"/".join(parts)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _slug(text: str) -> str:
    """The beginning of a text as part of a file's name: letters, digits, dashes."""
    return "-".join(re.findall(r"\w+", text[:200].lower()))[:_SLUG_CHARACTERS].strip("-")
