"""Files that go to upstreams: what is surely of another kind is refused here, as engines do.

Only first bytes are looked at: whoever works on a file opens it.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING

from polymux import errors
from polymux._util.text import NO_TEXT, PICTURE, printable, shortened
from polymux.service.errors import status_error
from polymux.service.model import Upload
from polymux.upstreams.result_files import media_type

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.service.model import OperationRequest

#: Fields of the interface that hold pictures, and what holds sound or frames.
_PICTURES = ("image", "mask")
_MEDIA = ("audio", "init_video")
_LOOKED_AT_BYTES = 512
#: Papers, archives and programs.
_NO_MEDIA = re.compile(rb"%PDF-|PK[\x03\x05]|\x7fELF|MZ|\x1f\x8b|7z\xbc\xaf|Rar!")
_PICTURE_WORDS = "this is no picture of a kind that is read: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM"
_MEDIA_WORDS = "this is a picture, a text or a page, and no recording"


def is_picture(start: bytes) -> bool:
    r"""Whether a file begins as a picture of a kind that is taken.

    Example:
        >>> from polymux.upstreams.file_checks import is_picture
        >>> is_picture(b"GIF89a..."), is_picture(b"BMW is no picture")
        (True, False)
    """
    return PICTURE.match(start) is not None


def may_be_media(start: bytes) -> bool:
    r"""Whether a file may hold sound or frames, by how it begins: there are many ways.

    Example:
        >>> from polymux.upstreams.file_checks import may_be_media
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
        if not isinstance(value, Upload) or name not in (*_PICTURES, *_MEDIA):
            continue
        start = await asyncio.to_thread(_start_of, value.path)
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


def _start_of(path: Path) -> bytes:
    with path.open("rb") as file:
        return file.read(_LOOKED_AT_BYTES)
