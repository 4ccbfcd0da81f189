"""Result files of the reference server, under links that look signed and are checked."""

from __future__ import annotations

import base64
import hashlib
import io
import re
import struct
import time
import wave
import zlib
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

from servers.replies import RefusedError, Reply

if TYPE_CHECKING:
    from servers.records import Request

PREFIX = "/media/"
LIFE_S = 3600
_SECRET = b"for tests only"
_RANGE = re.compile(r"bytes=(\d*)-(\d*)")


@dataclass(frozen=True)
class File:
    """A file that is served."""

    name: str
    content_type: str
    content: bytes

    @property
    def etag(self) -> str:
        return f'"{hashlib.sha256(self.content).hexdigest()[:16]}"'


class Media:
    """The files, and the requests that came for them, with and without success."""

    def __init__(self) -> None:
        #: Before `/media/` in links; another server's address leads clients there.
        self.public_url = ""
        self.requests: list[Request] = []
        self.files: dict[str, File] = {}

    def add(self, name: str, content: bytes, content_type: str) -> str:
        """Serves a file; gives its link."""
        self.files[name] = File(name, content_type, content)
        return self.link(name)

    def link(self, name: str, life_s: float = LIFE_S) -> str:
        """A link to a file; expired at once with a negative life."""
        expires = int(time.time() + life_s)
        return f"{self.public_url}{PREFIX}{name}?exp={expires}&sig={_signature(name, expires)}"

    def answer(self, request: Request) -> Reply:
        """The file or a part of it (RFC 9110, 14); 404 for a link that is wrong or too old."""
        self.requests.append(request)
        name = request.path.removeprefix(PREFIX)
        query = {key: values[0] for key, values in parse_qs(request.query).items()}
        expires = int(query["exp"]) if query.get("exp", "").isdigit() else 0
        file = self.files.get(name)
        if file is None or expires < time.time() or query.get("sig") != _signature(name, expires):
            raise RefusedError(404, "there is no such file")
        headers = [
            ("Content-Type", file.content_type), ("ETag", file.etag), ("Accept-Ranges", "bytes"),
            ("Content-Disposition", f'attachment; filename="{name}"'),
        ]  # fmt: skip
        wanted = _RANGE.fullmatch(request.header("range") or "")
        if wanted is None or request.header("if-range") not in (None, file.etag):
            return Reply(200, file.content, headers)
        start, end = _bounds(wanted[1], wanted[2], len(file.content))
        headers.append(("Content-Range", f"bytes {start}-{end - 1}/{len(file.content)}"))
        return Reply(206, file.content[start:end], headers)


def _bounds(first: str, last: str, size: int) -> tuple[int, int]:
    if first:
        start, end = int(first), min(int(last) + 1 if last else size, size)
    else:
        start, end = max(0, size - int(last or 0)), size
    if start >= end:
        raise RefusedError(416, f"the file has {size} bytes")
    return start, end


def _signature(name: str, expires: int) -> str:
    return hashlib.sha256(_SECRET + f"{name}:{expires}".encode()).hexdigest()[:32]


def png(width: int = 2, height: int = 2) -> bytes:
    """A grey picture."""

    def box(kind: bytes, data: bytes) -> bytes:
        checksum = zlib.crc32(kind + data)
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)

    rows = (b"\x00" + b"\x80" * width) * height
    head = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    boxes = [(b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(box(kind, data) for kind, data in boxes)


def jpeg() -> bytes:
    """A grey picture, 8 x 8."""
    return base64.b64decode(
        "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBDAAgGBgcGBQgHBwcJCQgKDBQNDAsLDBkSEw8UHRofHh0aHBwg"
        "JC4nICIsIxwcKDcpLDAxNDQ0Hyc5PTgyPC4zNDL/wAALCAAIAAgBAREA/8QAFAABAAAAAAAAAAAAAAAA"
        "AAAAAP/EABQQAQAAAAAAAAAAAAAAAAAAAAD/2gAIAQEAAD8AP//Z"
    )


def wav(samples: int = 800) -> bytes:
    """Silence, 8 kHz mono."""
    file = io.BytesIO()
    with wave.open(file, "wb") as sound:
        sound.setnchannels(1)
        sound.setsampwidth(2)
        sound.setframerate(8000)
        sound.writeframes(bytes(2 * samples))
    return file.getvalue()


def mp3(frames: int = 3) -> bytes:
    """Silent frames of MPEG-1 Layer III, 128 kbit/s, 44.1 kHz."""
    return (b"\xff\xfb\x90\x00" + bytes(413)) * frames


def mp4() -> bytes:
    """The first box of an MP4, and an empty second."""
    return struct.pack(">I4s4sI4s", 20, b"ftyp", b"isom", 512, b"isom") + b"\x00\x00\x00\x08mdat"
