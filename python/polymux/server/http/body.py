"""Request bodies: size and time limits, JSON, and forms with files on disk."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser

from polymux import errors
from polymux._native import core
from polymux.server.auth.gate import too_large
from polymux.service.errors import bad_request, status_error
from polymux.service.model import Upload

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from io import FileIO

    from polymux.runtime.settings import Limits
    from polymux.server.http.responses import Receive
    from polymux.service.media_store import MediaStore
    from polymux.service.temporary_files import TempFile

#: File names have up to 255 characters of up to four bytes; some clients send them twice.
_MAX_DISPOSITION_BYTES = 4 << 10
_MAX_PARAMETERS = 16
_FIRST = re.compile(r"[ \t]*+([^;,\s\"]*+)[ \t]*+")
#: One parameter with its semicolon, or an empty one after the last. Linear time.
_PARAMETER = re.compile(
    r""";[ \t]*+(?:([^;="\s]++)[ \t]*+(?:=[ \t]*+("(?:[^"\\]++|\\.)*+"|[^;"]*+))?+[ \t]*+)?+"""
)


def parameters(field: bytes, what: str) -> tuple[str, dict[str, bytes]]:
    """Parse a header field into its value and its parameters, with names in lower case.

    Ignores names with ``*``, which forms must not use (RFC 7578, 4.2).

    Example:
        >>> from polymux.server.http.body import parameters
        >>> parameters(b'Form-Data; Name="a; b"; filename=c.wav;', "a part")
        ('form-data', {'name': b'a; b', 'filename': b'c.wav'})
    """
    if len(field) > _MAX_DISPOSITION_BYTES:
        raise bad_request(
            f"{what}: too long (got {len(field)} bytes, allowed {_MAX_DISPOSITION_BYTES})"
        )
    text = field.decode("latin-1")
    first = _FIRST.match(text)
    assert first is not None  # noqa: S101 - the pattern also matches an empty string
    place, found, count = first.end(), {}, 0
    while place < len(text):
        matched = _PARAMETER.match(text, place)
        count += 1
        if count > _MAX_PARAMETERS:
            raise bad_request(f"{what}: too many parameters (allowed: {_MAX_PARAMETERS})")
        if matched is None:
            raise bad_request(f"{what}: invalid parameters")
        place = matched.end()
        if matched[1] is None:
            continue
        name = matched[1].lower()
        if name in found:
            raise bad_request(f"{what}: the parameter {name[:100]} is repeated")
        found[name] = _plain(matched[2] or "")
    return first[1].lower(), {name: one for name, one in found.items() if "*" not in name}


def _plain(value: str) -> bytes:
    value = value.rstrip(" \t")
    if value.startswith('"'):
        # Browsers escape only these two characters, and send other backslashes literally.
        value = value[1:-1].replace("\\\\", "\\").replace('\\"', '"')
    return value.encode("latin-1")


_MAX_PARTS = 1_000
_MAX_PART_HEADERS = 20
_MAX_PART_HEADER_BYTES = 16 << 10
_MAX_FIELD_BYTES = 1 << 20
_MAX_TEXT_BYTES = 4 << 20
#: Each file stays open until it is written.
_MAX_FILES = 16
_MAX_BOUNDARY_CHARACTERS = 70
#: Critical header fields of a part, which must not be repeated: readers may disagree.
_ONCE = (b"content-disposition", b"content-type")
_RESERVED_STEP_BYTES = 8 << 20
_SPOOLED_PIECE_BYTES = 256 << 10


class ClientGoneError(Exception):
    """The client has closed the connection."""


async def gone(receive: Receive) -> None:
    """Return when the connection is closed."""
    while (await receive())["type"] != "http.disconnect":
        pass


async def pieces(
    receive: Receive, max_bytes: int, limits: Limits, what: str
) -> AsyncIterator[bytes]:
    """Yield the body as it arrives.

    Raises:
        RequestTooLargeError: It is too large.
        APIStatusError: It is too slow (408).
        ClientGoneError: The connection was closed before its end.
    """
    now = asyncio.get_running_loop().time
    until = now() + limits.body_first_s
    idle_s = max(limits.body_first_s, limits.body_idle_s)
    size = 0
    more = True
    while more:
        # Two deadlines: the idle limit alone would allow a byte a second, the average rate alone
        # would let a client that has sent a gigabyte pause for a day.
        try:
            late = min(until + size / limits.body_bytes_per_s, now() + idle_s)
            async with asyncio.timeout_at(late):
                message = await receive()
        except TimeoutError:
            raise status_error(
                errors.APIStatusError,
                "timed out: the request body arrives too slowly",
                code="too_slow",
                status=408,
            ) from None
        if message["type"] == "http.disconnect":
            raise ClientGoneError
        piece: bytes = message.get("body", b"")
        size += len(piece)
        if size > max_bytes:
            raise too_large(max_bytes, what)
        if piece:
            yield piece
        more = message.get("more_body", False)


async def whole(receive: Receive, max_bytes: int, limits: Limits, what: str) -> bytes:
    found = [piece async for piece in pieces(receive, max_bytes, limits, what)]
    return found[0] if len(found) == 1 else b"".join(found)


async def whole_object(
    receive: Receive, max_bytes: int, limits: Limits, what: str
) -> dict[str, Any]:
    """Read the body as a JSON object; parses it on a thread.

    Raises:
        APIStatusError: It is not a JSON object, too large, or too slow.
    """
    data = await whole(receive, max_bytes, limits, what)
    try:
        value = await asyncio.to_thread(core.parse_json, data)
    except errors.DecodeError:
        raise bad_request("invalid JSON in the request body") from None
    if not isinstance(value, dict):
        raise bad_request("invalid request body (allowed: a JSON object)")
    return value


class Form:
    """A parsed form; its files exist until it is closed.

    Attributes:
        fields: Names and values, in order; a file is an `Upload`.
    """

    def __init__(self) -> None:
        self.fields: list[tuple[str, Any]] = []
        self.drafts: list[TempFile] = []

    def close(self) -> None:
        for draft in self.drafts:
            draft.discard()


async def read_form(
    receive: Receive,
    content_type: str,
    max_bytes: int,
    limits: Limits,
    store: MediaStore,
    what: str,
) -> Form:
    """Read a multipart/form-data body (RFC 7578); files become drafts of the store.

    Raises:
        BadRequestError: It is invalid, or has too many parts or too long fields.
        RequestTooLargeError: It is too large.
        InternalServerError: Not enough space for its files (code ``storage_full``).
        ClientGoneError: The connection was closed before its end.
    """
    reader = _FormReader(_boundary(content_type), store)
    try:
        async for piece in pieces(receive, max_bytes, limits, what):
            reader.feed(piece)
            if reader.waiting_bytes >= _SPOOLED_PIECE_BYTES:
                await asyncio.to_thread(reader.spool)
        reader.finish()
        await asyncio.to_thread(reader.spool)
    except BaseException:
        reader.close()
        reader.form.close()
        raise
    reader.close()
    return reader.form


def _boundary(content_type: str) -> bytes:
    _, options = parameters(content_type.encode("latin-1"), "Content-Type")
    boundary = options.get("boundary", b"")
    if not 1 <= len(boundary) <= _MAX_BOUNDARY_CHARACTERS:
        raise bad_request(
            "Content-Type: the boundary of the form is missing or too long (allowed: 1 to "
            f"{_MAX_BOUNDARY_CHARACTERS} characters)"
        )
    return boundary


def _too_long(words: str, max_bytes: int) -> errors.RequestTooLargeError:
    return status_error(errors.RequestTooLargeError, f"{words} (allowed: {max_bytes} bytes)")


class _FormReader:
    """Receives the parser's callbacks. File data waits for `spool`, which blocks."""

    def __init__(self, boundary: bytes, store: MediaStore) -> None:
        self.form = Form()
        self._store = store
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_finished,
                "on_part_data": self._data,
                "on_part_end": self._part_ends,
                "on_end": self._ends,
            },
        )
        self._parts = 0
        self._ended = False
        self._headers: dict[bytes, bytes] = {}
        self._header_bytes = 0
        self._name = self._value = b""
        self._text: bytearray | None = None
        self._text_bytes = 0
        self._field = ""
        self._upload: _Spooled | None = None
        self._is_named = False
        self._waiting: list[tuple[_Spooled, bytes | None]] = []
        self.waiting_bytes = 0

    def feed(self, piece: bytes) -> None:
        try:
            self._parser.write(piece)
        except FormParserError as error:
            raise bad_request(f"form: invalid body: {error}") from None

    def finish(self) -> None:
        if not self._ended:
            raise bad_request("form: incomplete, because the closing boundary is missing")

    def spool(self) -> None:
        """Write waiting file data. Runs on another thread; must not run at the same time as
        `feed`.
        """
        waiting, self._waiting, self.waiting_bytes = self._waiting, [], 0
        try:
            for upload, data in waiting:
                if data is None:
                    upload.close()
                else:
                    upload.write(data)
        except BaseException:
            for upload, _ in waiting:
                upload.close()
            raise

    def close(self) -> None:
        if self._upload is not None:
            self._upload.close()
        for upload, _ in self._waiting:
            upload.close()

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > _MAX_PARTS:
            raise bad_request(f"form: too many parts (allowed: {_MAX_PARTS})")
        self._headers = {}
        self._header_bytes = 0

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]
        self._count(end - start)

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]
        self._count(end - start)

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > _MAX_PART_HEADER_BYTES:
            raise bad_request(
                f"form: the header of a part is too large (allowed: {_MAX_PART_HEADER_BYTES} bytes)"
            )

    def _header_ends(self) -> None:
        name = self._name.lower()
        if name in self._headers and name in _ONCE:
            raise bad_request(
                f"form: the header of a part contains {name.decode('latin-1')} more than once"
            )
        self._headers[name] = self._value
        if len(self._headers) > _MAX_PART_HEADERS:
            raise bad_request(
                f"form: a part has too many header fields (allowed: {_MAX_PART_HEADERS})"
            )
        self._name = self._value = b""

    def _headers_finished(self) -> None:
        disposition = self._headers.get(b"content-disposition", b"")
        kind, options = parameters(disposition, "form: Content-Disposition of a part")
        if kind != "form-data" or "name" not in options:
            raise bad_request(
                "form: a part has no name (expected: Content-Disposition: form-data; name=...)"
            )
        try:
            self._field = options["name"].decode()
        except UnicodeDecodeError:
            raise bad_request("form: the name of a part is not valid UTF-8") from None
        declared = self._headers.get(b"content-type", b"").decode("latin-1")
        if "filename" not in options and _is_text(declared):
            self._text = bytearray()
            return
        # A file part needs no file name (RFC 7578, 4.2).
        self._is_named = "filename" in options
        given = options.get("filename", self._field.encode())
        name = _without_folders(given.decode("utf-8", "backslashreplace"))
        if len(self.form.drafts) >= _MAX_FILES:
            raise bad_request(f"form: too many files (allowed: {_MAX_FILES})")
        draft = self._store.draft()
        self.form.drafts.append(draft)
        self._upload = _Spooled(draft, name, declared)

    def _data(self, data: bytes, start: int, end: int) -> None:
        if self._text is not None:
            if len(self._text) + end - start > _MAX_FIELD_BYTES:
                raise _too_long(f"{self._field[:100]}: too large", _MAX_FIELD_BYTES)
            self._text_bytes += end - start
            if self._text_bytes > _MAX_TEXT_BYTES:
                raise _too_long("form: all text fields together are too large", _MAX_TEXT_BYTES)
            self._text += data[start:end]
        elif self._upload is not None:
            self._upload.size_bytes += end - start
            self._waiting.append((self._upload, data[start:end]))
            self.waiting_bytes += end - start

    def _part_ends(self) -> None:
        if self._text is not None:
            try:
                self.form.fields.append((self._field, self._text.decode()))
            except UnicodeDecodeError:
                raise bad_request(
                    f"{self._field[:100]}: not valid UTF-8. To send a file, add a file name: "
                    "Content-Disposition: form-data; name=...; filename=...",
                    self._field[:100],
                ) from None
            self._text = None
        elif self._upload is not None:
            upload = self._upload
            self._waiting.append((upload, None))
            # Without a file name, an empty part means that no file was chosen.
            name = upload.file_name if self._is_named or upload.size_bytes else ""
            made = Upload(upload.draft.path, name, upload.content_type, upload.size_bytes)
            self.form.fields.append((self._field, made))
            self._upload = None

    def _ends(self) -> None:
        self._ended = True


def _is_text(content_type: str) -> bool:
    """Whether a part without a file name contains text; without a type it does (RFC 7578, 4.4)."""
    kind = content_type.partition(";")[0].strip().lower()
    return kind in ("", "application/json") or kind.startswith("text/")


def _without_folders(name: str) -> str:
    """Remove folders from a file name: some clients send a whole Windows path."""
    is_path = name[1:3] == ":\\" or name.startswith("\\\\")
    return name.rpartition("\\")[2] if is_path else name


class _Spooled:
    def __init__(self, draft: TempFile, file_name: str, content_type: str) -> None:
        self.draft = draft
        self.file_name = file_name
        self.content_type = content_type
        self.size_bytes = 0
        self._written_bytes = 0
        self._reserved_bytes = 0
        self._file: FileIO | None = draft.create()

    def write(self, data: bytes) -> None:
        assert self._file is not None  # noqa: S101 - closed only after its last piece
        self._written_bytes += len(data)
        if self._written_bytes > self._reserved_bytes:
            self._reserve()
        self.draft.write_to(self._file, data)

    def _reserve(self) -> None:
        """Reserve space in steps; only the needed space if a step does not fit."""
        step = self._written_bytes + _RESERVED_STEP_BYTES
        try:
            self.draft.reserve(step)
        except errors.InternalServerError:
            step = self._written_bytes
            self.draft.reserve(step)
        self._reserved_bytes = step

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None
