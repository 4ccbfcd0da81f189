"""The main task of polymux with one file, compared with the ffmpeg program. Run by scripts/demo."""

import shutil
import sys
import time
from pathlib import Path

import polymux
from demo_media import ROOT, difference, ffmpeg, make_video
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
        source = FOLDER / "speech_and_music.mp4"
        if not source.exists():
            make_video(source)

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

    reference = FOLDER / "reference.mp3"
    started = time.monotonic()
    ffmpeg("-i", source, "-vn", "-c:a", "libmp3lame", "-b:a", BITRATE, reference)
    elapsed_s = time.monotonic() - started
    print(f"  ffmpeg     {elapsed_s:.2f} s for the same file, including the start of its process")
    ours, theirs = audio_frames(destination), audio_frames(reference)
    if found := difference(ours, theirs):
        sys.exit(f"  frames     DIFFERENT from ffmpeg's: {found}")
    print(f"  frames     all {len(ours):,} are identical to ffmpeg's")


if __name__ == "__main__":
    try:
        main()
    except polymux.PolymuxError as error:
        sys.exit(f"demo: {error}")
