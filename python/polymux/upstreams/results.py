"""Files that upstreams have made, as files of this server's store."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from polymux import errors
from polymux._text import printable
from polymux.engines.media import write_new
from polymux.fetching import FetchLimits, afetch
from polymux.service.media_store import MEDIA_EXTENSIONS
from polymux.service.work import Made
from polymux.upstreams.failing import failed

if TYPE_CHECKING:
    from polymux.fetching import Fetched, FetchPolicy
    from polymux.service.work import Sink
    from polymux.upstreams.server import UpstreamServer

_LONGEST_FILE_BYTES = 2 << 30
_LONGEST_NAME = 200
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
)
_ANY_TYPE = "application/octet-stream"


def picture_type(data: bytes) -> str | None:
    r"""The content type of a picture by its first bytes; None for what is none.

    Example:
        >>> from polymux.upstreams.results import picture_type
        >>> picture_type(b"\x89PNG\r\n\x1a\n..."), picture_type(b"<html>")
        ('image/png', None)
    """
    for magic, offset, content_type in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return content_type
    return None


async def kept(sink: Sink, data: bytes, content_type: str, stem: str) -> Made:
    """Bytes as a new file."""
    draft = sink.draft(len(data))
    try:
        await asyncio.to_thread(write_new, draft.path, data)
    except BaseException:
        draft.discard()
        raise
    return Made(draft, content_type, f"{stem}{MEDIA_EXTENSIONS.get(content_type, '.bin')}")


async def fetched(
    server: UpstreamServer, url: str, sink: Sink, policy: FetchPolicy, stem: str
) -> Made:
    """The file at an address that an upstream has named, fetched by the guard without any key.

    Args:
        server: The upstream, from whose own host may be fetched wherever that is.
        url: As it named it.
        sink: Where files are made.
        policy: What may be fetched besides.
        stem: What to save it as, where it is not told.

    Raises:
        APIStatusError: It cannot be had.
    """
    own = replace(
        policy,
        allowed_hosts=(*policy.allowed_hosts, server.host),
        certificate_bundle=server.certificates or policy.certificate_bundle,
    )
    draft = sink.draft()

    def reserve(done_bytes: int, all_bytes: int | None) -> None:
        draft.reserve(max(done_bytes, all_bytes or 0))

    try:
        answer = await afetch(
            url,
            policy=own,
            limits=FetchLimits(body_bytes=_LONGEST_FILE_BYTES, total_ms=1_900_000),
            destination=draft.path,
            on_progress=reserve,
        )
    except BaseException as error:
        draft.discard(beside=True)
        if isinstance(error, errors.PolymuxError) and not isinstance(error, errors.APIError):
            raise server.told(error, "media") from None
        raise
    if not answer.ok:
        draft.discard()
        raise failed(server.name, f"the file that it made is answered by {answer.status}")
    content_type = answer.content_type.partition(";")[0].strip().lower()
    if content_type not in MEDIA_EXTENSIONS:
        content_type = _ANY_TYPE
    name = _file_name(answer) or f"{stem}{MEDIA_EXTENSIONS.get(content_type, '.bin')}"
    return Made(draft, content_type, name)


def _file_name(answer: Fetched) -> str:
    """What the server says to save it as (RFC 8187); empty where it says nothing."""
    _, mark, encoded = (answer.header("content-disposition") or "").partition("filename*=UTF-8''")
    name = printable(unquote(encoded.partition(";")[0], errors="replace")) if mark else ""
    return name.replace("/", "_").replace("\\", "_")[:_LONGEST_NAME]
