"""`polymux.aio`: the same results, cancellation that leaves nothing, no thread per conversion."""

from __future__ import annotations

import asyncio
import threading
import time
from contextlib import aclosing
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import aio
from support.long_sound import write_long_wave
from support.sounds import Sound

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus

HOUR_S = 3600


@pytest.fixture
def clip(corpus: Corpus) -> Path:
    return corpus.wave(Sound(samples=22_050))


@pytest.fixture(scope="module")
def long_wave(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long_wave(tmp_path_factory.mktemp("long") / "long.wav", 4 * HOUR_S)


def test_the_twins_agree(clip: Path, tmp_path: Path) -> None:
    async def main() -> None:
        file = await aio.convert_to_mp3(clip, bitrate="64k")
        assert file.read() == polymux.convert_to_mp3(clip, bitrate="64k").read()
        on_disk = await aio.convert_to_mp3(clip, tmp_path / "a.mp3", bitrate="64k")
        assert on_disk.path == tmp_path / "a.mp3"
        assert on_disk.read() == file.read()
        assert await aio.probe(clip) == polymux.probe(clip)
        assert (await aio.decode_audio(clip)).samples == polymux.decode_audio(clip).samples

    asyncio.run(main())
    # A second loop in the same process: nothing may be tied to the first.
    asyncio.run(main())


def test_errors(clip: Path, tmp_path: Path) -> None:
    async def main() -> None:
        with pytest.raises(polymux.InputNotFoundError):
            await aio.convert_to_mp3(tmp_path / "missing.wav")
        with pytest.raises(polymux.InvalidRequestError, match="bitrate"):
            await aio.convert_to_mp3(clip, bitrate=1)
        with pytest.raises(polymux.InvalidRequestError, match="bitrate"):
            aio.convert_many([clip], bitrate=1)
        with pytest.raises(polymux.InputNotFoundError):
            await aio.probe(tmp_path / "missing.wav")

    asyncio.run(main())


def test_many_at_once_need_no_threads_of_their_own(clip: Path) -> None:
    polymux.convert_to_mp3(clip)  # The native pool has its threads now; Python sees none of them.
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


def test_progress_comes_about_ten_times_a_second(long_wave: Path, tmp_path: Path) -> None:
    times: list[float] = []

    async def main() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(1.05):
                await aio.convert_to_mp3(
                    long_wave,
                    tmp_path / "a.mp3",
                    on_progress=lambda progress: times.append(progress.position_s),
                )

    asyncio.run(main())
    assert 4 <= len(times) <= 11
    assert times[-1] > 0
    assert list(tmp_path.iterdir()) == []


def test_cancelling_leaves_nothing(long_wave: Path, tmp_path: Path) -> None:
    async def main() -> float:
        task = asyncio.create_task(aio.convert_to_mp3(long_wave, tmp_path / "a.mp3"))
        await asyncio.sleep(0.3)
        assert len(list(tmp_path.iterdir())) == 1
        began = time.monotonic()
        task.cancel()
        await asyncio.sleep(0)
        task.cancel()  # An impatient second time must not leave the native part behind.
        with pytest.raises(asyncio.CancelledError):
            await task
        assert list(tmp_path.iterdir()) == []
        return time.monotonic() - began

    assert asyncio.run(main()) < 2.0


def test_an_exception_of_the_callback_ends_the_conversion(long_wave: Path, tmp_path: Path) -> None:
    class StopError(Exception):
        pass

    async def stop(_: polymux.Progress) -> None:
        raise StopError

    async def main() -> None:
        with pytest.raises(StopError):
            await aio.convert_to_mp3(long_wave, tmp_path / "a.mp3", on_progress=stop)
        assert list(tmp_path.iterdir()) == []

    asyncio.run(main())


def test_the_event_loop_stays_free(long_wave: Path) -> None:
    async def main() -> int:
        ticks = 0
        task = asyncio.create_task(aio.convert_to_mp3(long_wave))
        end = time.monotonic() + 0.5
        while time.monotonic() < end:
            await asyncio.sleep(0.01)
            ticks += 1
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return ticks

    assert asyncio.run(main()) >= 10


def test_convert_many(clip: Path, tmp_path: Path) -> None:
    async def main() -> dict[int, polymux.ConversionOutcome]:
        sources: list[Path | str | bytes] = [clip, "missing.wav", clip.read_bytes()]
        return {outcome.index: outcome async for outcome in aio.convert_many(sources, tmp_path)}

    outcomes = asyncio.run(main())
    assert sorted(outcomes) == [0, 1, 2]
    assert isinstance(outcomes[1].error, polymux.InputNotFoundError)
    assert outcomes[2].unwrap().path == tmp_path / "2.mp3"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("way", ["aclose", "cancel"])
def test_leaving_convert_many_early(clip: Path, long_wave: Path, tmp_path: Path, way: str) -> None:
    async def loop() -> None:
        outcomes = aio.convert_many(
            [clip, long_wave, long_wave],
            tmp_path,
            names=lambda source, index: f"{index}.mp3",
            concurrency=3,
        )
        async with aclosing(outcomes):
            async for outcome in outcomes:
                assert outcome.index == 0
                if way == "aclose":
                    break

    async def main() -> None:
        task = asyncio.create_task(loop())
        if way == "cancel":
            await asyncio.sleep(1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            await task
        assert [path.name for path in tmp_path.iterdir() if path.name != "0.mp3"] == []

    asyncio.run(main())
