"""The native media module: ownership, exceptions, cancellation."""

from __future__ import annotations

import array
import itertools
import os
import sys
import threading
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux._native import _media
from support.conversions import SHORT, Reader, fail_at_once, start, wav

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SAMPLES = 2 * 44_100
#: Only a failure takes this long, even on a busy machine.
PATIENCE_S = 30


def test_the_build_names_its_ffmpeg() -> None:
    with open("/proc/self/maps") as maps:  # noqa: PTH123
        assert _media.build_info()["private_deps"] != ("/libavcodec." in maps.read())


@pytest.fixture(scope="module")
def long_wav() -> bytes:
    """Long enough to be still converting when the test looks."""
    return wav(600)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Readers wait for this event. The fixture sets it at the end, so no worker stays blocked."""
    event = threading.Event()
    yield event
    event.set()


def waiting(gate: threading.Event) -> Reader:
    return Reader(SHORT, lambda _: gate.wait(PATIENCE_S) and None)


@pytest.fixture
def busy(gate: threading.Event) -> list[_media.Conversion]:
    """One running conversion on each worker."""
    return [start(waiting(gate)) for _ in range(_media.available_cores())]


def test_progress_is_reported_in_the_waiting_thread_and_ends_complete(long_wav: bytes) -> None:
    reports: list[tuple[int, float, dict[str, Any]]] = []
    content = long_wav[: len(long_wav) // 20]
    start(content).wait(lambda p: reports.append((threading.get_ident(), time.monotonic(), p)))
    assert {thread for thread, _, _ in reports} == {threading.get_ident()}
    times = [moment for _, moment, _ in reports[:-1]]
    assert all(b - a > 0.09 for a, b in itertools.pairwise(times))
    last = reports[-1][2]
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
    assert time.monotonic() - began < PATIENCE_S
    conversion.cancel()
    assert called.acquire(timeout=PATIENCE_S)
    assert not called.acquire(timeout=0.05)


def test_dropping_a_conversion_cancels_it(long_wav: bytes) -> None:
    done = threading.Event()
    conversion = start(long_wav, on_done=done.set)
    began = time.monotonic()
    del conversion
    assert done.wait(PATIENCE_S)
    assert time.monotonic() - began < PATIENCE_S


def test_on_done_sees_the_end_and_its_own_failure_is_reported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    reported: list[object] = []
    called = threading.Event()

    def hook(unraisable: Any) -> None:
        reported.append(unraisable.exc_type)
        called.set()

    monkeypatch.setattr(sys, "unraisablehook", hook)
    conversion = start(SHORT, on_done=lambda: 1 // 0)
    conversion.wait()
    assert called.wait(PATIENCE_S)
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
    assert time.monotonic() - began < PATIENCE_S
    assert polymux.probe(SHORT).container == "wav"  # `probe` does not queue behind conversions.
    gate.set()
    assert all(conversion.wait()["samples"] == SAMPLES for conversion in busy)


def test_decoded_audio_has_the_asked_rate_and_length() -> None:
    options = (16_000, 1, None, None, None, False)
    decoded = _media.decode_pcm(("bytes", SHORT, "x"), *options, _media.Limits())
    assert decoded["sample_count"] == 32_000
    samples = array.array("f", decoded["samples"])
    assert len(samples) == 32_000
    assert 0.2 < max(samples) < 0.3


@pytest.mark.parametrize("what", ["decode_pcm", "probe", "shazam_signature", "song_query"])
def test_what_a_check_raises_ends_the_work(what: str, gate: threading.Event) -> None:
    """The reader would wait forever, so only the exception can end the work."""
    looks: list[float] = []

    def check() -> None:
        looks.append(time.monotonic())
        if len(looks) == 3:
            raise LookupError

    options = (16_000, 1, None, None, None, False) if what == "decode_pcm" else ()
    began = time.monotonic()
    with pytest.raises(LookupError):
        getattr(_media, what)(("file", waiting(gate), "x"), *options, _media.Limits(), check)
    assert time.monotonic() - began < PATIENCE_S
    assert looks[2] - looks[0] > 0.09  # at most twenty times a second
