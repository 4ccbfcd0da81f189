"""`convert_many` limits concurrency and isolates failures."""

from __future__ import annotations

import gc
import io
import time
from typing import TYPE_CHECKING

import polymux
import pytest
from support.mp3_frames import check_decodable, parse

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def names_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


class Broken(io.RawIOBase):
    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        raise RuntimeError("the cable is loose")


def test_one_bad_file_never_stops_the_others(clip: Path, tmp_path: Path) -> None:
    (tmp_path / "noise.wav").write_bytes(b"this is no media" * 100)
    sources = [clip, tmp_path / "noise.wav", "missing.wav", Broken(), None, clip.read_bytes()]
    outcomes = list(polymux.convert_many(sources))  # type: ignore[arg-type]
    assert sorted(outcome.index for outcome in outcomes) == list(range(6))
    by_index = sorted(outcomes, key=lambda outcome: outcome.index)
    for outcome in by_index:
        assert outcome.source is sources[outcome.index]
        assert outcome.ok == (outcome.file is not None) == (outcome.error is None)
    kinds = [type(outcome.error) for outcome in by_index]
    assert issubclass(kinds[1], polymux.MediaError)
    assert [kinds[0], *kinds[2:]] == [
        type(None), polymux.InputNotFoundError, RuntimeError, TypeError, type(None)
    ]  # fmt: skip
    for index in (0, 5):
        check_decodable(parse(by_index[index].unwrap().read()))


def test_names_in_a_folder(clip: Path, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    memory = io.BytesIO(clip.read_bytes())
    outcomes = polymux.convert_many([clip, memory], folder, bitrate="64k")
    paths = {outcome.index: outcome.unwrap().path for outcome in outcomes}
    assert paths == {0: folder / f"{clip.stem}.mp3", 1: folder / "1.mp3"}
    assert names_in(folder) == sorted([f"{clip.stem}.mp3", "1.mp3"])
    # overwrite=False keeps an existing file.
    (outcome,) = polymux.convert_many([clip], folder, overwrite=False)
    assert isinstance(outcome.error, polymux.OutputExistsError)

    def name(source: object, index: int) -> str:
        assert source == clip
        if index == 2:
            raise LookupError("no name for number 2")
        return f"clip {index}.mp3"

    chosen = tmp_path / "chosen"
    outcomes = list(polymux.convert_many([clip] * 4, chosen, names=name))
    assert names_in(chosen) == ["clip 0.mp3", "clip 1.mp3", "clip 3.mp3"]
    assert [type(outcome.error) for outcome in outcomes if not outcome.ok] == [LookupError]


def test_two_sources_with_one_name(clip: Path, tmp_path: Path) -> None:
    first, second = sorted(
        polymux.convert_many([clip, clip], tmp_path), key=lambda outcome: outcome.index
    )
    assert first.ok
    assert isinstance(second.error, polymux.OutputRefusedError)
    assert "names" in str(second.error)


def test_sources_are_taken_as_places_become_free(clip: Path) -> None:
    taken: list[int] = []

    def endless() -> Iterator[Path]:
        while True:
            taken.append(len(taken))
            yield clip

    outcomes = polymux.convert_many(endless(), concurrency=3)
    assert taken == []
    for number, outcome in enumerate(outcomes, 1):
        assert outcome.ok
        assert len(taken) <= number + 3
        if number == 10:
            break


def test_wrong_calls_fail_before_anything_is_done(clip: Path, tmp_path: Path) -> None:
    with pytest.raises(polymux.InvalidRequestError, match="bitrate"):
        polymux.convert_many([clip], tmp_path / "a", bitrate=1)
    with pytest.raises(polymux.InvalidRequestError, match="concurrency"):
        polymux.convert_many([clip], tmp_path / "a", concurrency=0)
    with pytest.raises(TypeError, match="concurrency"):
        polymux.convert_many([clip], tmp_path / "a", concurrency=1.5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="bitrat"):
        polymux.convert_many([clip], tmp_path / "a", bitrat=128)  # type: ignore[call-arg]
    assert names_in(tmp_path) == []
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(polymux.OutputRefusedError, match=r"\bfile\b"):
        polymux.convert_many([clip], tmp_path / "file")
    with pytest.raises(polymux.OutputFailedError):
        polymux.convert_many([clip], tmp_path / "file" / "below")


def exhaust(outcomes: Iterator[polymux.ConversionOutcome], *, stop: bool) -> None:
    for _ in outcomes:
        if stop:
            raise LookupError


@pytest.mark.parametrize("way", ["break", "close", "exception", "sources"])
def test_leaving_early_cancels_the_rest(
    clip: Path, long_wave: Path, tmp_path: Path, way: str
) -> None:
    def sources() -> Iterator[Path]:
        yield clip
        yield long_wave
        yield long_wave
        if way == "sources":
            raise LookupError("the list is gone")

    outcomes = polymux.convert_many(
        sources(), tmp_path, names=lambda source, index: f"{index}.mp3", concurrency=3
    )
    began = time.monotonic()
    if way in ("break", "close"):
        assert next(outcomes).index == 0
        if way == "close":
            outcomes.close()  # type: ignore[attr-defined]
    else:
        with pytest.raises(LookupError):
            exhaust(outcomes, stop=way == "exception")
    del outcomes
    gc.collect()
    assert [name for name in names_in(tmp_path) if name != "0.mp3"] == []
    assert way == "sources" or names_in(tmp_path) == ["0.mp3"]
    assert time.monotonic() - began < 30
