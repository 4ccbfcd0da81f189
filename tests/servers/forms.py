"""Bodies as the reference server reads them: JSON by `json`, forms by python-multipart."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from servers.replies import RefusedError

KEPT_BYTES = 1 << 20
MAX_JSON_BYTES = 64 << 20


@dataclass
class FilePart:
    """A file of a form; `content` holds its first bytes, the hash is of all of them."""

    name: str
    file_name: str
    content_type: str
    size_bytes: int = 0
    kept: bytearray = field(default_factory=bytearray, repr=False)
    hash: hashlib._Hash = field(default_factory=hashlib.sha256, repr=False)

    @property
    def content(self) -> bytes:
        return bytes(self.kept)

    @property
    def sha256(self) -> str:
        return self.hash.hexdigest()

    def described(self) -> dict[str, Any]:
        """As it appears in the echoed input."""
        return {
            "file_name": self.file_name,
            "content_type": self.content_type,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
        }


@dataclass
class Body:
    """What a request carried: fields in their order, and files."""

    encoding: str
    fields: list[tuple[str, Any]] = field(default_factory=list)
    files: list[FilePart] = field(default_factory=list)

    @property
    def values(self) -> dict[str, Any]:
        """All fields by name, files as what is known of them."""
        return dict(self.fields) | {file.name: file.described() for file in self.files}

    def get(self, name: str, default: Any = None) -> Any:
        value = dict(self.fields).get(name)
        return default if value is None or value == "" else value

    def file(self, name: str) -> FilePart | None:
        return next((file for file in self.files if file.name == name), None)

    @property
    def fingerprint(self) -> str:
        """The same for the same content, whatever the boundary of the form."""
        return json.dumps([self.fields, [[one.name, one.described()] for one in self.files]])


class JsonReader:
    """Takes a JSON body piece by piece."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._size_bytes = 0

    def take(self, piece: bytes) -> None:
        self._size_bytes += len(piece)
        if self._size_bytes <= MAX_JSON_BYTES:
            self._pieces.append(piece)

    def body(self) -> Body:
        """The whole of it.

        Raises:
            RefusedError: It is no JSON object.
        """
        if self._size_bytes > MAX_JSON_BYTES:
            raise RefusedError(413, "the JSON is too long")
        try:
            value = json.loads(b"".join(self._pieces))
        except ValueError as error:
            raise RefusedError(400, f"the body is no JSON: {error}") from None
        if not isinstance(value, dict):
            raise RefusedError(400, "the body is no JSON object")
        return Body("json", list(value.items()))


class FormReader:
    """Takes a multipart/form-data body piece by piece; files are counted, not kept."""

    def __init__(self, content_type: str) -> None:
        boundary = parse_options_header(content_type)[1].get(b"boundary")
        if not boundary:
            raise RefusedError(415, "multipart/form-data without a boundary")
        self._body = Body("multipart")
        self._error = ""
        self._complete = False
        self._header = [b"", b""]
        self._headers: dict[bytes, bytes] = {}
        self._part: FilePart | None = None
        self._text = bytearray()
        self._parser = MultipartParser(boundary, {
            "on_part_begin": self._headers.clear,
            "on_header_field": lambda data, start, end: self._add_header(0, data[start:end]),
            "on_header_value": lambda data, start, end: self._add_header(1, data[start:end]),
            "on_header_end": self._header_end,
            "on_headers_finished": self._head_end,
            "on_part_data": lambda data, start, end: self._data(data[start:end]),
            "on_part_end": self._part_end,
            "on_end": self._end,
        })  # fmt: skip

    def take(self, piece: bytes) -> None:
        if self._error:
            return
        try:
            self._parser.write(piece)
        except (FormParserError, UnicodeDecodeError, KeyError) as error:
            self._error = f"the form is wrong: {error!r}"

    def body(self) -> Body:
        """The whole of it.

        Raises:
            RefusedError: It is no form, or ends too early.
        """
        if self._error or not self._complete:
            raise RefusedError(400, self._error or "the form ends too early")
        return self._body

    def _add_header(self, which: int, data: bytes) -> None:
        self._header[which] += data

    def _header_end(self) -> None:
        self._headers[self._header[0].lower()] = self._header[1]
        self._header = [b"", b""]

    def _head_end(self) -> None:
        options = parse_options_header(self._headers[b"content-disposition"])[1]
        self._name = options[b"name"].decode()
        self._text = bytearray()
        self._part = None
        if b"filename" in options:
            kind = self._headers.get(b"content-type", b"").decode()
            self._part = FilePart(self._name, options[b"filename"].decode(), kind)

    def _data(self, data: bytes) -> None:
        if self._part is None:
            self._text += data
            return
        self._part.size_bytes += len(data)
        self._part.hash.update(data)
        self._part.kept += data[: KEPT_BYTES - len(self._part.kept)]

    def _part_end(self) -> None:
        if self._part is None:
            self._body.fields.append((self._name, self._text.decode()))
        else:
            self._body.files.append(self._part)

    def _end(self) -> None:
        self._complete = True


def reader_of(content_type: str | None, accepted: tuple[str, ...]) -> JsonReader | FormReader:
    """What reads a body of this type.

    Raises:
        RefusedError: The operation does not take it.
    """
    kind = (content_type or "").partition(";")[0].strip().lower()
    encoding = {"application/json": "json", "multipart/form-data": "multipart"}.get(kind)
    if encoding not in accepted:
        raise RefusedError(415, f"Content-Type {content_type!r} is not taken here")
    return JsonReader() if encoding == "json" else FormReader(content_type or "")
