"""Request bodies, parsed by `json` and python-multipart."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import FormParser, parse_options_header

from servers.replies import RefusedError

if TYPE_CHECKING:
    from python_multipart.multipart import Field, File

    from servers.records import Request


@dataclass
class FilePart:
    """A file of a form."""

    name: str
    file_name: str
    content_type: str
    content: bytes = field(repr=False)

    @property
    def size_bytes(self) -> int:
        return len(self.content)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.content).hexdigest()

    def described(self) -> dict[str, Any]:
        return {
            "file_name": self.file_name,
            "content_type": self.content_type,
            "size_bytes": self.size_bytes,
            "sha256": self.sha256,
        }


@dataclass
class Body:
    """The contents of a request: fields in order, and files."""

    encoding: str
    fields: list[tuple[str, Any]] = field(default_factory=list)
    files: list[FilePart] = field(default_factory=list)

    @property
    def values(self) -> dict[str, Any]:
        return dict(self.fields) | {file.name: file.described() for file in self.files}

    def get(self, name: str, default: Any = None) -> Any:
        value = dict(self.fields).get(name)
        return default if value is None or value == "" else value

    def file(self, name: str) -> FilePart | None:
        return next((file for file in self.files if file.name == name), None)


def body_of(request: Request) -> Body:
    """Parse the body of a request, which must have been kept completely."""
    assert len(request.body) == request.body_bytes, "the server keeps no bodies of this size"
    kind, options = parse_options_header(request.header("content-type"))
    try:
        if kind == b"multipart/form-data":
            return _form(request.body, options.get(b"boundary"))
        if kind == b"application/json":
            return Body("json", list(json.loads(request.body).items()))
    except (ValueError, AttributeError) as error:  # FormParserError is a ValueError.
        raise RefusedError(400, f"the body is wrong: {error!r}") from None
    raise RefusedError(415, f"Content-Type {kind!r} is not taken here")


def _form(data: bytes, boundary: bytes | None) -> Body:
    body, is_whole = Body("multipart"), []

    def add_field(one: Field) -> None:
        body.fields.append((one.field_name.decode(), (one.value or b"").decode()))

    def add_file(one: File) -> None:
        one.file_object.seek(0)
        names = one.field_name.decode(), one.file_name.decode()
        body.files.append(FilePart(*names, str(one.content_type or ""), one.file_object.read()))
        one.close()

    kind = "multipart/form-data"
    parser = FormParser(kind, add_field, add_file, lambda: is_whole.append(True), boundary)
    parser.write(data)
    if not is_whole:
        raise FormParserError("it ends too early")
    return body
