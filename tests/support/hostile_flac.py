"""FLAC bombs: hours of constant samples in a few hundred kilobytes.

Source: RFC 9639. A frame of 65,535 equal samples takes 15 bytes, so 665 KB hold 100 hours.
"""

from __future__ import annotations

from functools import cache

SAMPLE_RATE = 8000
FRAME_SAMPLES = 65_535


def _crc_table(bits: int, polynomial: int) -> list[int]:
    top = 1 << (bits - 1)
    mask = (1 << bits) - 1
    table = []
    for value in range(256):
        register = value << (bits - 8)
        for _ in range(8):
            register = (register << 1) ^ (polynomial if register & top else 0)
        table.append(register & mask)
    return table


_CRC8 = _crc_table(8, 0x07)
_CRC16 = _crc_table(16, 0x8005)


def _crc8(data: bytes) -> int:
    register = 0
    for byte in data:
        register = _CRC8[register ^ byte]
    return register


def _crc16(data: bytes) -> int:
    register = 0
    for byte in data:
        register = ((register << 8) & 0xFFFF) ^ _CRC16[(register >> 8) ^ byte]
    return register


def _coded_number(number: int) -> bytes:
    """A frame number in the extended form of UTF-8."""
    if number < 0x80:
        return bytes([number])
    tail = []
    limit = 0x20
    while True:
        tail.append(0x80 | number & 0x3F)
        number >>= 6
        if number < limit:
            break
        limit >>= 1
    lead = (0xFF00 >> (len(tail) + 1)) & 0xFF | number
    return bytes([lead, *reversed(tail)])


def constant_frame(number: int, value: int = 0) -> bytes:
    """One frame of 65,535 equal 16-bit samples, mono, 8 kHz."""
    # Fixed block size, 16-bit block size at the header's end, 8 kHz, one channel, 16 bits.
    head = b"\xff\xf8\x74\x08" + _coded_number(number) + (FRAME_SAMPLES - 1).to_bytes(2, "big")
    head += bytes([_crc8(head)])
    body = head + b"\0" + value.to_bytes(2, "big", signed=True)
    return body + _crc16(body).to_bytes(2, "big")


def stream_info(total_samples: int) -> bytes:
    """The marker and a STREAMINFO block that claims `total_samples`; 0 is unknown."""
    sizes = FRAME_SAMPLES.to_bytes(2, "big") * 2 + bytes(6)
    fields = SAMPLE_RATE << 44 | 0 << 41 | 15 << 36 | total_samples
    return b"fLaC\x80\0\0\x22" + sizes + fields.to_bytes(8, "big") + bytes(16)


@cache
def silence(hours: float, claimed_hours: float | None = None) -> bytes:
    """Silence of `hours`; the header claims `claimed_hours` of it, and by default the truth."""
    frames = round(hours * 3600 * SAMPLE_RATE / FRAME_SAMPLES)
    total = frames * FRAME_SAMPLES
    if claimed_hours is not None:
        total = round(claimed_hours * 3600 * SAMPLE_RATE)
    return stream_info(total) + b"".join(constant_frame(number) for number in range(frames))
