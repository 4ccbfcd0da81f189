from __future__ import annotations

import io
import wave


def wave_file(samples: bytes, rate_hz: int) -> bytes:
    """A WAV file of one channel with 16-bit samples."""
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, rate_hz, 0, "NONE", ""))
        file.writeframes(samples)
    return buffer.getvalue()
