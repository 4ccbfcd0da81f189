"""Result files of the reference server, and minimal files of each type."""

from __future__ import annotations

import io
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from PIL import Image
from support.wav_files import wave_file

from servers.replies import RefusedError, Reply

if TYPE_CHECKING:
    from servers.records import Request

PREFIX = "/media/"
#: A query that looks like a signature.
_QUERY = "exp=4102444800&sig=0123456789abcdef0123456789abcdef"


@dataclass(frozen=True)
class File:
    """A served file."""

    name: str
    content_type: str
    content: bytes


class Media:
    """The files, and all requests for them, successful or not."""

    def __init__(self) -> None:
        #: The URL before `/media/` in links. Another server's URL sends clients there.
        self.public_url = ""
        self.requests: list[Request] = []
        self.files: dict[str, File] = {}

    def add(self, name: str, content: bytes, content_type: str) -> str:
        self.files[name] = File(name, content_type, content)
        return f"{self.public_url}{PREFIX}{name}?{_QUERY}"

    def answer(self, request: Request) -> Reply:
        self.requests.append(request)
        file = self.files.get(request.path.removeprefix(PREFIX))
        if file is None or request.query != _QUERY:
            raise RefusedError(404, "there is no such file")
        disposition = f'attachment; filename="{file.name}"'
        headers = [("Content-Type", file.content_type), ("Content-Disposition", disposition)]
        return Reply(200, file.content, headers)


def png(width: int = 2, height: int = 2) -> bytes:
    return _picture("PNG", width, height)


def jpeg() -> bytes:
    return _picture("JPEG", 8, 8)


def _picture(form: str, width: int, height: int) -> bytes:
    file = io.BytesIO()
    Image.new("L", (width, height), 128).save(file, form)
    return file.getvalue()


def wav(samples: int = 800) -> bytes:
    return wave_file(bytes(2 * samples), 8000)


def mp3(frames: int = 3) -> bytes:
    """Silent frames of MPEG-1 Layer III, 128 kbit/s, 44.1 kHz."""
    return (b"\xff\xfb\x90\x00" + bytes(413)) * frames


def mp4() -> bytes:
    """The first box of an MP4, and an empty second one."""
    return struct.pack(">I4s4sI4s", 20, b"ftyp", b"isom", 512, b"isom") + b"\x00\x00\x00\x08mdat"
