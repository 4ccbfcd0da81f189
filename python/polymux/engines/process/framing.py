"""Messages between a server and its engines' processes: length-prefixed, over a socket pair.

::

    4 bytes   length of all that follows, big-endian
    4 bytes   length of the header
    header    a JSON object in UTF-8; "kind" says what it is
    payload   bytes, of what is left

Neither side believes the other: a frame that is too long, cut or no JSON object ends the connection
with `FrameError`.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from polymux._native import core
from polymux.errors import InvalidRequestError

#: Six times the longest chat: JSON escapes letters that are not ASCII.
MAX_HEADER_BYTES = 192 << 20
MAX_PAYLOAD_BYTES = 64 << 20
_LENGTHS = struct.Struct(">II")


class FrameError(Exception):
    """What came is no frame; nothing that follows can be read."""


class Frame(NamedTuple):
    """One message.

    Attributes:
        header: The JSON object.
        payload: Bytes beside it; mostly none.
    """

    header: dict[str, Any]
    payload: bytes = b""

    @property
    def kind(self) -> str:
        return str(self.header.get("kind", ""))


def encoded(frame: Frame) -> bytes:
    """A frame as bytes.

    Raises:
        ValueError: The header is no JSON, or one part is too long.
    """
    header = _written(frame.header)
    if len(header) > MAX_HEADER_BYTES or len(frame.payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"a frame of {len(header)} and {len(frame.payload)} bytes is too long")
    total = _LENGTHS.size - 4 + len(header) + len(frame.payload)
    return b"".join((_LENGTHS.pack(total, len(header)), header, frame.payload))


def _written(header: dict[str, Any]) -> bytes:
    try:
        return core.write_json(header)
    except InvalidRequestError:
        # Halves of characters, and names that are no text: what others have sent may hold them.
        return json.dumps(header, separators=(",", ":"), allow_nan=False).encode()


class FrameReader:
    """Frames out of bytes that come in any pieces.

    Example:
        >>> from polymux.engines.process.framing import Frame, FrameReader, encoded
        >>> reader = FrameReader()
        >>> data = encoded(Frame({"kind": "ready"}, b"x"))
        >>> reader.feed(data[:5]), reader.feed(data[5:])
        ([], [Frame(header={'kind': 'ready'}, payload=b'x')])
    """

    def __init__(self) -> None:
        self._data = bytearray()

    @property
    def waiting_bytes(self) -> int:
        return len(self._data)

    def feed(self, piece: bytes) -> list[Frame]:
        """The frames that these bytes complete.

        Raises:
            FrameError: They are none.
        """
        self._data += piece
        frames = []
        while (frame := self._next()) is not None:
            frames.append(frame)
        return frames

    def _next(self) -> Frame | None:
        if len(self._data) < _LENGTHS.size:
            return None
        total, header_bytes = _LENGTHS.unpack_from(self._data)
        payload_bytes = total - 4 - header_bytes
        if header_bytes > MAX_HEADER_BYTES or not 0 <= payload_bytes <= MAX_PAYLOAD_BYTES:
            raise FrameError(f"a frame of {total} bytes with a header of {header_bytes}")
        end = total + 4
        if len(self._data) < end:
            return None
        at = _LENGTHS.size
        header = bytes(self._data[at : at + header_bytes])
        payload = bytes(self._data[at + header_bytes : end])
        del self._data[:end]
        return Frame(_object(header), payload)


def _object(text: bytes) -> dict[str, Any]:
    try:
        found = _DECODER.decode(text.decode())
    except (ValueError, RecursionError) as error:
        raise FrameError(f"a header that is no JSON: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise FrameError("a header that is no object")
    return found


def _refuse(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
