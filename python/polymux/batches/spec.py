"""What a batch is about: an operation, the fields that all items share, and what makes them one."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native import core
from polymux._util.text import shown
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Which kinds of files an operation on a kind of media reads: all that may have sound, or pictures.
_READ = {"image": ("image/",), "audio": ("audio/", "video/"), "video": ("video/",)}
_STREAMED = ("chat", "free_chat")


class BatchSpec:
    """An operation on many inputs.

    Args:
        operation: A method's name, a command, a path or its last segment.
        fields: What all items have in common, by the names of the Python methods or of the wire.

    Raises:
        InvalidRequestError: There is no such operation or field, or a value that it does not take.
        TypeError: A file that is no path.

    Attributes:
        operation: Its name in the contract.
        model: The model selector; None where none was given.
        first: The field that an input is.
        is_file: Whether that is a file; else it is text.
        files: All fields that are files.
        fields: The common fields by their names on the wire, files as absolute paths.
        extra_body: Fields that the contract does not have.

    Example:
        >>> from polymux.batches.spec import BatchSpec
        >>> spec = BatchSpec("stt", {"language": "de"})
        >>> spec.operation, spec.first, spec.is_file, spec.reads("talk.mp4")
        ('transcribe', 'audio', True, True)
    """

    def __init__(self, operation: str, fields: Mapping[str, Any]) -> None:
        described = contract.operation(operation)
        every = [field for variant in described.variants for field in variant.fields]
        self.operation = described.name
        self.first = described.first
        self.files = frozenset(field.name for field in every if field.type == "file")
        self.is_file = self.first in self.files
        self._wire = {field.python_name: field.name for field in every}
        self._wire |= {field.name: field.name for field in every}
        media = next(field.raw.get("media", "") for field in every if field.name == self.first)
        self._kinds = _READ.get(media, ())
        given = {name: value for name, value in fields.items() if value is not None}
        selects = "model" not in self._wire and any(one.model for one in described.variants)
        self.model: str | None = given.pop("model", None) if selects else None
        self.extra_body: Mapping[str, Any] = given.pop("extra_body", {})
        self.fields = self.named(given)
        if self.operation in _STREAMED and self.fields.pop("stream", False):
            raise InvalidRequestError("stream: the answers of a batch are stored whole")
        self._check()

    def named(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Fields by their names on the wire, files as absolute paths.

        Raises:
            TypeError: A file that is no path: it could not be found again later.
        """
        named: dict[str, Any] = {}
        for name, value in fields.items():
            wire = self._wire.get(name, name)
            named[wire] = self._path(name, value) if wire in self.files else value
        return named

    def _path(self, name: str, value: Any) -> str:
        if not isinstance(value, (str, bytes, os.PathLike)):
            raise TypeError(f"{name}: in a batch a file is a path, not {type(value).__name__}")
        return os.path.abspath(os.fsdecode(value))  # noqa: PTH100 - links stay as they are

    def _check(self) -> None:
        """Refuses what would make every item fail; an item may bring fields of its own."""
        given = {self.first: "x", **self.fields}
        try:
            name, _, variant, _, _ = core.choose_variant(self.operation, self.model, given)
            core.check(name, variant, given)
        except InvalidRequestError as error:
            named = {
                problem.field.partition("[")[0].partition(".")[0] for problem in error.problems
            }
            if not error.problems or named & self.fields.keys():
                raise

    def reads(self, name: str | bytes) -> bool:
        """Whether a file of that name, found in a folder, is one that the operation reads."""
        kind: str = core.content_type_of(os.fsdecode(name).encode("ascii", "replace").decode())
        return kind.startswith(self._kinds)

    @property
    def described(self) -> tuple[str, str]:
        """Operation with model, and the common fields as JSON: as the manifest has them."""
        name = f"{self.operation}?model={self.model}" if self.model else self.operation
        return name, canonical({**self.fields, **self.extra_body})

    def identity(self, fields: Mapping[str, Any]) -> bytes:
        """SHA-256 of operation, model, all fields, and the content of every file among them.

        Args:
            fields: All fields of an item, on the wire.

        Raises:
            InputError: A file cannot be read.
        """
        plain = {
            name: {"sha256": digest_of(value).hex()} if name in self.files else value
            for name, value in fields.items()
        }
        described: dict[str, Any] = {
            "operation": self.operation,
            "model": self.model,
            "fields": plain,
        }
        if self.extra_body:
            described["extra_body"] = self.extra_body
        return hashlib.sha256(canonical(described).encode()).digest()


def canonical(value: Any) -> str:
    r"""A value as the one JSON text that all equal values have: ASCII, names sorted.

    Raises:
        InvalidRequestError: It is nothing that JSON has.

    Example:
        >>> from polymux.batches.spec import canonical
        >>> canonical({"b": 1, "a": "é"})
        '{"a":"\\u00e9","b":1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(
            f"in a batch all fields are values that JSON has, not {shown(value)} ({error})"
        ) from None


def digest_of(path: str) -> bytes:
    """SHA-256 of a file's content.

    Raises:
        InputNotFoundError: There is no such file.
        InputUnreadableError: It is none, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            # A device may have no end, and what is taken from a pipe is gone.
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return hashlib.file_digest(file, "sha256").digest()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # The last: a zero byte.
        raise InputNotFoundError("there is no such file", input_name=path) from None
    except OSError as error:
        reason = error.strerror or "it cannot be read"
        raise InputUnreadableError(reason, input_name=path, errno=error.errno) from error
    raise InputUnreadableError("it is no regular file", input_name=path)
