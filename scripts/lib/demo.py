"""The main task of polymux with one file, compared with the ffmpeg program. Run by scripts/demo.

Without the ffmpeg program, the MP3 is compared with that of one encoder that runs alone.
"""

import shutil
import sys
import time
from pathlib import Path

import polymux
from demo_media import ROOT, difference, ffmpeg, make_music, make_video
from support.mp3_frames import audio_frames

FOLDER = ROOT / "build/demo"
BITRATE = "128k"


def show(progress: polymux.Progress) -> None:
    """Update a bar on a terminal; in a log, print one line at the end."""
    fraction = progress.fraction or 0
    if not sys.stdout.isatty() and fraction < 1:
        return
    width = max(10, min(40, shutil.get_terminal_size().columns - 50))
    bar = ("#" * round(width * fraction)).ljust(width, ".")
    line = f"[{bar}] {progress.position_s:7.1f} s, {progress.speed or 0:5.1f} x real time"
    print(line, end="\r", flush=True)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    if len(sys.argv) > 1:
        source = Path(sys.argv[1])
    else:
        name, make = ("speech_and_music.mp4", make_video)
        if not (shutil.which("ffmpeg") and shutil.which("espeak-ng")):
            name, make = ("music.wav", make_music)
        source = FOLDER / name
        if not source.exists():
            make(source)

    destination = FOLDER / f"{source.stem}.mp3"
    print(f"converting {source} to MP3 at a constant {BITRATE}bit/s")
    report = polymux.convert_to_mp3(source, destination, bitrate=BITRATE, on_progress=show).report
    print()
    speed = report.duration_s / report.elapsed_s
    print(f"  file       {destination}")
    print(f"  duration   {report.duration_s:.2f} s")
    print(f"  size       {destination.stat().st_size:,} bytes, {report.frames:,} frames")
    print(f"  time       {report.elapsed_s:.2f} s, {speed:.0f} times real time")
    for warning in report.warnings:
        print(f"  warning    {warning.message}")

    print(f"  frames     {_compared(source, destination)}")
    print("next: scripts/demo --all, or the quickstarts of README.md")


def _compared(source: Path, destination: Path) -> str:
    """Compare the frames with a reference's, or exit."""
    ours = audio_frames(destination)
    reference = FOLDER / "reference.mp3"
    if shutil.which("ffmpeg") is None:
        polymux.convert_to_mp3(source, reference, bitrate=BITRATE, exact=True)
        if found := difference(ours, audio_frames(reference)):
            sys.exit(f"  frames     DIFFERENT from those of one encoder: {found}")
        return (
            f"all {len(ours):,} are identical to those of one encoder. Install ffmpeg to compare "
            "with its frames"
        )
    started = time.monotonic()
    ffmpeg("-i", source, "-vn", "-c:a", "libmp3lame", "-b:a", BITRATE, reference)
    elapsed_s = time.monotonic() - started
    print(f"  ffmpeg     {elapsed_s:.2f} s for the same file, including the start of its process")
    if found := difference(ours, audio_frames(reference)):
        sys.exit(f"  frames     DIFFERENT from ffmpeg's: {found}")
    return f"all {len(ours):,} are identical to ffmpeg's"


if __name__ == "__main__":
    try:
        main()
    except polymux.PolymuxError as error:
        sys.exit(f"demo: {error}")
