"""Installations without the native module: everything imports, and the call says what to do."""

from __future__ import annotations

import subprocess
import sys

import pytest

CALL = """
import sys
{preparation}
import polymux
try:
    {call}
except polymux.MissingDependencyError as error:
    assert isinstance(error, ImportError)
    print(error)
"""
NOT_BUILT = "sys.modules['polymux._native._media'] = None"
#: As the dynamic loader reports a library that was removed.
LIBRARY_GONE = """
class Finder:
    def find_spec(self, name, path, target=None):
        if name == 'polymux._native._media':
            raise ImportError('libavformat.so.59: cannot open shared object file: \\x1b[31m')
sys.meta_path.insert(0, Finder())
"""


def message_of(preparation: str, call: str) -> str:
    code = CALL.format(preparation=preparation, call=call)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.parametrize(
    "call",
    [
        "polymux.convert_to_mp3('a.wav')",
        "polymux.convert_many(['a.wav'])",
        "polymux.probe('a.wav')",
        "polymux.decode_audio('a.wav')",
        "__import__('asyncio').run(polymux.aio.convert_to_mp3('a.wav'))",
    ],
)
def test_not_built(call: str) -> None:
    message = message_of(NOT_BUILT, call)
    assert "built without media support" in message
    assert "libavformat-dev" in message
    assert "libmp3lame-dev" in message
    assert "\n" not in message
    assert ". " not in message


def test_library_gone() -> None:
    message = message_of(LIBRARY_GONE, "polymux.probe('a.wav')")
    assert "libavformat.so.59" in message
    assert "built without" not in message
    assert "\\x1b" in message


@pytest.mark.parametrize(("arguments", "code"), [("['doctor']", 3), ("['probe', 'a.wav']", 3)])
def test_commands_end_with_their_exit_code(arguments: str, code: int) -> None:
    program = f"import sys\n{NOT_BUILT}\nfrom polymux.cli import main\nsys.exit(main({arguments}))"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "install" in done.stdout + done.stderr
    assert "Traceback" not in done.stderr
