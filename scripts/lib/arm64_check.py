"""arm64_check.py ROOT WHEEL: tests a wheel for aarch64 in the folder ROOT, a Debian for arm64.

Run by scripts/check-arm64. The kernel passes the programs to QEMU.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

from package_check import ROOT, answering

#: Noise and silence in turns: their frames have very different sizes. Parallel conversions of two
#: bit rates and a quality must equal those of one encoder.
_CONVERSIONS = """
import random, wave
import polymux

values = random.Random(1)
with wave.open("noise.wav", "wb") as file:
    file.setparams((2, 2, 44100, 0, "NONE", ""))
    for second in range(40):
        file.writeframes(values.randbytes(4 * 44100) if second % 3 else bytes(4 * 44100))
for options in ({"bitrate": "128k"}, {"bitrate": "320k"}, {"vbr_quality": 2}):
    options |= {"threads": 4, "verify": "sequential"}
    report = polymux.convert_to_mp3("noise.wav", "noise.mp3", **options).report
    assert report.identical and report.seams > 0, report
    print(options, report.frames, "frames in", report.seams + 1, "segments")
"""


def main() -> None:
    system, wheel = map(Path, sys.argv[1:])
    folder = system / "check"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for file in (wheel, ROOT / "scripts/lib/package_smoke.py"):
        shutil.copy(file, folder)
    (folder / "conversions.py").write_text(_CONVERSIONS)
    _run(system, "/usr/bin/python3", "-m", "venv", "/check/venv")
    python = "/check/venv/bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--no-index"]
    _run(system, *pip, f"/check/{wheel.name}")
    with answering(folder) as (url, certificate):
        inside = f"/{Path(certificate).relative_to(system)}"
        _run(system, python, "-I", "/check/package_smoke.py", "/check", url, SSL_CERT_FILE=inside)
    _run(system, python, "/check/conversions.py")
    print(f"{wheel.name} works on emulated arm64")


def _run(system: Path, *words: str, **variables: str) -> None:
    """Run a command in the system's folder ``/check``."""
    inside = ["chroot", system, "env", "--chdir=/check", *words]
    common = {"PATH": os.environ["PATH"], "HOME": "/check", "LANG": "C.UTF-8"}
    subprocess.run(inside, env=common | variables, check=True)


if __name__ == "__main__":
    main()
