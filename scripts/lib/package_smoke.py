"""package_smoke.py FOLDER URL: tests an installed wheel without other packages; prints JSON.

The Python of an otherwise empty environment runs it.
"""

import json
import math
import subprocess
import sys
import wave
from array import array
from pathlib import Path

import polymux
from polymux.fetch.fetcher import FetchPolicy, fetch
from polymux.media.video import read_frames, write_video

_RATE_HZ, _SECONDS = 44_100, 2
#: The size is not a multiple of the encoders' block size; each frame has one gray level.
_WIDTH, _HEIGHT, _FPS, _GREYS = 72, 50, 10, range(40, 220, 8)


def main() -> None:
    folder, url = Path(sys.argv[1]), sys.argv[2]
    environment = folder / "venv"
    assert Path(polymux.__file__).is_relative_to(environment), polymux.__file__
    for command in ([environment / "bin/polymux"], [sys.executable, "-I", "-m", "polymux"]):
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert polymux.__version__ in done.stdout, done.stdout

    tone = array("h", (int(9_000 * math.sin(n * 0.06)) for n in range(_RATE_HZ * _SECONDS)))
    source, target = folder / "tone.wav", folder / "tone.mp3"
    with wave.open(str(source), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE_HZ)
        file.writeframes(tone.tobytes())
    report = polymux.convert_to_mp3(source, target, bitrate="128k").report
    decoded = polymux.decode_audio(target)
    assert abs(decoded.duration_s - _SECONDS) < 0.1, decoded.duration_s

    video = _video_there_and_back(folder)
    with polymux.Client(url, "key", timeout=20) as client:
        text = client.free_chat("Hello").text
    assert text == "hello over TLS", text
    policy = FetchPolicy(allowed_hosts=(url.removeprefix("https://"),))
    fetched = fetch(f"{url}/file", policy=policy).data
    assert fetched is not None
    assert b"hello over TLS" in fetched, fetched

    doctor = subprocess.run(
        [environment / "bin/polymux", "doctor", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    licence = json.loads(doctor.stdout)["media"]["ffmpeg_license"]
    found = {"frames": report.frames, "video": video, "answer": text, "ffmpeg": licence}
    print(json.dumps(found))


def _video_there_and_back(folder: Path) -> str:
    """Write VP9 into an MP4, read it again, and compare each frame's gray level.

    Returns the encoder's name.
    """
    video, samples = folder / "greys.mp4", folder / "greys.rgb"
    size = _WIDTH * _HEIGHT * 3
    frames = (bytes([grey]) * size for grey in _GREYS)
    written = write_video(video, frames, width=_WIDTH, height=_HEIGHT, fps=_FPS, codec="vp9")
    assert (written.codec, written.frames) == ("vp9", len(_GREYS)), written
    most = len(_GREYS) + 5
    read = read_frames(video, samples, width=_WIDTH, height=_HEIGHT, fps=_FPS, max_frames=most)
    assert read.frames == len(_GREYS), read
    seen = samples.read_bytes()
    middles = seen[size // 2 :: size]
    apart = [abs(grey - found) for grey, found in zip(_GREYS, middles, strict=True)]
    assert max(apart) <= 4, apart
    return written.encoder


if __name__ == "__main__":
    main()
