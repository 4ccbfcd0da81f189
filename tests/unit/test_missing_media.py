"""Without the native module everything imports, and calls say what to install."""

from __future__ import annotations

import subprocess
import sys

import pytest

NOT_BUILT = "sys.modules['polymux._native._media'] = None"
#: The dynamic loader's error for a removed library.
LIBRARY_GONE = """
class Finder:
    def find_spec(self, name, path, target=None):
        if name == 'polymux._native._media':
            raise ImportError('libavformat.so.59: cannot open shared object file: \\x1b[31m')
sys.meta_path.insert(0, Finder())
"""
CALLS = """
import asyncio, polymux
for call in (polymux.convert_to_mp3, lambda one: polymux.convert_many([one]), polymux.probe,
             polymux.decode_audio, lambda one: asyncio.run(polymux.aio.convert_to_mp3(one))):
    try:
        call('a.wav')
    except polymux.MissingDependencyError as error:
        assert isinstance(error, ImportError)
        print(error)
"""


def run(program: str, status: int = 0) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", f"import sys\n{program}"],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return (done.stdout + done.stderr).strip()


def test_not_built() -> None:
    messages = run(NOT_BUILT + CALLS).splitlines()
    assert len(messages) == 5
    for message in messages:
        assert "libavformat-dev" in message


def test_library_gone() -> None:
    message = run(LIBRARY_GONE + CALLS)
    assert "libavformat.so.59" in message
    assert "\\x1b" in message


@pytest.mark.parametrize("words", [["doctor"], ["probe", "a.wav"]])
def test_commands_end_with_their_exit_code(words: list[str]) -> None:
    program = f"{NOT_BUILT}\nfrom polymux.cli import main\nsys.exit(main({words}))"
    assert "libavformat-dev" in run(program, status=3)
