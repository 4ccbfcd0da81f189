"""Downloads of stored files over HTTP: signed links and ranges."""

from __future__ import annotations

import asyncio
import os
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, quote

from polymux import errors
from polymux.server.http.body import ClientGoneError, gone
from polymux.server.http.responses import VERSION_FIELD, send_whole
from polymux.server.routes.endpoint import Endpoint
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from polymux.server.http.responses import Scope
    from polymux.server.routes.endpoint import RequestContext
    from polymux.service.media_store import StoredFile

_PIECE_BYTES = 256 << 10
_NAME = re.compile(r"[0-9a-f]{40}\.[a-z0-9]{2,4}", re.ASCII)
_RANGE = re.compile(r"bytes=(\d{0,1000})-(\d{0,1000})", re.ASCII | re.IGNORECASE)
#: Types that a browser may display, because they cannot contain scripts.
_SHOWN = ("audio/", "video/", "image/png", "image/jpeg", "image/gif", "image/webp")


class MediaEndpoint(Endpoint):
    """``GET`` and ``HEAD /media/{name}``: a signed link needs no API key."""

    name = "media"
    kind = "api"
    methods = ("GET", "HEAD")
    public = True
    query = ("exp", "sig")

    async def handle(self, asked: RequestContext) -> None:
        file, descriptor = await self._opened(asked.scope)
        try:
            await send_file(asked, file, descriptor)
        finally:
            os.close(descriptor)

    async def _opened(self, scope: Scope) -> tuple[StoredFile, int]:
        """Open the file of a valid link; all other links get the same error."""
        name = scope["path_params"]["name"]
        given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        store = self.state.service.store
        good = store.links.accepts(f"/media/{name}", given.get("exp", ""), given.get("sig", ""))
        if good and _NAME.fullmatch(name):
            file = await store.run(store.media.find, name)
            if file is not None:
                try:
                    return file, store.media.open(file)
                except OSError:
                    pass
        raise status_error(
            errors.NotFoundError,
            "unknown file or expired link. For a new link, repeat the GET request for the job. "
            "Results are deleted after a while",
        )


async def send_file(asked: RequestContext, file: StoredFile, descriptor: int) -> None:
    """Respond with a file or a part of it.

    Args:
        asked: A ``GET`` or ``HEAD`` request.
        file: The file.
        descriptor: Open for reading; the caller closes it.

    Raises:
        APIStatusError: The requested range starts after the file's end (416).
        ClientGoneError: The file was truncated, so the response is too; or the client disconnected,
            which ASGI servers do not report when sending.
    """
    access, scope, send = asked.access, asked.scope, asked.send
    tag = f'"{file.sha256[:32]}"'.encode()
    fields = [
        (b"content-type", file.content_type.encode()),
        (b"content-disposition", _disposition(file)),
        (b"x-content-type-options", b"nosniff"),
        (b"content-security-policy", b"default-src 'none'; sandbox"),
        (b"cross-origin-resource-policy", b"cross-origin"),
        (b"referrer-policy", b"no-referrer"),
        (b"accept-ranges", b"bytes"),
        (b"etag", tag),
        (b"cache-control", b"private, max-age=3600"),
    ]
    if has_tag(access.headers.get(b"if-none-match"), tag):
        await send_whole(send, 304, b"", fields[6:], request_id=access.request_id)
        return
    start, end, partial = 0, file.size_bytes, False
    # Range applies only to GET (RFC 9110, 14.2).
    wanted = access.headers.get(b"range") if scope["method"] == "GET" else None
    if wanted is not None and access.headers.get(b"if-range", tag) == tag:
        found = _part(wanted.decode("latin-1"), file.size_bytes)
        if found is not None:
            (start, end), partial = found, True
    if partial:
        place = f"bytes {start}-{end - 1}/{file.size_bytes}"
        fields.append((b"content-range", place.encode()))
    fields += [
        (b"content-length", str(end - start).encode()),
        (b"x-request-id", access.request_id.encode()),
        VERSION_FIELD,
    ]
    status = 206 if partial else 200
    await send({"type": "http.response.start", "status": status, "headers": fields})
    if scope["method"] == "HEAD":
        await send({"type": "http.response.body", "body": b""})
        return
    await _send_part(asked, descriptor, start, end)


def has_tag(field: bytes | None, tag: bytes) -> bool:
    """Compare If-None-Match: a list, weak comparison (RFC 9110, 13.1.2)."""
    if field is None:
        return False
    return field.strip() == b"*" or tag in (
        one.strip().removeprefix(b"W/") for one in field.split(b",")
    )


async def _send_part(asked: RequestContext, descriptor: int, start: int, end: int) -> None:
    if start == end:
        await asked.send({"type": "http.response.body", "body": b""})
        return
    leaving = None
    if end - start > _PIECE_BYTES:
        leaving = asyncio.ensure_future(gone(asked.receive))
    try:
        while start < end:
            size = min(_PIECE_BYTES, end - start)
            piece = await asyncio.to_thread(os.pread, descriptor, size, start)
            # The file was truncated, or the client disconnected.
            if not piece or (leaving is not None and leaving.done()):
                raise ClientGoneError
            start += len(piece)
            more = {"type": "http.response.body", "body": piece, "more_body": start < end}
            await asked.send(more)
    finally:
        if leaving is not None:
            leaving.cancel()


def _part(wanted: str, size_bytes: int) -> tuple[int, int] | None:
    """Return start and end of a single requested range; None for the whole file (RFC 9110, 14.2).

    Other units, several ranges and invalid values also mean the whole file.
    """
    found = _RANGE.fullmatch(wanted.strip())
    if found is None or found[1] == found[2] == "":
        return None
    if found[1] == "":
        length = int(found[2])
        start, end = max(0, size_bytes - length), size_bytes
        beyond = length == 0 or size_bytes == 0
    else:
        start = int(found[1])
        end = size_bytes if found[2] == "" else min(int(found[2]) + 1, size_bytes)
        if found[2] != "" and int(found[2]) < start:
            return None
        beyond = start >= size_bytes
    if beyond:
        error = status_error(
            errors.APIStatusError,
            f"range not satisfiable (the file has {size_bytes} bytes)",
            code="wrong_range",
            status=416,
        )
        error.headers["content-range"] = f"bytes */{size_bytes}"
        raise error
    return start, end


def _disposition(file: StoredFile) -> bytes:
    """Build Content-Disposition (RFC 6266) with an ASCII and a UTF-8 name (RFC 8187)."""
    kind = "inline" if file.content_type.startswith(_SHOWN) else "attachment"
    plain = "".join(char if (char.isascii() and char.isalnum()) or char in "._- " else "_"
                    for char in file.file_name)  # fmt: skip
    encoded = quote(file.file_name, safe="")
    return f"{kind}; filename=\"{plain}\"; filename*=UTF-8''{encoded}".encode("ascii")
