"""The conversions to measure: the cases that the goals and tables refer to."""

from dataclasses import dataclass
from pathlib import Path

from benchmarks.mp3.inputs import Inputs
from benchmarks.mp3.peers.base import Mode
from benchmarks.mp3.peers.ffmpeg import FAST_REFERENCE
from benchmarks.mp3.peers.polymux import FAST, ONE_THREAD, OURS

REFERENCE = "ffmpeg"
NEWEST_FFMPEG = "newest ffmpeg"
TWO_THREADS_RIVAL = "pedalboard, two threads"

WAV_CBR = "3 min WAV to CBR 128"
WAV_V2 = "3 min WAV to VBR V2"
MP4_CBR = "3 min AAC in MP4 with video to CBR 128"
MP4_V2 = "3 min AAC in MP4 with video to VBR V2"
TEN_MINUTES_CBR = "10 min WAV to CBR 128"
TEN_MINUTES_V2 = "10 min WAV to VBR V2"
HOUR_CBR = "60 min AAC in MP4 with video to CBR 128"


@dataclass(frozen=True)
class Case:
    """One input and one setting, with the converters to run.

    Attributes:
        title: Title of the table.
        source: Input file.
        mode: Setting.
        always: Peers that run in every round, because a goal refers to them.
        sometimes: Peers that run only in the first rounds, to save time.
    """

    title: str
    source: Path
    mode: Mode
    always: tuple[str, ...]
    sometimes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All peers of the case."""
        return (*self.always, *self.sometimes)


def short(inputs: Inputs) -> tuple[Case, ...]:
    """Return the cases of three minutes, which run every peer."""
    ours = (REFERENCE, OURS, ONE_THREAD)
    fast, rest = FAST_REFERENCE.name, ("lame", "PyAV", "lameenc")
    singles = ("pydub", "torchcodec", "pedalboard")
    return (
        Case(WAV_CBR, inputs.wav, "cbr128", (*ours, FAST, NEWEST_FFMPEG, *singles),
             (fast, TWO_THREADS_RIVAL, *rest)),
        Case(WAV_V2, inputs.wav, "v2", (*ours, NEWEST_FFMPEG, *singles, TWO_THREADS_RIVAL),
             (FAST, fast, *rest)),
        Case(MP4_CBR, inputs.mp4, "cbr128", (*ours, FAST, NEWEST_FFMPEG),
             (fast, *singles, *rest)),
        Case(MP4_V2, inputs.mp4, "v2", (*ours, NEWEST_FFMPEG), ("pydub",)),
    )  # fmt: skip


def long(inputs: Inputs) -> tuple[Case, ...]:
    """Return the cases of long files, which run only ffmpeg and polymux."""
    pair = (REFERENCE, OURS)
    return (
        Case(TEN_MINUTES_CBR, inputs.ten_minutes_wav, "cbr128", pair),
        Case(TEN_MINUTES_V2, inputs.ten_minutes_wav, "v2", pair),
        Case(HOUR_CBR, inputs.hour_mp4, "cbr128", pair),
    )
