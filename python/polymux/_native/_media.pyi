"""The native media module. Private: use the functions of `polymux`.

A source is one of `("path", bytes, name)`, `("bytes", buffer, name)`, `("file", object, name)`; a
destination is None for memory, `("path", bytes)` or `("file", object)`. Names are for messages.
Errors are those of `polymux.errors`. Exceptions of a caller's object or callback are raised
unchanged.
"""

from collections.abc import Callable
from typing import Any, Never, final

from _typeshed import ReadableBuffer

__version__: str

@final
class Limits:
    """A writable polymux::media::Limits with the same fields and defaults."""

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
    """A writable polymux::media::ConvertOptions with the same fields and defaults."""

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
    verify: str
    strict: bool
    limits: Limits
    def __init__(self) -> None: ...

@final
class Conversion:
    """A conversion on the process-wide thread pool. Dropping the object cancels it.

    Thread-safe. In a process that was forked after its start, every use raises
    `InvalidRequestError`.
    """

    def __init__(self, *args: Never, **kwargs: Never) -> None:
        """Raises TypeError: only `start_conversion` creates conversions."""

    @property
    def done(self) -> bool: ...
    @property
    def progress(self) -> dict[str, Any]:
        """`position_s`, `duration_s` (or None), `bytes_written`, `elapsed_s`."""

    def cancel(self) -> None: ...
    def wait(self, on_progress: Callable[[dict[str, Any]], object] | None = None) -> dict[str, Any]:
        """Return the fields of ConvertReport, `warnings` as dicts; `data` if written to memory.

        During the wait, signal handlers run, and `on_progress` is called at most ten times per
        second and at the end, with a dict as in `progress`. An exception of either cancels the
        conversion. Each call returns the same result or raises the same exception.
        """

def start_conversion(
    source: object,
    destination: object,
    options: ConvertOptions,
    overwrite: bool,
    on_done: Callable[[], object] | None,
) -> Conversion:
    """Start a conversion. `on_done` is called once from another thread, when `done` is true."""

def validate(options: ConvertOptions) -> None:
    """Raise an error that names all problems of the options."""

def parse_bitrate(text: str) -> int: ...
def nearest_bitrate(bitrate_bps: int, sample_rate_hz: int) -> int:
    """Return the valid MP3 bitrate that LAME uses for this one."""

def probe(
    source: object, limits: Limits, check: Callable[[], object] | None = None
) -> dict[str, Any]:
    """Return the fields of MediaInfo: streams, chapters and cover as dicts, tags as pairs.

    During the wait, signal handlers and then `check` run twenty times per second. An exception of
    either aborts the work. This also applies to the functions below with `check`.
    """

def decode_pcm(
    source: object,
    sample_rate_hz: int,
    channels: int,
    audio_stream: int | None,
    start_s: float | None,
    end_s: float | None,
    strict: bool,
    limits: Limits,
    check: Callable[[], object] | None = None,
) -> dict[str, Any]:
    """Return the fields of PcmReport and `samples`. `sample_count` is per channel.

    The samples are bytes: 32-bit little-endian floats, interleaved.
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
    """Return the fields of RemuxReport; streams and warnings as dicts.

    During the wait, signal handlers run, then `check`, then `on_progress`, which is called at most
    ten times per second and at the end. An exception of any of them aborts the work.
    """

@final
class VideoWriter:
    """Writes an MP4 file. Dropping the object before `finish` leaves no file.

    Signal handlers run while a call waits; their exceptions abort the video. In a process that was
    forked after its start, every use raises `InvalidRequestError`.
    """

    def __init__(
        self,
        path: bytes,
        width: int,
        height: int,
        fps: tuple[int, int],
        codec: str,
        quality: int,
        threads: int,
        overwrite: bool,
    ) -> None: ...
    @property
    def encoder(self) -> str: ...
    def write(self, frame: object) -> None:
        """Write a frame: a buffer of rows from the top, three bytes per pixel."""

    def finish(self) -> dict[str, Any]:
        """Return the fields of VideoReport, `fps` as numerator and denominator."""

    def cancel(self) -> None:
        """Abort the running call at the next frame. Any thread may call it."""

    def close(self) -> None:
        """Close the encoder and discard an unfinished file. Idempotent."""

def read_frames(
    source: object,
    destination: object,
    width: int,
    height: int,
    fps: tuple[int, int],
    max_frames: int,
    frame_pixels: int,
    limits: Limits,
    overwrite: bool,
    check: Callable[[], object] | None,
) -> dict[str, Any]:
    """Write the frames one after the other. Return the fields of FramesReport.

    During the wait, signal handlers and then `check` run; an exception of either aborts the work.
    """

def fingerprint_song(
    source: object,
    audio_stream: int | None,
    limits: Limits,
    on_progress: Callable[[dict[str, Any]], object] | None,
) -> dict[str, Any]:
    """Return the peaks of a recording, for a SongIndex.

    `parts`: first frame, number of frames, and sorted peaks of both windows as bytes, 4 for each; a
    recording of more than 4.6 hours has several. `duration_s`. `parameters`: the value of
    `parameters_hash`. A frame is 16 ms. `on_progress` gets `position_s`.
    """

def song_query(
    source: object, limits: Limits, check: Callable[[], object] | None = None
) -> dict[str, Any]:
    """Return the peaks of a snippet: `query` for a SongIndex, and the decoded `duration_s`.

    At most the first ten minutes are decoded, and at most the loudest 30 seconds are used.
    """

def shazam_signature(
    source: object, limits: Limits, check: Callable[[], object] | None = None
) -> dict[str, Any]:
    """Return a Shazam signature of the middle ten seconds of a recording.

    `uri` in the form of requests, `sample_count` of its samples at 16 kHz, and `peak_count`.
    """

def parameters_hash() -> int:
    """Return a 64-bit hash of the fingerprint parameters."""

@final
class SongIndex:
    """The song index: files in a directory, and later changes in memory.

    Thread-safe. Any number of processes may read. Only one at a time may publish, under the
    caller's lock. Each change has an increasing sequence number from the caller's database.
    """

    def __init__(self, folder: str) -> None: ...
    @property
    def generation(self) -> int:
        """Incremented by each `publish`; 0 before the first."""
    @property
    def covered_sequence(self) -> int:
        """Sequence number of the last change in the files; 0 if any of them is unusable."""
    def refresh(self) -> bool:
        """Load files that another process has published. Return True if there were any."""
    def add(self, tracks: list[tuple[int, int, int, bytes, bytes]], sequence: int) -> None:
        """Add (song, first frame, frames, peaks of both windows), which can be found at once."""
    def remove(self, songs: list[int], sequence: int) -> None: ...
    def publish(self, covered_sequence: int) -> None:
        """Write all changes from memory to files, atomically."""
    def reset(self) -> None:
        """Remove all songs from memory; the files stay until the next `publish`."""
    def verify(self, on_wait: Callable[[], object] | None = None) -> list[tuple[str, str]]:
        """Verify all files, exclude damaged ones, and return the value of `damaged`.

        `on_wait` is called twenty times per second; an exception from it aborts the work.
        """
    def damaged(self) -> list[tuple[str, str]]:
        """Return unusable files with the reasons."""
    def songs(self) -> list[int]: ...
    def statistics(self) -> dict[str, int]:
        """`songs`, `segments`, `bytes`, `memory_bytes` and `postings`."""
    def same_recordings(self, frames: int, peaks_1: bytes, peaks_2: bytes) -> list[int]:
        """Return sorted songs with the same recording as a fingerprint: other codecs, remasters."""
    def candidates(self, query: bytes, excluded: list[int] = ...) -> list[dict[str, Any]]:
        """Return the most likely songs of a snippet, best first, whether accepted or not."""
    def identify(
        self,
        query: bytes,
        excluded: list[int] = ...,
        on_wait: Callable[[], object] | None = None,
        min_confidence: float | None = None,
    ) -> dict[str, Any] | None:
        """Return the song of a snippet; None if the confidence is too low.

        `song_id`, `offset_s` (start of the snippet in the recording), `tempo`, `pitch` (1.02 means
        2 % faster or higher), `change` ("speed", "tempo" or "pitch"), `confidence`, `strength`,
        `votes`, `evidence` of both windows, `contrast` (how far the snippet's strongest peaks, and
        all of them, stand out), and `others`: alternatives with the same members, best first.

        `on_wait` is called twenty times per second; an exception from it aborts the search.
        """

def draw_sound(
    samples: ReadableBuffer, channels: int, on_progress: Callable[[float], object] | None
) -> dict[str, Any]:
    """Draw a spectrogram of 32-bit floats in [-1, 1] at 44.1 kHz, interleaved, 1 or 2 channels.

    `pixels`: one byte for each of `width` times `height` (512) pixels of each of `channels`, one
    channel after the other, rows from the highest frequency; 255 is silence. A column is 10 ms.
    `largest`: the amplitude of pixel value 0, in 16-bit sample units.

    `on_progress` gets the fraction done from 0 to 1, ten times per second and at the end. An
    exception from it aborts the work.
    """

def play_picture(
    pixels: ReadableBuffer,
    width: int,
    height: int,
    channels: int,
    seed: int,
    largest: float | None,
    on_progress: Callable[[float], object] | None,
) -> dict[str, Any]:
    """Synthesize sound from a spectrogram as drawn by `draw_sound`.

    `samples` are bytes: 32-bit floats, interleaved, 441 per column for each of `channels`, at
    `sample_rate_hz`, 44,100. `seed` (64 bits) determines the phases. The default of `largest` is 30
    million. The same arguments give the same samples. `on_progress` works as in `draw_sound`.
    """

def finish_sound(samples: ReadableBuffer, channels: int, sample_rate_hz: int) -> bytes:
    """Normalize the loudness of 32-bit floats and convert them to 16-bit integers.

    The integrated loudness becomes -16 LUFS, with true peaks of at most -1.5 dBTP. Audio below -70
    LUFS is amplified by 54 dB only. Full scale is 1, and louder samples are accepted.
    """

def encode_flac(samples: ReadableBuffer, channels: int, sample_rate_hz: int) -> bytes:
    """Return a FLAC file with these 16-bit integers."""

def rank_titles(query: str, titles: list[tuple[str, str]], least: float) -> list[tuple[int, float]]:
    """Return the indices of titles and artists similar to the query, with scores from 0 to 1.

    All texts must be normalized. Best first, ties in input order; scores below `least` are
    omitted.
    """

def available_cores() -> int: ...
def build_info() -> dict[str, Any]:
    """Return the fields of BuildInfo, FFmpeg's libraries and version in one dict, and `version`."""
