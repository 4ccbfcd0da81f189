"""The native media module. Private: use the functions of `polymux`.

A source is one of `("path", bytes, name)`, `("bytes", buffer, name)`, `("file", object, name)`; a
destination is None for memory, `("path", bytes)` or `("file", object)`. Names are for messages.
Errors are those of `polymux.errors`; what a caller's object or callback raises comes out unchanged.
"""

from collections.abc import Callable
from typing import Any, Never, final

__version__: str

@final
class Limits:
    """polymux::media::Limits; the same fields and defaults, writable."""

    probe_bytes: int
    streams: int
    duration_s: float
    sample_rate_hz: int
    channels: int
    tag_bytes: int
    chapters: int
    def __init__(self) -> None: ...

@final
class ConvertOptions:
    """polymux::media::ConvertOptions; the same fields and defaults, writable."""

    bitrate_bps: int | None
    vbr_quality: float | None
    abr: bool
    preset: str
    sample_rate_hz: int | None
    channels: int | None
    audio_stream: int | None
    start_s: float | None
    end_s: float | None
    tags: str
    replace_tags: list[tuple[str, str]] | None
    cover: str
    replace_cover: tuple[str, bytes] | None
    id3v2_version: int
    identical_file: bool
    threads: int
    exact: bool
    verify: str | None
    strict: bool
    limits: Limits
    def __init__(self) -> None: ...

@final
class Conversion:
    """A conversion that runs on the process-wide pool. Dropping it cancels it.

    Thread-safe. In a process forked after its start every use is an `InvalidRequestError`.
    """

    def __init__(self, *args: Never, **kwargs: Never) -> None:
        """Raises TypeError: `start_conversion` makes them."""

    @property
    def done(self) -> bool: ...
    @property
    def progress(self) -> dict[str, Any]:
        """`position_s`, `duration_s` (or None), `bytes_written`, `elapsed_s`."""

    def cancel(self) -> None: ...
    def wait(self, on_progress: Callable[[dict[str, Any]], object] | None = None) -> dict[str, Any]:
        """The fields of ConvertReport, `warnings` as dicts; `data` when the destination is memory.

        Signal handlers run while waiting, and so does `on_progress`, at most ten times a second and
        once at the end, with a dict as `progress` gives it. What either raises cancels the
        conversion. Each call gives the same result or raises the same exception.
        """

def start_conversion(
    source: object,
    destination: object,
    options: ConvertOptions,
    overwrite: bool,
    on_done: Callable[[], object] | None,
) -> Conversion:
    """Starts it; `on_done` is called once from another thread, when `done` is true."""

def validate(options: ConvertOptions) -> None:
    """Raises an error that names every problem of the options."""

def parse_bitrate(text: str) -> int: ...
def nearest_bitrate(bitrate_bps: int, sample_rate_hz: int) -> int:
    """The legal bitrate that LAME takes for this one."""

def probe(source: object, limits: Limits) -> dict[str, Any]:
    """The fields of MediaInfo: streams, chapters and cover as dicts, tags as lists of pairs."""

def decode_pcm(
    source: object,
    sample_rate_hz: int,
    channels: int,
    audio_stream: int | None,
    start_s: float | None,
    end_s: float | None,
    strict: bool,
    limits: Limits,
) -> dict[str, Any]:
    """The fields of PcmReport, but `sample_count` for its samples per channel; and `samples`.

    Those are bytes: 32-bit little-endian floats, interleaved.
    """

def remux(
    sources: list[tuple[str, object, str]],
    destination: object,
    container: str | None,
    limits: Limits,
    overwrite: bool,
    on_progress: Callable[[dict[str, Any]], object] | None,
    check: Callable[[], object] | None,
) -> dict[str, Any]:
    """The fields of RemuxReport; streams and warnings as dicts.

    While it waits, signal handlers run, then `check`, and then `on_progress`, this one at most ten
    times a second and once at the end. What any of them raises ends the work.
    """

def available_cores() -> int: ...
def build_info() -> dict[str, Any]:
    """The fields of BuildInfo, with FFmpeg's libraries and version in one dict, and `version`."""
