from __future__ import annotations

import threading
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from polymux.batches.database import Database
from polymux.batches.manifest import Manifest
from polymux.batches.records import Found, Staged, StagedResult
from polymux.errors import OutputFailedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def manifest(tmp_path: Path) -> Iterator[Manifest]:
    made = Manifest(tmp_path / "m.db", tmp_path)
    made.begin("convert_to_mp3", "{}", "{}", resumes=False)
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


def test_a_change_is_whole_or_not_at_all(tmp_path: Path) -> None:
    def half() -> None:
        with database.change() as connection:
            connection.execute("INSERT INTO facts VALUES ('half', x'00')")
            raise ValueError

    refused = pytest.raises(OutputFailedError, match="no such table")
    with closing(Database(tmp_path / "m.db")) as database:
        with pytest.raises(ValueError):
            half()
        with database.read() as connection:
            assert connection.execute("SELECT * FROM facts WHERE name = 'half'").fetchall() == []
        with refused, database.change() as connection:
            connection.execute("UPDATE elsewhere SET a = 1")
