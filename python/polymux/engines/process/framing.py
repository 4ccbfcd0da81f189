"""Messages between a server and its engine processes: length-prefixed frames on a socket pair.

::

    4 bytes   length of the following data, big-endian
    4 bytes   length of the header
    header    a JSON object in UTF-8; "kind" is the type of the message
    payload   the remaining bytes

Neither side trusts the other: a frame that is too long, truncated or not a JSON object ends the
connection with `FrameError`.
"""

from __future__ import annotations

import json
import struct
from typing import Any, NamedTuple

from polymux._native import core
from polymux.errors import InvalidRequestError

#: Six times the longest chat, because JSON escapes non-ASCII characters.
MAX_HEADER_BYTES = 192 << 20
MAX_PAYLOAD_BYTES = 64 << 20
_LENGTHS = struct.Struct(">II")


class FrameError(Exception):
    """Invalid data was received; the connection cannot be used any more."""


class Frame(NamedTuple):
    """One message.

    Attributes:
        header: The JSON object.
        payload: Binary data; usually empty.
    """

    header: dict[str, Any]
    payload: bytes = b""

    @property
    def kind(self) -> str:
        return str(self.header.get("kind", ""))


def encoded(frame: Frame) -> bytes:
    """Encode a frame.

    Raises:
        ValueError: The header is not valid JSON, or a part is too long.
    """
    header = _written(frame.header)
    if len(header) > MAX_HEADER_BYTES or len(frame.payload) > MAX_PAYLOAD_BYTES:
        raise ValueError(f"frame too large ({len(header)} and {len(frame.payload)} bytes)")
    total = _LENGTHS.size - 4 + len(header) + len(frame.payload)
    return b"".join((_LENGTHS.pack(total, len(header)), header, frame.payload))


def _written(header: dict[str, Any]) -> bytes:
    try:
        return core.write_json(header)
    except InvalidRequestError:
        # Untrusted text may have lone surrogates, for example in file names.
        return json.dumps(header, separators=(",", ":"), allow_nan=False).encode()


class FrameReader:
    """Decodes frames from a stream of bytes.

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
        """Return the frames that are complete after adding these bytes.

        Raises:
            FrameError: The data is invalid.
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
            raise FrameError(f"frame too large ({total} bytes, header {header_bytes} bytes)")
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
        raise FrameError(f"header is not valid JSON: {type(error).__name__}") from None
    if not isinstance(found, dict):
        raise FrameError("header is not an object")
    return found


def _refuse(name: str) -> None:
    raise ValueError(name)


_DECODER = json.JSONDecoder(parse_constant=_refuse)
