"""The manifest by itself."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING

import pytest
from polymux.batches.manifest import Manifest
from polymux.batches.records import Found, Staged, StagedResult
from polymux.errors import OutputFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    made = Manifest(tmp_path / "m.db", tmp_path)
    made.begin("convert_to_mp3", "{}", resumes=False)
    yield made
    made.close()


def found(number: int, stem: str = "") -> Found:
    return Found(b"%d" % number, f'{{"file":"{number}"}}', (stem or f"{number}").encode(), 10)


def made(manifest: Manifest, ending: str = ".mp3") -> StagedResult:
    (task,) = manifest.next_ones(1, ())
    return StagedResult(task, (Staged(ending, 3, b"hash"),), b"identity", 10, 1, None, 0.5)


def test_numbered_files_leave_the_names_of_others_alone(manifest: Manifest, tmp_path: Path) -> None:
    manifest.add([found(1, "a"), found(2, "a-1")])
    one = made(manifest, "-1.png")
    (first,) = manifest.write_down(made=[one], finished=[one])
    two = made(manifest, ".png")
    assert two.task.id == 2
    (second,) = manifest.write_down(made=[two])
    assert isinstance(first, list)
    assert isinstance(second, list)
    assert first[0].name == b"a-1.png"
    assert second[0].name.startswith(b"a-1-")


def test_threads_share_it(manifest: Manifest) -> None:
    def add(begin: int) -> None:
        for number in range(begin, begin + 50):
            manifest.add([found(number)])

    threads = [threading.Thread(target=add, args=(begin,)) for begin in (0, 25, 100)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    assert manifest.counts().total == 125


def test_a_change_is_whole_or_not_at_all(manifest: Manifest) -> None:
    def half() -> None:
        with manifest._database.change() as connection:
            connection.execute("UPDATE items SET state = 'done'")
            raise ValueError

    manifest.add([found(1)])
    with pytest.raises(ValueError):
        half()
    assert manifest.counts().done == 0
    refused = pytest.raises(OutputFailedError, match="cannot be used: no such table")
    with refused, manifest._database.change() as connection:
        connection.execute("UPDATE elsewhere SET a = 1")
