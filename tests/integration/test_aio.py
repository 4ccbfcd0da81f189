"""`polymux.aio`: the same results, cleanup on cancellation, and no thread per conversion."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import aio

if TYPE_CHECKING:
    from pathlib import Path


def test_the_twins_agree(clip: Path, tmp_path: Path) -> None:
    async def main() -> None:
        file = await aio.convert_to_mp3(clip, bitrate="64k")
        assert file.read() == polymux.convert_to_mp3(clip, bitrate="64k").read()
        on_disk = await aio.convert_to_mp3(clip, tmp_path / "a.mp3", bitrate="64k")
        assert on_disk.path == tmp_path / "a.mp3"
        assert on_disk.read() == file.read()
        assert await aio.probe(clip) == polymux.probe(clip)
        assert (await aio.decode_audio(clip)).samples == polymux.decode_audio(clip).samples
        for call in (aio.convert_to_mp3, aio.probe):
            with pytest.raises(polymux.InputNotFoundError):
                await call(tmp_path / "missing.wav")
        with pytest.raises(polymux.InvalidRequestError, match="bitrate"):
            await aio.convert_to_mp3(clip, bitrate=1)
        with pytest.raises(polymux.InvalidRequestError, match="bitrate"):
            aio.convert_many([clip], bitrate=1)

    asyncio.run(main())
    # A second event loop in the same process: no state may belong to the first one.
    asyncio.run(main())


def test_many_at_once_need_no_threads_of_their_own(clip: Path) -> None:
    # Starts the threads of the native pool. Python does not count them.
    polymux.convert_to_mp3(clip)
    before = threading.active_count()

    async def main() -> None:
        started = [asyncio.create_task(aio.convert_to_mp3(clip)) for _ in range(50)]
        await asyncio.sleep(0)
        assert threading.active_count() == before
        files = await asyncio.gather(*started)
        assert len({file.read() for file in files}) == 1

    asyncio.run(main())


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_progress_on_the_event_loop(clip: Path, kind: str) -> None:
    seen: list[polymux.Progress] = []
    threads = set()

    def report(progress: polymux.Progress) -> None:
        threads.add(threading.get_ident())
        seen.append(progress)

    async def report_later(progress: polymux.Progress) -> None:
        await asyncio.sleep(0)
        report(progress)

    async def main() -> polymux.MediaFile:
        chosen = report if kind == "function" else report_later
        return await aio.convert_to_mp3(clip, on_progress=chosen)

    file = asyncio.run(main())
    assert threads == {threading.get_ident()}
    assert seen[-1].fraction == 1.0
    assert seen[-1].bytes_written == file.size_bytes


def test_cancelling_leaves_nothing(long_wave: Path, tmp_path: Path) -> None:
    """Before the cancellation: progress about ten times a second, and a responsive loop."""
    positions: list[float] = []

    async def main() -> float:
        task = asyncio.create_task(
            aio.convert_to_mp3(
                long_wave, tmp_path / "a.mp3",
                on_progress=lambda progress: positions.append(progress.position_s),
            )
        )  # fmt: skip
        ticks, end = 0, time.monotonic() + 1.05
        while time.monotonic() < end:
            await asyncio.sleep(0.01)
            ticks += 1
        assert ticks >= 20
        assert len(list(tmp_path.iterdir())) == 1
        began = time.monotonic()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # A second cancel() must not leave the native conversion running.
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(tmp_path.iterdir()) == []
        return time.monotonic() - began

    assert asyncio.run(main()) < 2.0
    assert 4 <= len(positions) <= 15
    assert positions[-1] > 0


@pytest.mark.parametrize("way", ["aclose", "cancel"])
def test_leaving_convert_many_early(clip: Path, long_wave: Path, tmp_path: Path, way: str) -> None:
    seen = asyncio.Event()

    async def loop() -> None:
        outcomes = aio.convert_many(
            [clip, long_wave, long_wave], tmp_path, names=lambda _, index: f"{index}.mp3",
            concurrency=3,
        )  # fmt: skip
        async with aclosing(outcomes):
            async for outcome in outcomes:
                assert outcome.index == 0
                seen.set()
                if way == "aclose":
                    break

    async def main() -> None:
        task = asyncio.create_task(loop())
        await asyncio.wait_for(seen.wait(), 60)
        if way == "cancel":
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        await asyncio.wait([task])
        assert [path.name for path in tmp_path.iterdir() if path.name != "0.mp3"] == []

    asyncio.run(main())
