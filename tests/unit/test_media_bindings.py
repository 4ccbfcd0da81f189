"""The native module itself: who owns what, which exception comes out where, and when it ends."""

from __future__ import annotations

import array
import gc
import io
import itertools
import os
import sys
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux._native import _media
from support.conversions import SHORT, Reader, fail_at_once, start, wav

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAMPLES = 2 * 44_100
PATIENCE_S = 30
"""What a busy machine may need; a wait of this length is a failure, never a result."""


@pytest.fixture(scope="module")
def long_wav() -> bytes:
    """So long that a conversion cannot end by itself before the test looks at it."""
    return wav(600)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Readers wait for it; opened at the end, so that no worker stays behind."""
    event = threading.Event()
    yield event
    event.set()


def waiting(gate: threading.Event) -> Reader:
    return Reader(SHORT, lambda _: gate.wait(PATIENCE_S) and None)


@pytest.fixture
def busy(gate: threading.Event) -> list[_media.Conversion]:
    """A conversion on each worker."""
    return [start(waiting(gate)) for _ in range(_media.available_cores())]


def test_progress_is_told_in_the_waiting_thread_and_ends_complete(long_wav: bytes) -> None:
    told: list[tuple[int, float, dict[str, Any]]] = []
    content = long_wav[: len(long_wav) // 20]
    start(content).wait(lambda p: told.append((threading.get_ident(), time.monotonic(), p)))
    assert {thread for thread, _, _ in told} == {threading.get_ident()}
    times = [moment for _, moment, _ in told[:-1]]
    assert all(b - a > 0.09 for a, b in itertools.pairwise(times))
    last = told[-1][2]
    assert last["position_s"] == last["duration_s"] > 0
    assert last["bytes_written"] > 0


def test_an_exception_from_on_progress_ends_the_conversion(tmp_path: Path, long_wav: bytes) -> None:
    raised = RuntimeError("enough")
    conversion = start(long_wav, ("path", os.fsencode(tmp_path / "out.mp3")))
    with pytest.raises(RuntimeError) as caught:
        conversion.wait(fail_at_once(raised))  # type: ignore[arg-type]
    assert caught.value is raised
    assert conversion.done
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(polymux.OperationCancelledError):
        conversion.wait()


def test_cancelling_ends_soon_and_calls_on_done_once(long_wav: bytes) -> None:
    called = threading.Semaphore(0)
    conversion = start(long_wav, on_done=called.release)
    began = time.monotonic()
    conversion.cancel()
    with pytest.raises(polymux.OperationCancelledError):
        conversion.wait()
    assert time.monotonic() - began < 1
    conversion.cancel()
    assert called.acquire(timeout=PATIENCE_S)
    assert not called.acquire(timeout=0.05)


def test_dropping_a_conversion_cancels_it(long_wav: bytes) -> None:
    done = threading.Event()
    conversion = start(long_wav, on_done=done.set)
    began = time.monotonic()
    del conversion
    assert done.wait(PATIENCE_S)
    assert time.monotonic() - began < 2


def test_on_done_sees_the_end_and_its_own_failure_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[object] = []
    told = threading.Event()

    def hook(unraisable: Any) -> None:
        reported.append(unraisable.exc_type)
        told.set()

    monkeypatch.setattr(sys, "unraisablehook", hook)
    conversion = start(SHORT, on_done=lambda: 1 // 0)
    conversion.wait()
    assert told.wait(PATIENCE_S)
    assert reported == [ZeroDivisionError]


def test_what_waits_for_a_worker_is_cancelled_at_once(
    gate: threading.Event, busy: list[_media.Conversion]
) -> None:
    queued = start(SHORT)
    began = time.monotonic()
    queued.cancel()
    assert queued.done
    with pytest.raises(polymux.OperationCancelledError):
        queued.wait()
    assert time.monotonic() - began < 1
    assert polymux.probe(SHORT).container == "wav"  # It does not queue behind conversions.
    gate.set()
    assert all(conversion.wait()["samples"] == SAMPLES for conversion in busy)


def test_many_threads_may_wait_for_one_conversion(gate: threading.Event) -> None:
    conversion = start(waiting(gate))
    results: list[dict[str, Any]] = []
    threads = [threading.Thread(target=lambda: results.append(conversion.wait())) for _ in range(4)]
    for thread in threads:
        thread.start()
    gate.set()
    for thread in threads:
        thread.join(PATIENCE_S)
    assert len(results) == 4
    assert all(result == results[0] for result in results)
    assert all(result["data"] is results[0]["data"] for result in results)


def test_inputs_and_outputs_are_released_when_the_wait_ends() -> None:
    buffer, source, output = bytearray(SHORT), io.BytesIO(SHORT), io.BytesIO()
    before = sys.getrefcount(source), sys.getrefcount(output)
    conversions = [start(buffer), start(source, output)]
    for conversion in conversions:
        conversion.wait()
    buffer.append(0)  # Refused while anybody holds the buffer.
    assert (sys.getrefcount(source), sys.getrefcount(output)) == before


def test_a_failure_that_refers_to_its_conversion_can_be_collected() -> None:
    class Failing:
        def read(self, _: int) -> bytes:
            raise LookupError

    def attempt() -> weakref.ref[Failing]:
        source = Failing()
        conversion = start(source)
        with pytest.raises(LookupError):
            conversion.wait()  # The exception keeps this frame, which keeps the conversion.
        return weakref.ref(source)

    left = attempt()
    gc.collect()
    assert left() is None


def test_decoded_audio_has_the_asked_rate_and_length() -> None:
    options = (16_000, 1, None, None, None, False)
    decoded = _media.decode_pcm(("bytes", SHORT, "x"), *options, _media.Limits())
    assert decoded["sample_count"] == 32_000
    samples = array.array("f", decoded["samples"])
    assert len(samples) == 32_000
    assert 0.2 < max(samples) < 0.3


@pytest.mark.parametrize("what", ["decode_pcm", "probe", "shazam_signature", "song_query"])
def test_what_a_check_raises_ends_the_work(what: str, gate: threading.Event) -> None:
    """Work of a second at most; a reader that waits for more, and so comes to no end by itself."""
    looks: list[float] = []

    def check() -> None:
        looks.append(time.monotonic())
        if len(looks) == 3:
            raise LookupError

    options = (16_000, 1, None, None, None, False) if what == "decode_pcm" else ()
    began = time.monotonic()
    with pytest.raises(LookupError):
        getattr(_media, what)(("file", waiting(gate), "x"), *options, _media.Limits(), check)
    assert time.monotonic() - began < 2
    assert looks[2] - looks[0] > 0.09  # Not more often than twenty times a second.


def test_options_hold_what_they_are_given() -> None:
    chosen = _media.ConvertOptions()
    assert (chosen.preset, chosen.tags, chosen.cover) == ("ffmpeg", "copy", "copy")
    chosen.preset = "best"
    chosen.replace_tags = [("title", "é"), ("title", "twice")]
    chosen.start_s = 1
    assert (chosen.preset, chosen.start_s) == ("best", 1.0)
    assert chosen.replace_tags == [("title", "é"), ("title", "twice")]
    with pytest.raises(polymux.InvalidRequestError, match="'ffmpeg', 'best', 'fast'"):
        chosen.preset = "quick"
    with pytest.raises(TypeError):
        chosen.channels = "two"  # type: ignore[assignment]


def test_the_build_says_what_it_runs_with() -> None:
    info = _media.build_info()
    assert info["version"] == _media.__version__ == polymux.__version__
    assert info["ffmpeg"]["libavformat"].split(".")[0].isdigit()
    assert info["lame"].startswith("LAME ")
