"""package_smoke.py FOLDER URL: what a wheel can do where it is all there is; one line of JSON.

Run by the Python of an empty environment that it was installed into.
"""

import json
import math
import subprocess
import sys
import wave
from array import array
from pathlib import Path

import polymux
from polymux.fetching import FetchPolicy, fetch

_RATE_HZ, _SECONDS = 44_100, 2


def main() -> None:
    folder, url = Path(sys.argv[1]), sys.argv[2]
    environment = folder / "venv"
    assert Path(polymux.__file__).is_relative_to(environment), polymux.__file__
    for command in ([environment / "bin/polymux"], [sys.executable, "-I", "-m", "polymux"]):
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
        assert polymux.__version__ in said.stdout, said.stdout

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
    print(json.dumps({"frames": report.frames, "answer": text, "ffmpeg": licence}))


if __name__ == "__main__":
    main()
