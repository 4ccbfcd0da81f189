"""The definition of a batch: operation, common fields, and the identity of items."""

from __future__ import annotations

import hashlib
import json
import os
import stat
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native import core
from polymux._util.text import shown
from polymux.client.request import choose_variant
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Mapping

#: MIME types that an operation on a kind of media supports in directories.
_READ = {"image": ("image/",), "audio": ("audio/", "video/"), "video": ("video/",)}
_STREAMED = ("chat", "free_chat")


class BatchSpec:
    """An operation on many inputs.

    Args:
        operation: A method's name, a command, a path or its last segment.
        fields: Fields of all items, by Python or wire name.

    Raises:
        InvalidRequestError: The operation or a field is unknown, or a value is invalid.
        TypeError: A file is not a path.

    Attributes:
        operation: Name in the contract.
        model: Model of the operation; None if not given.
        first: Name of the field for the input.
        is_file: Whether the input is a file; else it is a text.
        files: Names of all fields that are files.
        fields: The common fields by wire name, with files as absolute paths.
        extra_body: Additional fields.

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
            raise InvalidRequestError("stream: not supported in a batch. Omit it")
        self._check()

    def named(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        """Return fields by wire name, with files as absolute paths.

        Raises:
            TypeError: A file is not a path. Other sources could not be read again on a resume.
        """
        named: dict[str, Any] = {}
        for name, value in fields.items():
            wire = self._wire.get(name, name)
            named[wire] = self._path(name, value) if wire in self.files else value
        return named

    def _path(self, name: str, value: Any) -> str:
        if not isinstance(value, (str, bytes, os.PathLike)):
            raise TypeError(f"{name}: invalid type (got {type(value).__name__}, allowed a path)")
        return os.path.abspath(os.fsdecode(value))  # noqa: PTH100 - does not resolve links

    def _check(self) -> None:
        """Reject common fields that would make every item fail. Items may add more fields."""
        given = {self.first: "x", **self.fields}
        try:
            name, _, variant, _, _ = choose_variant(self.operation, self.model, given)
            core.check(name, variant, given)
        except InvalidRequestError as error:
            named = {
                problem.field.partition("[")[0].partition(".")[0] for problem in error.problems
            }
            if not error.problems or named & self.fields.keys():
                raise

    def reads(self, name: str | bytes) -> bool:
        """Return whether the operation supports a file in a directory, by its name."""
        kind: str = core.content_type_of(os.fsdecode(name).encode("ascii", "replace").decode())
        return kind.startswith(self._kinds)

    @property
    def described(self) -> tuple[str, str, str]:
        """Operation with model, common fields and additional fields, as stored in the manifest."""
        name = f"{self.operation}?model={self.model}" if self.model else self.operation
        extra = canonical(dict(self.extra_body))
        return name, canonical({**self.fields, **self.extra_body}), extra

    def completed(self, operation: str, fields: str, extra: str | None) -> BatchSpec:
        """Return this batch with the missing fields of an earlier one of the same operation.

        Args:
            operation: Operation with model of the earlier batch.
            fields: Its common fields, as JSON.
            extra: Its additional fields, as JSON; None if unknown.
        """
        name, _, model = operation.partition("?model=")
        if name != self.operation:
            return self
        known = json.loads(fields)
        names = json.loads(extra) if extra is not None else known.keys() - self._wire.keys()
        additional = {name: known.pop(name) for name in names}
        if chosen := self.model or model:
            known["model"] = chosen
        given = {"extra_body": {**additional, **self.extra_body}}
        return BatchSpec(self.operation, {**known, **self.fields, **given})

    def identity(self, fields: Mapping[str, Any]) -> bytes:
        """Return the SHA-256 of operation, model, all fields, and the content of all files.

        Args:
            fields: All fields of an item by wire name.

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
    r"""Return canonical JSON, which is the same for equal values: ASCII, names sorted.

    Raises:
        InvalidRequestError: The value is not valid JSON.


    Example:
        >>> from polymux.batches.spec import canonical
        >>> canonical({"b": 1, "a": "é"})
        '{"a":"\\u00e9","b":1}'
    """
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise InvalidRequestError(
            f"batch: the fields cannot be written as JSON: {error} (got {shown(value)})"
        ) from None


def digest_of(path: str) -> bytes:
    """Return the SHA-256 of a file's content.

    Raises:
        InputNotFoundError: The file does not exist.
        InputUnreadableError: It is not a regular file, or cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        with open(descriptor, "rb", buffering=0) as file:  # noqa: PTH123 - a descriptor
            # Devices can be endless, and reading a pipe would consume its data.
            if stat.S_ISREG(os.fstat(descriptor).st_mode):
                return hashlib.file_digest(file, "sha256").digest()
    except (FileNotFoundError, NotADirectoryError, ValueError):  # ValueError: a null byte.
        raise InputNotFoundError("file not found", input_name=path) from None
    except OSError as error:
        reason = error.strerror or "cannot be read"
        raise InputUnreadableError(reason, input_name=path, errno=error.errno) from error
    raise InputUnreadableError("not a regular file", input_name=path)
