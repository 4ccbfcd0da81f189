"""The native media module. Private: use the functions of `polymux`."""

from collections.abc import Callable
from typing import Any, final

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
    id3v2_version: int
    identical_file: bool
    threads: int
    strict: bool
    limits: Limits
    def __init__(self) -> None: ...

@final
class Conversion:
    """A conversion that runs on the process-wide pool. Dropping it without `wait` cancels it."""

    @property
    def done(self) -> bool: ...
    @property
    def progress(self) -> dict[str, Any]: ...
    def cancel(self) -> None: ...
    def wait(
        self, on_progress: Callable[[dict[str, Any]], object] | None = None
    ) -> dict[str, Any]: ...

def start_conversion(
    source: object,
    destination: object,
    options: ConvertOptions,
    overwrite: bool,
    on_done: Callable[[], object] | None,
) -> Conversion: ...
def validate(options: ConvertOptions) -> None: ...
def parse_bitrate(text: str) -> int: ...
def probe(source: object, limits: Limits) -> dict[str, Any]: ...
def decode_pcm(
    source: object,
    sample_rate_hz: int,
    channels: int,
    audio_stream: int | None,
    start_s: float | None,
    end_s: float | None,
    strict: bool,
    limits: Limits,
) -> dict[str, Any]: ...
def available_cores() -> int: ...
def build_info() -> dict[str, Any]: ...
def nearest_bitrate(bitrate_bps: int, sample_rate_hz: int) -> int: ...
