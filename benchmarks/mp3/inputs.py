"""The input files: generated, the same on every machine, stored in build/bench."""

import shutil
import subprocess
import wave
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import BUILD

SECONDS = 180
CLIPS = 200
HOUR_LOOPS = 19  # added to the first pass: 20 x 3 min
TEN_MINUTES_S = 600
RATE_HZ = 44_100

# Bass, arpeggio, vibrato lead and drums: tones, transients, noise and stereo width exercise all
# decisions of LAME. `random` is seeded, so the music is always the same.
LEFT = (
    "0.30*sin(2*PI*t*110*pow(2,floor(mod(t*0.5,4))*5/12))*exp(-1.5*mod(t,0.5))"
    "+0.18*sin(2*PI*t*440*pow(2,floor(mod(t*4,12))/12))*exp(-4*mod(t,0.25))"
    "+0.09*sin(2*PI*t*1318*pow(2,floor(mod(t*3,7))/12)+2*sin(2*PI*5*t))"
    "+0.25*(random(0)-0.5)*exp(-18*mod(t,0.5))"
)
RIGHT = (
    "0.30*sin(2*PI*t*110.4*pow(2,floor(mod(t*0.5,4))*5/12))*exp(-1.5*mod(t,0.5))"
    "+0.15*sin(2*PI*t*660*pow(2,floor(mod(t*4+1,12))/12))*exp(-4*mod(t,0.25))"
    "+0.09*sin(2*PI*t*988*pow(2,floor(mod(t*3+2,7))/12))"
    "+0.25*(random(1)-0.5)*exp(-25*mod(t+0.25,0.5))"
)


@dataclass(frozen=True)
class Inputs:
    """Paths of the generated files."""

    wav: Path
    mp4: Path
    ten_minutes_wav: Path
    hour_wav: Path
    hour_mp4: Path
    wav_clips: tuple[Path, ...]
    m4a_clips: tuple[Path, ...]
    five_second_clips: tuple[Path, ...]


def ffmpeg(*arguments: str | Path) -> None:
    """Run ffmpeg to make an input.

    Raises:
        subprocess.CalledProcessError: ffmpeg failed; its message is on standard error.
    """
    subprocess.run(["ffmpeg", "-nostdin", "-v", "error", "-y", *map(str, arguments)], check=True)


def make_music(folder: Path) -> tuple[Path, Path]:
    """Write three minutes of music as WAV, and as AAC in an MP4 with video."""
    wav, mp4 = folder / "music.wav", folder / "music.mp4"
    tune = f"aevalsrc=exprs='{LEFT}|{RIGHT}':s={RATE_HZ}:d={SECONDS}".replace(",", "\\,")
    ffmpeg("-f", "lavfi", "-i", tune, "-c:a", "pcm_s16le", wav)
    picture = f"testsrc=size=640x360:rate=25:duration={SECONDS}"
    ffmpeg("-f", "lavfi", "-i", picture, "-i", wav, "-c:v", "mpeg4", "-q:v", "10",
           "-c:a", "aac", "-b:a", "160k", "-movflags", "+faststart", mp4)  # fmt: skip
    return wav, mp4


def cut_clips(folder: Path, music: Path, seconds: int) -> None:
    """Cut WAV clips of exactly `seconds` seconds from all parts of the music."""
    with wave.open(str(music)) as reader:
        for number in range(CLIPS):
            reader.setpos(number * (SECONDS - seconds) * RATE_HZ // CLIPS)
            with wave.open(str(folder / f"{number:03}.wav"), "wb") as writer:
                writer.setparams(reader.getparams())
                writer.writeframes(reader.readframes(seconds * RATE_HZ))


def encode_clips(folder: Path) -> None:
    """Encode the clips of a folder as AAC in M4A too."""
    for first in range(0, CLIPS, 50):  # fifty at a time limit the number of open files
        numbers = range(first, min(first + 50, CLIPS))
        given = [argument for n in numbers for argument in ("-i", folder / f"{n:03}.wav")]
        wanted = [
            argument
            for place, n in enumerate(numbers)
            for argument in ("-map", str(place), "-c:a", "aac", folder / f"{n:03}.m4a")
        ]
        ffmpeg(*given, *wanted)


def make_basics(folder: Path) -> None:
    """Make three minutes, an hour, and the clips of one second."""
    wav, mp4 = make_music(folder)
    loop = ("-stream_loop", str(HOUR_LOOPS))
    ffmpeg(*loop, "-i", wav, "-c", "copy", folder / "hour.wav")
    ffmpeg(*loop, "-i", mp4, "-map", "0", "-c", "copy", "-movflags", "+faststart",
           folder / "hour.mp4")  # fmt: skip
    (folder / "clips").mkdir()
    cut_clips(folder / "clips", wav, 1)
    encode_clips(folder / "clips")


def make_longer(folder: Path) -> None:
    """Make ten minutes, and the clips of five seconds."""
    ten_minutes = ("-t", str(TEN_MINUTES_S), "-c", "copy", folder / "ten-minutes.wav")
    ffmpeg("-i", folder / "hour.wav", *ten_minutes)
    clips = folder / "clips-of-5-s"
    clips.mkdir(exist_ok=True)
    cut_clips(clips, folder / "music.wav", 5)


def prepare() -> Inputs:
    """Make the inputs unless they exist; takes about half a minute and 1 GB."""
    folder = BUILD / "mp3-inputs"
    complete, longer_complete = folder / "complete", folder / "longer-complete"
    if not complete.exists():
        print("making the inputs ...", flush=True)
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        make_basics(folder)
        complete.touch()
    if not longer_complete.exists():
        make_longer(folder)
        longer_complete.touch()
    return Inputs(
        wav=folder / "music.wav",
        mp4=folder / "music.mp4",
        ten_minutes_wav=folder / "ten-minutes.wav",
        hour_wav=folder / "hour.wav",
        hour_mp4=folder / "hour.mp4",
        wav_clips=tuple(sorted((folder / "clips").glob("*.wav"))),
        m4a_clips=tuple(sorted((folder / "clips").glob("*.m4a"))),
        five_second_clips=tuple(sorted((folder / "clips-of-5-s").glob("*.wav"))),
    )
