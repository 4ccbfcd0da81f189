"""Other Python threads continue while the core analyzes, searches and writes."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

import numpy
import polymux
import pytest
from support import generated_songs
from support.generated_songs import RATE

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path
    from typing import Self

LENGTH_S = 200


class Counter:
    """A thread that counts up to a thousand times per second."""

    def __init__(self) -> None:
        self.count = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self) -> None:
        while not self._over.is_set():
            self.count += 1
            time.sleep(0.001)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def check_released(act: Callable[[], object]) -> None:
    """Check that `act` releases the GIL. Otherwise the other thread counts once or twice."""
    with Counter() as counter:
        time.sleep(0.01)
        counted, began = counter.count, time.monotonic()
        act()
        counted, took_s = counter.count - counted, time.monotonic() - began
    # 2 % of the count on an idle machine.
    assert counted > 5 + 20 * took_s, f"{counted} in {took_s:.2f} s"


def test_who_keeps_the_lock_is_seen() -> None:
    with pytest.raises(AssertionError):
        check_released(lambda: pow(3, 3_000_000))


@pytest.fixture(scope="module")
def noise(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Minutes of audio with content everywhere."""
    samples = numpy.random.default_rng(5).normal(0, 0.2, LENGTH_S * RATE)
    path = tmp_path_factory.mktemp("noise") / "noise.wav"
    return generated_songs.write(path, numpy.clip(samples, -1, 1))


def test_while_a_file_is_added_and_identified(noise: Path, tmp_path: Path) -> None:
    with polymux.SongIndex(tmp_path / "index") as index:
        check_released(lambda: index.add(noise, workers=1))
        check_released(lambda: index.identify(noise))
