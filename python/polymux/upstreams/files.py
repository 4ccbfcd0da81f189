"""Files to and from upstreams: what goes there is looked at, what was made there is kept here.

What is surely of another kind than its field takes is refused here, as engines do. Only first bytes
are looked at: whoever works on a file opens it.
"""

from __future__ import annotations

import asyncio
import base64
import re
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import unquote

from polymux import errors
from polymux._util.text import NO_TEXT, PICTURE, printable, shortened
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
#: Of a file that was made, and of one that is sent, are looked at.
_MADE_BYTES, _SENT_BYTES = 64, 512
#: The most that the fetcher takes for a deadline: seven days.
_MAX_DEADLINE_MS = 7 * 24 * 3600 * 1000
#: What a kind of file is called in a sentence.
KINDS = {"image": "picture", "video": "video", "audio": "sound"}
#: Brands (ISO/IEC 14496-12, 4.3) of what is no film: sounds, and pictures that nobody here reads.
_OF_BRANDS = {
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    **dict.fromkeys((b"avif", b"avis", b"heic", b"heix", b"mif1", b"msf1"), ""),
}


#: Fields of the interface that hold pictures, and what holds sound or frames.
_PICTURES = ("image", "mask")
_SOUNDS = ("audio", "init_video")
#: Papers, archives and programs.
_NO_MEDIA = re.compile(rb"%PDF-|PK[\x03\x05]|\x7fELF|MZ|\x1f\x8b|7z\xbc\xaf|Rar!")
_PICTURE_WORDS = "this is no picture of a kind that is read: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM"
_MEDIA_WORDS = "this is a picture, a text or a page, and no recording"


def picture_type(data: bytes) -> str | None:
    r"""The content type of a picture by its first bytes; None for what is none.

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
    r"""The content type of a file by its first bytes; empty for what is none of those made.

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
    r"""Whether a file begins as a picture of a kind that is taken.

    Example:
        >>> from polymux.upstreams.files import is_picture
        >>> is_picture(b"GIF89a..."), is_picture(b"BMW is no picture")
        (True, False)
    """
    return PICTURE.match(start) is not None


def may_be_media(start: bytes) -> bool:
    r"""Whether a file may hold sound or frames, by how it begins: there are many ways.

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
    """Raises where a file of a request is nothing that its field takes.

    Raises:
        APIStatusError: It is of another kind (415), or has nothing in it (422).
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
        said = shortened(printable(value.file_name))
        words = f"{said}: {words}" if said else words
        raise status_error(kind, words, code=code, status=status, param=name)


def decoded(text: str) -> bytes | None:
    r"""Bytes of base64, in lines or behind the head of a ``data:`` URL too; None for what is none.

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
    """The file at an address that an upstream has named, fetched by the guard without any key.

    Args:
        server: The upstream, from whose own host may be fetched wherever that is.
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
            limits=_limits(server),
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
    return OutputFile(draft, content_type, name)


async def judged(server: UpstreamServer, made: OutputFile, kind: str, stem: str) -> OutputFile:
    """The same file by the type of its own bytes, whatever the upstream called it.

    Args:
        made: What was fetched or sent; it is discarded where it is of another kind.
        kind: One of `KINDS`.

    Raises:
        APIStatusError: It is of another kind, no medium at all, or a picture that is not whole.
    """
    content_type = await type_of(made)
    if not content_type.startswith(f"{kind}/"):
        made.draft.discard()
        raise failed(server.name, f"its answer names a file that is no {KINDS[kind]}")
    await whole(server, made, content_type)
    name = f"{stem}{MEDIA_EXTENSIONS[content_type]}"
    return replace(made, content_type=content_type, file_name=name)


async def whole(server: UpstreamServer, made: OutputFile, content_type: str) -> None:
    """Looks through a picture's file; what is none has nothing to be looked at.

    Args:
        made: What was fetched or sent; it is discarded where it is not whole.
        content_type: By its first bytes.

    Raises:
        APIStatusError: It is cut off, broken, or too large.
    """
    if not content_type.startswith("image/"):
        return
    try:
        await asyncio.to_thread(check_file, made.draft.path, content_type)
    except BaseException as error:
        made.draft.discard()
        if isinstance(error, BrokenPictureError):
            raise failed(server.name, f"its answer has a picture that is none: {error}") from None
        raise


async def type_of(made: OutputFile) -> str:
    """`media_type` of a file; it is discarded where it cannot be read."""
    try:
        return media_type(await asyncio.to_thread(_start_of, made.draft.path, _MADE_BYTES))
    except BaseException:
        made.draft.discard()
        raise


def _start_of(path: Path, count: int) -> bytes:
    with path.open("rb") as file:
        return file.read(count)


def _limits(server: UpstreamServer) -> FetchLimits:
    """The upstream's own deadlines hold for its files too."""
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
    """What the server says to save it as (RFC 8187); empty where it says nothing."""
    _, mark, encoded = (answer.header("content-disposition") or "").partition("filename*=UTF-8''")
    name = printable(unquote(encoded.partition(";")[0], errors="replace")) if mark else ""
    return name.replace("/", "_").replace("\\", "_")[:_MAX_NAME_CHARACTERS]
