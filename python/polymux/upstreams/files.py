"""Files to and from upstreams: checks of inputs, storage of outputs.

Rejects files of a wrong kind by their first bytes, with the same errors as engines. Does not decode
them.
"""

from __future__ import annotations

import asyncio
import base64
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from polymux import errors
from polymux._util.file_signatures import NO_TEXT, PICTURE
from polymux._util.text import printable, shortened
from polymux.client.options import NEVER, SLOW
from polymux.engines.media.engine import write_new
from polymux.fetch.fetcher import FetchLimits, afetch
from polymux.service.errors import status_error
from polymux.service.media_store import MEDIA_EXTENSIONS
from polymux.service.model import OutputFile, Upload
from polymux.upstreams.error_mapping import failed
from polymux.upstreams.image_validation import BrokenPictureError, check_file

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.fetch.fetcher import Fetched, FetchPolicy
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.upstreams.client import UpstreamServer

_MAX_FILE_BYTES = 2 << 30
_MAX_NAME_CHARACTERS = 200
_MAGIC = (
    (b"\x89PNG\r\n\x1a\n", 0, "image/png"),
    (b"\xff\xd8\xff", 0, "image/jpeg"),
    (b"GIF8", 0, "image/gif"),
    (b"WEBP", 8, "image/webp"),
)
_ANY_TYPE = "application/octet-stream"
#: Number of bytes examined in an output file and in an input file.
_MADE_BYTES, _SENT_BYTES = 64, 512
#: Maximum timeout of the fetcher: seven days.
_MAX_DEADLINE_MS = 7 * 24 * 3600 * 1000
#: Names of file kinds in messages.
KINDS = {"image": "image", "video": "video", "audio": "audio"}
#: Brands (ISO/IEC 14496-12, 4.3) that are not video: audio, and unsupported images.
_OF_BRANDS = {
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    **dict.fromkeys((b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1"), ""),
}


#: API fields that contain images, and fields that contain audio or video.
_PICTURES = ("image", "mask")
_SOUNDS = ("audio", "init_video")
#: Documents, archives and programs.
_NO_MEDIA = re.compile(rb"%PDF-|PK[\x03\x05]|\x7fELF|MZ|\x1f\x8b|7z\xbc\xaf|Rar!")
_PICTURE_WORDS = "unsupported image format (allowed: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM)"
_MEDIA_WORDS = "not an audio or video file, but an image, a document, an archive or text"


def picture_type(data: bytes) -> str | None:
    r"""Return the content type of an image by its first bytes; None if it is not an image.

    Example:
        >>> from polymux.upstreams.files import picture_type
        >>> picture_type(b"\x89PNG\r\n\x1a\n..."), picture_type(b"<html>")
        ('image/png', None)
    """
    for magic, offset, content_type in _MAGIC:
        if data[offset : offset + len(magic)] == magic:
            return content_type
    return None


def media_type(start: bytes) -> str:
    r"""Return the content type of a file by its first bytes; empty if it is not an output type.

    Example:
        >>> from polymux.upstreams.files import media_type
        >>> media_type(b"\x00\x00\x00\x18ftypmp42"), media_type(b"<html>")
        ('video/mp4', '')
    """
    picture = picture_type(start)
    if picture is not None:
        return picture
    if start[4:8] == b"ftyp":
        return _OF_BRANDS.get(start[8:12], "video/mp4")
    if start[:4] == b"\x1a\x45\xdf\xa3":
        return "video/webm" if b"webm" in start else "video/matroska"
    if start[:4] == b"RIFF" and start[8:12] == b"WAVE":
        return "audio/wav"
    if start[:3] == b"ID3" or (len(start) > 1 and start[0] == 0xFF and start[1] & 0xE6 == 0xE2):
        return "audio/mpeg"
    if start[:4] == b"fLaC":
        return "audio/flac"
    if start[:4] == b"OggS" and b"theora" not in start:
        return "audio/ogg"
    return ""


def is_picture(start: bytes) -> bool:
    r"""Check whether a file begins like a supported image.

    Example:
        >>> from polymux.upstreams.files import is_picture
        >>> is_picture(b"GIF89a..."), is_picture(b"BMW is no picture")
        (True, False)
    """
    return PICTURE.match(start) is not None


def may_be_media(start: bytes) -> bool:
    r"""Check by its first bytes whether a file may contain audio or video.

    Example:
        >>> from polymux.upstreams.files import may_be_media
        >>> may_be_media(b"ID3\x03\0..."), may_be_media(b"%PDF-1.7"), may_be_media(b"Hello!")
        (True, False, False)
    """
    if is_picture(start) or _NO_MEDIA.match(start) is not None:
        return False
    if start[4:8] == b"ftyp":
        return bool(media_type(start))
    return NO_TEXT.search(start) is not None or media_type(start) != ""


async def refuse_files(work: OperationRequest) -> None:
    """Check the kind of all files in a request by their first bytes.

    Raises:
        APIStatusError: A file is of a wrong kind (415) or empty (422).
    """
    for name, value in work.values.items():
        if not isinstance(value, Upload) or name not in (*_PICTURES, *_SOUNDS):
            continue
        start = await asyncio.to_thread(_start_of, value.path, _SENT_BYTES)
        if is_picture(start) if name in _PICTURES else may_be_media(start):
            continue
        words, kind = (_PICTURE_WORDS if name in _PICTURES else _MEDIA_WORDS), errors.APIStatusError
        code, status = "unsupported_media", 415
        if not start and name not in _PICTURES:
            words, kind = "the input is empty (0 bytes)", errors.UnprocessableEntityError
            code, status = "undecodable", 422
        file_name = shortened(printable(value.file_name))
        words = f"{file_name}: {words}" if file_name else words
        raise status_error(kind, words, code=code, status=status, param=name)


def decoded(text: str) -> bytes | None:
    r"""Decode base64 with line breaks, or a ``data:`` URL with base64; None if invalid.

    Example:
        >>> from polymux.upstreams.files import decoded
        >>> decoded("aGVs\nbG8="), decoded("data:text/plain;base64,aGVsbG8="), decoded("?")
        (b'hello', b'hello', None)
    """
    if text[:5].lower() == "data:":
        head, _, text = text.partition(",")
        if not head.lower().endswith(";base64"):
            return None
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except ValueError:
        return None


async def kept(sink: ProgressSink, data: bytes, content_type: str, stem: str) -> OutputFile:
    draft = sink.draft(len(data))
    try:
        await asyncio.to_thread(write_new, draft.path, data)
    except BaseException:
        draft.discard()
        raise
    return OutputFile(draft, content_type, f"{stem}{MEDIA_EXTENSIONS.get(content_type, '.bin')}")


async def fetched(
    server: UpstreamServer, url: str, sink: ProgressSink, policy: FetchPolicy, stem: str
) -> OutputFile:
    """Download an output file from the URL in an upstream's response, without the API key.

    Args:
        server: The upstream; its own host is allowed even in a private network.
        stem: File name without extension, if the server sends none.

    Raises:
        APIStatusError: The download failed.
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
            limits=_limits(server),
            destination=draft.path,
            on_progress=reserve,
        )
    except BaseException as error:
        draft.discard(beside=True)
        if isinstance(error, errors.PolymuxError) and not isinstance(error, errors.APIError):
            raise server.convert_error(error, "media") from None
        raise
    if not answer.ok:
        draft.discard()
        raise failed(
            server.name, f"the download of its output file returned status {answer.status}"
        )
    content_type = answer.content_type.partition(";")[0].strip().lower()
    if content_type not in MEDIA_EXTENSIONS:
        content_type = _ANY_TYPE
    name = _file_name(answer) or f"{stem}{MEDIA_EXTENSIONS.get(content_type, '.bin')}"
    return OutputFile(draft, content_type, name)


async def judged(server: UpstreamServer, made: OutputFile, kind: str, stem: str) -> OutputFile:
    """Set content type and name of an output file by its first bytes, and check its kind.

    Args:
        made: The file; discarded if an error is raised.
        kind: One of `KINDS`.

    Raises:
        APIStatusError: It is of another kind or unknown, or an incomplete image.
    """
    content_type = await type_of(made)
    if not content_type.startswith(f"{kind}/"):
        made.draft.discard()
        raise failed(server.name, f"its output file has the wrong type (expected: {KINDS[kind]})")
    await whole(server, made, content_type)
    name = f"{stem}{MEDIA_EXTENSIONS[content_type]}"
    return replace(made, content_type=content_type, file_name=name)


async def whole(server: UpstreamServer, made: OutputFile, content_type: str) -> None:
    """Check whether an image file is complete; ignores other files.

    Args:
        made: The file; discarded if an error is raised.
        content_type: By its first bytes.

    Raises:
        APIStatusError: It is truncated, damaged or too large.
    """
    if not content_type.startswith("image/"):
        return
    try:
        await asyncio.to_thread(check_file, made.draft.path, content_type)
    except BaseException as error:
        made.draft.discard()
        if isinstance(error, BrokenPictureError):
            raise failed(server.name, f"its response contains an invalid image: {error}") from None
        raise


async def type_of(made: OutputFile) -> str:
    """Return the `media_type` of a file; discards the file if it cannot be read."""
    try:
        return media_type(await asyncio.to_thread(_start_of, made.draft.path, _MADE_BYTES))
    except BaseException:
        made.draft.discard()
        raise


def _start_of(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def _limits(server: UpstreamServer) -> FetchLimits:
    """Return the limits of a download, with the timeouts of the upstream."""
    deadlines = server.deadlines(SLOW)

    def bounded(seconds: float | None) -> int:
        return max(1, round(min((seconds or NEVER) * 1000, _MAX_DEADLINE_MS)))

    return FetchLimits(
        body_bytes=_MAX_FILE_BYTES,
        connect_ms=bounded(deadlines.connect),
        idle_ms=bounded(deadlines.idle),
        total_ms=bounded(deadlines.total),
    )


def _file_name(answer: Fetched) -> str:
    """Return the file name that the server suggests (RFC 8187), or an empty string."""
    _, mark, encoded = (answer.header("content-disposition") or "").partition("filename*=UTF-8''")
    name = printable(unquote(encoded.partition(";")[0], errors="replace")) if mark else ""
    return name.replace("/", "_").replace("\\", "_")[:_MAX_NAME_CHARACTERS]
