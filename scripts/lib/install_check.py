"""install_check.py WHEELS: installs polymux from a folder of wheels, without an index, and uses it.

Prints the time from the start of each installation to its first result. Run by
scripts/check-fresh-debian --wheel, with Python's standard library only.
"""

import math
import os
import subprocess
import sys
import tempfile
import time
import venv
import wave
from array import array
from pathlib import Path

_RATE_HZ, _SECONDS = 44_100, 180
#: Maximum times until the first MP3 and the first text of a chat.
_MP3_WITHIN_S, _CHAT_WITHIN_S = 15, 60
_MODEL = "smollm2-135m-instruct"
Words = list[str | Path]


def main() -> None:
    wheels = Path(sys.argv[1])
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(wheels), "PIP_EXTRA_INDEX_URL": "",
               "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PIP_QUIET": "1",
               "UV_OFFLINE": "1", "UV_NO_INDEX": "1", "UV_FIND_LINKS": str(wheels)}  # fmt: skip
    kept = {name: value for name, value in os.environ.items() if not name.startswith("PIP_")}
    os.environ.clear()
    os.environ.update(kept | offline | {"PIP_CONFIG_FILE": os.devnull})
    with tempfile.TemporaryDirectory() as temporary:
        os.chdir(temporary)
        _write_tone(Path("tone.wav"))
        base, chat, tools = (Path(name).absolute() for name in ("base", "chat", "tools"))
        for environment in (base, chat, tools):
            venv.create(environment, with_pip=True)
        _run([tools / "bin/pip", "install", "uv", "pipx"])

        began = time.monotonic()
        _run([base / "bin/pip", "install", "polymux"])
        _convert("pip", [base / "bin/polymux"], began)
        began = time.monotonic()
        _run([chat / "bin/pip", "install", "polymux[chat]"])
        _run([chat / "bin/polymux", "models", "pull", "--yes", "--quiet", _MODEL])
        _first_text(chat / "bin/polymux", began)
        began = time.monotonic()
        _convert("uvx", [tools / "bin/uvx", "polymux"], began)
        began = time.monotonic()
        _convert("pipx run", [tools / "bin/pipx", "run", "--no-cache", "polymux"], began)
        began = time.monotonic()
        _run([tools / "bin/pipx", "install", "--quiet", "polymux"])
        _convert("pipx install", [Path.home() / ".local/bin/polymux"], began)


def _write_tone(path: Path) -> None:
    second = array("h", (int(9_000 * math.sin(n * 0.06)) for n in range(_RATE_HZ)))
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(_RATE_HZ)
        for _ in range(_SECONDS):
            file.writeframes(second.tobytes())


def _run(words: Words) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"install_check: {words} returned {done.returncode}:\n{done.stdout}{done.stderr}")


def _convert(installer: str, polymux: Words, began: float) -> None:
    target = Path(f"{installer.replace(' ', '-')}.mp3")
    _run([*polymux, "convert-to-mp3", "tone.wav", "-o", target, "-q"])
    _report(installer, f"first MP3 ({target.stat().st_size:,} bytes)", began, _MP3_WITHIN_S)


def _first_text(polymux: Path, began: float) -> None:
    words = [polymux, "chat", "Name three boats.", "--local"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, bufsize=0) as process:
        assert process.stdout is not None
        first = process.stdout.read(1)
        if first:
            _report("pip", "first text of a chat, with its model", began, _CHAT_WITHIN_S)
        text = (first + process.stdout.read()).decode()
    if process.returncode != 0:
        sys.exit(f"install_check: {words} returned {process.returncode}")
    print(f"   {' '.join(text.split())[:100]}", flush=True)


def _report(installer: str, what: str, began: float, limit_s: float) -> None:
    took_s = time.monotonic() - began
    print(f"{installer}: {what} after {took_s:.1f} s", flush=True)
    if took_s > limit_s:
        sys.exit(f"install_check: this took {took_s:.1f} s (limit {limit_s} s)")


if __name__ == "__main__":
    main()
