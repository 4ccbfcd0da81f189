"""FLAC bombs: hours of constant samples in a few hundred kilobytes.

Source: RFC 9639. A frame of 65,535 equal samples takes 15 bytes, so 665 KB hold 100 hours.
"""

from __future__ import annotations

from functools import cache

SAMPLE_RATE = 8000
FRAME_SAMPLES = 65_535


def _checksum(data: bytes, bits: int, polynomial: int) -> bytes:
    """A CRC with the given width, computed bit by bit."""
    register = int.from_bytes(data, "big") << bits
    for place in range(register.bit_length() - 1, bits - 1, -1):
        if register >> place & 1:
            register ^= polynomial << (place - bits)
    return register.to_bytes(bits // 8, "big")


@cache
def _frame(number: int) -> bytes:
    """One frame of 65,535 silent 16-bit samples, mono, 8 kHz."""
    # The frame number has the encoding of a UTF-8 character; surrogates are allowed.
    coded = chr(number).encode("utf-8", "surrogatepass")
    # Fixed block size, 16-bit block size at the header's end, 8 kHz, one channel, 16 bits.
    head = b"\xff\xf8\x74\x08" + coded + (FRAME_SAMPLES - 1).to_bytes(2, "big")
    body = head + _checksum(head, 8, 0x107) + bytes(3)
    return body + _checksum(body, 16, 0x18005)


@cache
def silence(hours: float, claimed_hours: float | None = None) -> bytes:
    """Silence of `hours`. The header claims `claimed_hours`; the default is the true length."""
    frames = round(hours * 3600 * SAMPLE_RATE / FRAME_SAMPLES)
    total = frames * FRAME_SAMPLES
    if claimed_hours is not None:
        total = round(claimed_hours * 3600 * SAMPLE_RATE)
    sizes = FRAME_SAMPLES.to_bytes(2, "big") * 2 + bytes(6)
    fields = SAMPLE_RATE << 44 | 0 << 41 | 15 << 36 | total
    info = b"fLaC\x80\0\0\x22" + sizes + fields.to_bytes(8, "big") + bytes(16)
    return info + b"".join(_frame(number) for number in range(frames))
