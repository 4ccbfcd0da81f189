"""The native media module. Private: use the functions of `polymux`.

A source is one of `("path", bytes, name)`, `("bytes", buffer, name)`, `("file", object, name)`; a
destination is None for memory, `("path", bytes)` or `("file", object)`. Names are for messages.
Errors are those of `polymux.errors`; what a caller's object or callback raises comes out unchanged.
"""

from collections.abc import Callable
from typing import Any, Never, final

from _typeshed import ReadableBuffer

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

def probe(
    source: object, limits: Limits, check: Callable[[], object] | None = None
) -> dict[str, Any]:
    """The fields of MediaInfo: streams, chapters and cover as dicts, tags as lists of pairs.

    While it waits, signal handlers run, then `check`, twenty times a second. What any of them
    raises ends the work; so it is of the three below that have a `check`.
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

@final
class VideoWriter:
    """An MP4 on its way into a file. Dropping it before `finish` leaves nothing.

    Signal handlers run while a call waits; what they raise ends the video. In a process forked
    after it was begun every use is an `InvalidRequestError`.
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
        """A buffer of rows from the top, three bytes a pixel."""

    def finish(self) -> dict[str, Any]:
        """The fields of VideoReport, `fps` as numerator and denominator."""

    def cancel(self) -> None:
        """From any thread: the call that is under way ends at the next frame."""

    def close(self) -> None:
        """Ends the encoder; what was not finished is gone. Once more does nothing."""

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
    """Writes the frames one after the other; the fields of FramesReport.

    While it waits, signal handlers run, then `check`; what either raises ends the work.
    """

def fingerprint_song(
    source: object,
    audio_stream: int | None,
    limits: Limits,
    on_progress: Callable[[dict[str, Any]], object] | None,
) -> dict[str, Any]:
    """The peaks of a recording, for a SongIndex.

    `parts`, of which a recording of more than 4.6 hours has several: the first frame, how many
    frames, and the sorted peaks of both windows as bytes, 4 for each. `duration_s`. `parameters`:
    what `parameters_hash` gives. A frame is 16 ms. `on_progress` gets `position_s`.
    """

def song_query(
    source: object, limits: Limits, check: Callable[[], object] | None = None
) -> dict[str, Any]:
    """The peaks of a snippet: `query`, for SongIndex, and the `duration_s` that was decoded.

    Of more than ten minutes the first ten are decoded, of more than 30 seconds the loudest 30 are
    taken.
    """

def shazam_signature(
    source: object, limits: Limits, check: Callable[[], object] | None = None
) -> dict[str, Any]:
    """The signature by which Shazam recognises a recording, of its middle ten seconds.

    `uri` as requests carry it, `sample_count` at 16 kHz that it was made of, and `peak_count`.
    """

def parameters_hash() -> int:
    """Identifies how fingerprints are made: 64 bits."""

@final
class SongIndex:
    """The index of a catalogue's songs: files in a folder, and what was added since.

    Thread-safe. Any number of processes read; one at a time publishes, under the caller's lock.
    Each change has the sequence number of the caller's database, which only goes up.
    """

    def __init__(self, folder: str) -> None: ...
    @property
    def generation(self) -> int:
        """Goes up by each `publish`; 0 before the first."""
    @property
    def covered_sequence(self) -> int:
        """The last change that the files have; 0 where any of them cannot be used."""
    def refresh(self) -> bool:
        """Takes over what another process has published; True where there was something."""
    def add(self, tracks: list[tuple[int, int, int, bytes, bytes]], sequence: int) -> None:
        """Song, first frame, frames, peaks of both windows. They can be found from now on."""
    def remove(self, songs: list[int], sequence: int) -> None: ...
    def publish(self, covered_sequence: int) -> None:
        """Writes what is in memory into files; all or nothing."""
    def reset(self) -> None:
        """Forgets all songs; the files stay until the next `publish`."""
    def verify(self, on_wait: Callable[[], object] | None = None) -> list[tuple[str, str]]:
        """Reads all files; leaves out those that are damaged, and gives what `damaged` gives.

        `on_wait` is called twenty times a second; what it raises ends the reading.
        """
    def damaged(self) -> list[tuple[str, str]]:
        """Files that cannot be used, and why."""
    def songs(self) -> list[int]: ...
    def statistics(self) -> dict[str, int]:
        """`songs`, `segments`, `bytes`, `memory_bytes` and `postings`."""
    def same_recordings(self, frames: int, peaks_1: bytes, peaks_2: bytes) -> list[int]:
        """Songs that are the same recording as a fingerprint's, sorted: other codecs, remasters."""
    def candidates(self, query: bytes, excluded: list[int] = ...) -> list[dict[str, Any]]:
        """The songs that the snippet is most likely of, best first, whether accepted or not."""
    def identify(
        self,
        query: bytes,
        excluded: list[int] = ...,
        on_wait: Callable[[], object] | None = None,
        min_confidence: float | None = None,
    ) -> dict[str, Any] | None:
        """The song that the snippet is of; None where nobody can be so sure of it.

        `song_id`, `offset_s` (where in the recording the snippet begins), `tempo`, `pitch` (1.02:
        2 % faster, higher), `change` ("speed", "tempo" or "pitch"), `confidence`, `strength`,
        `votes`, `evidence` of both windows, `contrast` (how far the snippet's strongest peaks, and
        all of them, stand out), and `others`: what else it may be, best first, each with the same
        members.

        `on_wait` is called twenty times a second; what it raises ends the search.
        """

def draw_sound(
    samples: ReadableBuffer, channels: int, on_progress: Callable[[float], object] | None
) -> dict[str, Any]:
    """Draws sound: 32-bit floats in [-1, 1] at 44.1 kHz, interleaved, of 1 or 2 channels.

    `pixels`: a byte for each of `width` times `height` (512), of each of `channels`, one channel
    behind the other, rows from the highest frequency; 255 is silence. A column is 10 ms. `largest`:
    what 0 stands for, in samples of 16 bits.

    `on_progress` gets the part that is done, from 0 to 1, ten times a second and at the end. What
    it raises ends the work.
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
    """The sound that looks like a picture, as `draw_sound` draws one.

    `samples` are bytes: 32-bit floats, interleaved, 441 of each of `channels` for a column, at
    `sample_rate_hz`, 44,100. `seed`, of 64 bits, decides the phases; without `largest` it is 30
    million. The same arguments give the same samples. `on_progress` as that of `draw_sound`.
    """

def finish_sound(samples: ReadableBuffer) -> bytes:
    """32-bit floats as 16-bit integers, of the loudness of a finished piece.

    Amplified to a root mean square of -12 dBFS, what is louder than full scale is cut, and then to
    a peak of -0.1 dBFS.
    """

def rank_titles(query: str, titles: list[tuple[str, str]], least: float) -> list[tuple[int, float]]:
    """Indices of the titles and artists that are like the query, with scores from 0 to 1.

    All of them folded; best first, equals in their order; those below `least` are left out.
    """

def available_cores() -> int: ...
def build_info() -> dict[str, Any]:
    """The fields of BuildInfo, with FFmpeg's libraries and version in one dict, and `version`."""
