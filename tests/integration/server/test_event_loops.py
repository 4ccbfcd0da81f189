"""Applications of others run on others' event loops: engines start there, and stop."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import uvloop
from polymux import AsyncClient, AsyncLocal, Client, errors
from support.conversions import wav

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[2]
LOOPS = {"asyncio": asyncio.new_event_loop, "uvloop": uvloop.new_event_loop}


@contextmanager
def hosted(folder: Path, loop: str) -> Iterator[tuple[str, str]]:
    command = [sys.executable, "-m", "support.foreign_application", str(folder), loop]
    environment = {**os.environ, "PYTHONPATH": os.fspath(TESTS)}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=environment) as process:
        try:
            assert process.stdout is not None
            port, key = json.loads(process.stdout.readline())
            yield f"http://127.0.0.1:{port}", key
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == -signal.SIGTERM
        finally:
            process.kill()


@pytest.mark.parametrize("loop", LOOPS)
def test_an_engine_works_behind_the_router(tmp_path: Path, loop: str) -> None:
    """And a client on such a loop is answered."""
    sound = tmp_path / "a.wav"
    sound.write_bytes(wav(1))
    with hosted(tmp_path, loop) as (url, key):
        with Client(base_url=url, api_key=key) as client:
            assert client.convert_to_mp3(sound).read()[:2] == b"\xff\xfb"
            sound.write_bytes(b"RIFF nothing")
            with pytest.raises(errors.APIStatusError, match=r"a\.wav"):
                client.convert_to_mp3(sound)

        async def refused() -> None:
            async with AsyncClient(base_url=url, api_key=key) as client:
                with pytest.raises(errors.NoBackendError):
                    await asyncio.gather(*[client.search_music("x") for _ in range(20)])

        with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
            runner.run(refused())


@pytest.mark.parametrize("loop", LOOPS)
def test_local_on_a_loop(tmp_path: Path, loop: str) -> None:
    sound = tmp_path / "a.wav"
    sound.write_bytes(wav(1))

    async def convert() -> bytes:
        async with AsyncLocal() as local:
            done = await local.convert_to_mp3(sound)
            return await done.aread()

    with asyncio.Runner(loop_factory=LOOPS[loop]) as runner:
        assert runner.run(convert())[:2] == b"\xff\xfb"
