"""`Local` in programs that fork or exit without closing it. Each test starts a separate process."""

from __future__ import annotations

import subprocess
import sys
import wave
from pathlib import Path

import pytest
from support.hostile_check import PATIENCE

TESTS = Path(__file__).parents[1]
PRELUDE = """
import asyncio, multiprocessing, os, sys, threading, time, warnings
import polymux
from polymux.runtime.settings import EngineSettings
from support import quick_engines
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of forks with threads.
engines = {
    "media": EngineSettings("media"),
    "quick": EngineSettings(quick_engines.FAMILY, {}, operations=("chat",)),
}
def children():
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                fields = open(f"/proc/{entry.name}/stat").read().rsplit(")", 1)[1].split()
            except OSError:
                continue
            if fields[1] == str(os.getpid()) and fields[0] != "Z":
                found.append(int(entry.name))
    return found
def forked(work):
    child = os.fork()
    if child == 0:
        try:
            work()
        except BaseException as error:
            print(type(error).__name__, error, file=sys.stderr)
            os._exit(1)
        sys.exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""


@pytest.fixture
def sound(tmp_path: Path) -> Path:
    path = tmp_path / "sound.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((1, 2, 8000, 0, "NONE", ""))
        file.writeframes(bytes(16000))
    return path


def done(code: str, sound: Path) -> None:
    """Run a program to its end and check that it leaves no temporary files."""
    temporary = sound.parent / "temporary"
    temporary.mkdir()
    found = subprocess.run(
        [sys.executable, "-c", PRELUDE + code, str(sound)],
        capture_output=True, text=True, check=False, timeout=60 * PATIENCE,
        env={"PATH": "/usr/bin:/bin", "TMPDIR": str(temporary), "PYTHONPATH": str(TESTS),
             "HOME": str(sound.parent)},
    )  # fmt: skip
    assert (found.returncode, found.stdout, found.stderr) == (0, "done\n", "")
    assert list(temporary.iterdir()) == []


def test_a_child_begins_anew(sound: Path) -> None:
    """A forked child starts its own engine and temporary folder. Closing them does not affect the
    parent.
    """
    done(
        """
local = polymux.Local(engines=engines)
first = local.convert_to_mp3(sys.argv[1])
stream = local.chat("flood", stream=True)
next(stream)
engine, = children()
def work():
    made = local.convert_to_mp3(sys.argv[1], timeout=20)
    assert made.path.parents[2] != first.path.parents[2]
    assert made.read() == first.read()
    assert local.chat("Hi", timeout=20).text
    assert len(children()) == 1
    try:
        next(stream)
    except polymux.OperationCancelledError:
        pass
    else:
        raise AssertionError("a stream of the parent's")
    local.close()
    assert not made.path.exists()
forked(work)
forked(local.close)
forked(lambda: local.convert_to_mp3(sys.argv[1]))
assert first.path.exists()
assert children() == [engine]
next(stream)
stream.close()
assert local.chat("Hi").text
assert children() == [engine]
assert local.convert_to_mp3(sys.argv[1]).path.parents[2] == first.path.parents[2]
local.close()
assert not first.path.exists() and children() == []
print("done")
""",
        sound,
    )


def test_a_folder_that_the_parent_uses(sound: Path) -> None:
    """The folder is locked while the parent has it open, as for any other process."""
    done(
        """
local = polymux.Local(os.path.join(os.path.dirname(sys.argv[1]), "kept"), engines=engines)
first = local.convert_to_mp3(sys.argv[1])
reading, writing = os.pipe()
refused, tells = os.pipe()
child = os.fork()
if child == 0:
    os.close(writing)
    try:
        local.convert_to_mp3(sys.argv[1])
    except polymux.PolymuxError as error:
        assert str(os.getppid()) in str(error), error
        os.write(tells, b"x")
        os.read(reading, 1)
        local.convert_to_mp3(sys.argv[1])
        local.close()
        os._exit(0)
    os._exit(1)
os.close(tells)
assert os.read(refused, 1)
local.close()
local.convert_to_mp3(sys.argv[1])
local.close()
os.write(writing, b"x")
assert os.waitpid(child, 0)[1] == 0
assert first.path.exists()
print("done")
""",
        sound,
    )


ENDINGS = {
    "returns": "print('done')",
    "exits": "print('done'); sys.exit(0)",
    "in the middle of calls": """
for text in ("Hi", "flood"):
    threading.Thread(target=lambda: [list(local.chat(text, stream=True)) for _ in range(10**6)],
                     daemon=True).start()
sys.excepthook = threading.excepthook = lambda *_: None
time.sleep(0.5)
print("done")
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_program_that_does_not_close(sound: Path, ending: str) -> None:
    """Files in the user's folder remain."""
    kept = sound.parent / "kept"
    begun = f"""
local = polymux.Local({str(kept) if ending == "returns" else None!r}, engines=engines)
local.convert_to_mp3(sys.argv[1])
assert local.chat("Hi").text
"""
    done(begun + ENDINGS[ending], sound)
    assert len(list(kept.glob("media/*/*.mp3"))) == (ending == "returns")
