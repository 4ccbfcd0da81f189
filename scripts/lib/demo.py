"""The main job of polymux on one file, held against the ffmpeg program. Called by scripts/demo."""

import shutil
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

import polymux  # noqa: E402
from support.mp3_frames import audio_frames  # noqa: E402

FOLDER = ROOT / "build/demo"
BITRATE = "128k"
SECONDS = 180
SPEECH = """Any audio or video file becomes an M P 3. This voice was made by a program, and so was
the music behind it and the picture above it. One, two, three, four, five, six, seven, eight, nine,
ten. The quick brown fox jumps over the lazy dog. Every frame that follows is compared, byte by
byte, with what the ffmpeg program makes of the same file."""
# A bass and a melody of plucked notes; the second channel hears the melody a little later.
PITCH = "{base}*pow(2,mod(floor((t-{late})*{speed})*7,12)/12)"
NOTE = f"sin(2*PI*t*{PITCH})*exp(-4*mod(t-{{late}},1/{{speed}}))"
BASS = "0.3*" + NOTE.format(base=110, speed=2, late=0)
MUSIC = "|".join(
    f"{BASS}+0.2*{NOTE.format(base=440, speed=4, late=late)}" for late in ("0", "0.02")
)


def ffmpeg(*arguments: str | Path) -> None:
    command = ["ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", "-y"]
    subprocess.run([*command, *map(str, arguments)], check=True)


def make_video(path: Path) -> None:
    """Three minutes: speech over music, AAC; moving pictures, H.264; MP4."""
    print(f"making {path.relative_to(ROOT)} (speech by espeak-ng, music and pictures by ffmpeg)")
    speech = path.with_name("speech.wav")
    subprocess.run(["espeak-ng", "-s", "150", "-w", speech, SPEECH], check=True)
    partial = path.with_name("partial.mp4")
    ffmpeg(
        *("-stream_loop", "-1", "-i", speech),
        *("-f", "lavfi", "-i", f"aevalsrc='{MUSIC}':s=44100"),
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=12"),
        *("-filter_complex", "[0:a]aresample=44100[v];[1:a][v]amix=inputs=2:normalize=0[a]"),
        *("-map", "2:v", "-map", "[a]", "-t", str(SECONDS)),
        *("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"),
        *("-c:a", "aac", "-b:a", "160k", "-metadata", "title=polymux demo", partial),
    )
    partial.replace(path)


def show(progress: polymux.Progress) -> None:
    """A bar that moves on a terminal; elsewhere, in a log, one line where it is complete."""
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
    print(f"converting {source} to MP3, {BITRATE}bit/s constant")
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
    print(f"  ffmpeg     {elapsed_s:.2f} s for the same, with the start of its process")
    ours, theirs = audio_frames(destination), audio_frames(reference)
    if ours != theirs:
        pairs = zip(ours, theirs, strict=False)
        first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
        sys.exit(f"  frames     DIFFER: {len(ours)} and {len(theirs)}, first at frame {first}")
    print(f"  frames     all {len(ours):,} equal ffmpeg's, byte for byte")


if __name__ == "__main__":
    try:
        main()
    except polymux.PolymuxError as error:
        sys.exit(f"demo: {error}")
