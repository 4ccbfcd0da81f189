from __future__ import annotations

import hashlib
import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import InternalServerError
from polymux.service import database
from polymux.service.errors import StoreError, storage_full
from polymux.service.job_table import Job, new_id
from polymux.service.signed_urls import UrlSigner
from polymux.service.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.media_store import StoredFile

    Opener = Callable[..., Store]


class Clock:
    def __init__(self, now: float = 1_800_000_000.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def kept(store: Store, data: bytes = b"bytes", job: str = "j", owner: str = "alice") -> StoredFile:
    draft = store.media.draft(len(data))
    draft.path.write_bytes(data)
    digest, size_bytes = draft.seal()
    return store.media.adopt(
        draft, job=job, owner=owner, sha256=digest, size_bytes=size_bytes,
        content_type="audio/mpeg", file_name="song.mp3",
    )  # fmt: skip


def job_of(owner: str = "alice", **changes: Any) -> Job:
    plain: dict[str, Any] = {
        "id": new_id(), "owner": owner, "operation": "transcribe", "model": "m", "version": "v",
        "input": {"task": "transcribe"}, "created_at": 1_800_000_000.0,
    }  # fmt: skip
    return Job(**(plain | changes))


def parts_of(query: str) -> tuple[str, str]:
    """Expiry and signature of a link."""
    given = dict(one.split("=") for one in query.split("&"))
    return given["exp"], given["sig"]


def test_a_file_is_found_with_its_hash_and_read(tmp_path: Path, opened: Opener) -> None:
    store = opened()
    file = kept(store, b"x" * 3_000_000)
    found = store.media.find(file.name)
    assert found == file
    assert found.sha256 == hashlib.sha256(b"x" * 3_000_000).hexdigest()
    with os.fdopen(store.media.open(found), "rb") as reader:
        assert reader.read() == b"x" * 3_000_000
    assert file.name.endswith(".mp3")
    assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_names_have_160_random_bits(monkeypatch: pytest.MonkeyPatch, opened: Opener) -> None:
    """Each bit is set half the time, and names do not reveal when a file was made."""
    store = opened()
    monkeypatch.setattr(os, "fsync", lambda _: None)  # A thousand of them would be slow.
    store._database.execute("PRAGMA synchronous = OFF")
    names = [kept(store).name.removesuffix(".mp3") for _ in range(1000)]
    store.close()
    numbers = [int.from_bytes(bytes.fromhex(one)) for one in names]
    assert all(len(one) == 40 for one in names)
    # 8 standard deviations (16 each): one of the 160 counts is outside with probability < 10^-12.
    for bit in range(160):
        assert abs(sum(one >> bit & 1 for one in numbers) - 500) < 8 * 16
    rising = sum(before < after for before, after in pairwise(numbers))
    assert abs(rising - 500) < 8 * 10
    for step in (1, 2):
        distances = {after - before for before, after in zip(numbers, numbers[step:], strict=False)}
        assert len(distances) == len(numbers) - step


def test_what_an_earlier_process_left_is_gone(tmp_path: Path, opened: Opener) -> None:
    folder = tmp_path / "s"
    store = opened()
    file, lost = kept(store), kept(store)
    store.media.path_of(lost).unlink()
    store.close()
    orphan = folder / "media" / "ab" / f"ab{'0' * 38}.mp3"
    orphan.parent.mkdir(exist_ok=True)
    orphan.write_bytes(b"renamed, and never written down")
    planted = folder / "media" / file.name[:2] / f"{file.name[:2]}{'0' * 38}.bin"
    planted.symlink_to("/etc/passwd")
    others = ("media/holiday.mp4", "media/ab/cover.png", "drafts/two.txt", "drafts/chapter/one.txt")
    for name in others:
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(b"mine")
    leave_drafts(folder / "drafts")
    store = opened()
    assert all((folder / name).read_bytes() == b"mine" for name in others)
    assert store.media.find(file.name) == file
    assert store.media.find(lost.name) is None
    assert not orphan.exists()
    assert not planted.is_symlink()
    assert {one.name for one in (folder / "drafts").iterdir()} == {"two.txt", "chapter"}
    assert store.media.used_bytes == file.size_bytes


def leave_drafts(folder: Path) -> None:
    """Leave what a killed process leaves: temporary files, a download, a planted link."""
    (folder / ("1" * 40)).write_bytes(b"half")
    for suffix in ("01abcdef", "0123tuv9"):  # from Python and from the core
        (folder / f".{'1' * 32}.polymux-{suffix}.part").write_bytes(b"half")
    (folder / ("2" * 40)).symlink_to("/etc/passwd")
    download = Path(tempfile.mkdtemp(dir=folder))
    (download / "a.mp4.part").write_bytes(b"half")


def tree(folder: Path) -> dict[str, bytes | None]:
    """All files and folders below `folder`."""
    return {
        str(one.relative_to(folder)): one.read_bytes() if one.is_file() else None
        for one in folder.rglob("*")
    }


STRANGERS = (
    "drafts/chapter/one.txt",
    "drafts/two.txt",
    f"drafts/{'3' * 40}/four.txt",
    "media/holiday.mp4",
    "media/ab/cover.png",
    f"media/ab/{'c' * 40}.jpg",
    f"media/ab/ab{'0' * 38}.jpg/five.jpg",
    "media",
    "drafts",
)


@pytest.mark.parametrize("stranger", STRANGERS)
@pytest.mark.parametrize("job_database", ["none", "empty"])
def test_a_folder_with_files_of_others_is_no_store(
    tmp_path: Path, stranger: str, job_database: str
) -> None:
    """Nothing in it is removed, moved or added."""
    folder = tmp_path / "mine"
    path = folder / stranger
    path.parent.mkdir(parents=True)
    path.write_bytes(b"mine")
    if job_database == "empty":
        (folder / "catalogue.db").touch()
    before = tree(folder)
    with pytest.raises(StoreError) as refused:
        Store(folder)
    named = [one for one in (path, *path.parents) if str(one) in str(refused.value)]
    assert named[0].is_relative_to(folder / stranger.split("/")[0])
    assert tree(folder) == before


@pytest.mark.parametrize("how", ["gone", "empty"])
def test_files_whose_job_database_is_gone_are_set_aside(
    tmp_path: Path, opened: Opener, how: str
) -> None:
    """A full disk leaves an empty job database."""
    folder = tmp_path / "s"
    store = opened()
    file = kept(store)
    store.close()
    (folder / "catalogue.db").unlink()
    if how == "empty":
        (folder / "catalogue.db").touch()
    leave_drafts(folder / "drafts")
    store = opened()
    assert list((folder / "drafts").iterdir()) == []
    assert store.media.find(file.name) is None
    (aside,) = folder.glob("media.without-catalogue.*")
    assert (aside / file.name[:2] / file.name).read_bytes() == b"bytes"
    again = kept(store)
    assert store.media.find(again.name) == again


@pytest.mark.parametrize(
    "damaged",
    [
        lambda _: b"garbage" * 1000,
        lambda _: b"SQLite format 3\0" + b"\xff" * 5000,
        lambda whole: whole[: len(whole) // 2],
        lambda whole: whole[:5000],
        lambda whole: whole[:50],
        lambda whole: whole[:4096] + bytes(len(whole) - 4096),
    ],
)
def test_a_damaged_job_database_is_refused_with_advice(
    tmp_path: Path, damaged: Callable[[bytes], bytes], opened: Opener
) -> None:
    """Every file stays in its place."""
    folder = tmp_path / "s"
    store = opened()
    file = kept(store)
    store._database.execute("PRAGMA synchronous = OFF")
    for _ in range(200):
        store.jobs.add(job_of())
    store.close()
    path = folder / "catalogue.db"
    path.write_bytes(damaged(path.read_bytes()))
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"catalogue\.db.*(?i:backup)"):
        opened()
    assert path.read_bytes() == before
    assert (folder / "media" / file.name[:2] / file.name).read_bytes() == b"bytes"


def test_a_store_of_another_account_is_refused(tmp_path: Path) -> None:
    """The message names the expected owner, and nothing is deleted."""
    media, folders = [], []
    for name in ("catalogue.db", ".", "media", "drafts"):
        folder = tmp_path / f"s{len(folders)}"
        store = Store(folder)
        file = kept(store)
        store.close()
        folders.append(folder)
        media.append(folder / "media" / file.name[:2] / file.name)
        for one in (folder, *folder.rglob("*")):
            os.chown(one, 65534, 65534)
        os.chown(folder / name, 0, 0)
        (folder / name).chmod(0o700 if (folder / name).is_dir() else 0o600)
    code = (
        "import os, pathlib, sys, encodings.ascii; from polymux.service.store import Store\n"
        "from polymux.service.errors import StoreError\n"
        "os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "for folder in sys.argv[1:]:\n"
        "    try: Store(pathlib.Path(folder))\n"
        "    except StoreError as error: print(error)"
    )
    for one in folders[0].parents:
        if one != one.parent and one.stat().st_uid == os.geteuid():
            one.chmod(one.stat().st_mode | 0o005)
    command = [sys.executable, "-c", code, *map(str, folders)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert ["65534" in line for line in done.stdout.splitlines()] == [True] * len(folders)
    assert "Traceback" not in done.stdout + done.stderr
    assert [one.read_bytes() for one in media] == [b"bytes"] * len(folders)


def test_a_newer_job_database_is_refused(tmp_path: Path, opened: Opener) -> None:
    opened().close()
    connection = sqlite3.connect(tmp_path / "s" / "catalogue.db")
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(StoreError, match=r"\b99\b"):
        opened()


def test_a_migration_that_fails_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opener
) -> None:
    store = opened()
    file = kept(store)
    store.close()
    broken = "ALTER TABLE jobs ADD COLUMN later TEXT; ALTER TABLE nowhere ADD COLUMN x TEXT"
    monkeypatch.setattr(database, "MIGRATIONS", (*database.MIGRATIONS, broken))
    for second in range(5):
        at = time.struct_time((2026, 1, 2, 3, 4, second, 4, 2, 0))
        monkeypatch.setattr(time, "gmtime", lambda at=at: at)
        with pytest.raises(StoreError):
            opened()
    # Repeated starts keep three backups and do not fill the disk.
    backups = sorted(one.name for one in (tmp_path / "s").glob("catalogue.db.version-*"))
    assert [one.split(".")[3] for one in backups] == [f"20260102-03040{n}" for n in (2, 3, 4)]
    monkeypatch.undo()
    store = opened()
    assert store.media.find(file.name) == file


def test_a_second_process_is_refused(tmp_path: Path, opened: Opener) -> None:
    store = opened()
    code = (
        "import sys, pathlib; from polymux.service.store import Store\n"
        "from polymux.service.errors import StoreError\n"
        "try: Store(pathlib.Path(sys.argv[1]))\n"
        "except StoreError as error: print(error)"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "s")]
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert str(os.getpid()) in output
    store.close()
    assert subprocess.run(command, capture_output=True, text=True, check=True).stdout == ""


def test_a_full_store_refuses_and_has_room_again(opened: Opener) -> None:
    clock = Clock()
    store = opened(max_bytes=100, life_s=60, clock=clock)
    kept(store, b"x" * 60)
    with pytest.raises(InternalServerError, match=r"\b100\b.*\b60\b.*\b41\b") as refused:
        store.media.draft(41)
    assert (refused.value.status, refused.value.code) == (507, "storage_full")
    with store.media.draft(40) as draft, pytest.raises(InternalServerError):
        draft.reserve(41)
    assert store.media.used_bytes == 60
    clock.now += 61
    assert store.media.sweep() == 1
    assert store.media.used_bytes == 0
    kept(store, b"x" * 100)


def test_a_link_in_the_place_of_a_draft_is_not_followed(opened: Opener) -> None:
    store = opened()
    draft = store.media.draft()
    draft.path.symlink_to("/etc/passwd")
    with pytest.raises(StoreError):
        draft.seal()


def test_expired_files_are_gone_while_a_reader_reads_on(opened: Opener) -> None:
    clock = Clock()
    store = opened(life_s=60, clock=clock)
    file = kept(store)
    with os.fdopen(store.media.open(file), "rb") as reader:
        clock.now += 60
        assert store.media.find(file.name) is None
        assert store.sweep() == 1
        assert reader.read() == b"bytes"
    assert not store.media.path_of(file).exists()


def test_jobs_are_listed_newest_first_in_pages(opened: Opener) -> None:
    store = opened()
    ids = [store.jobs.add(job_of()).id for _ in range(5)]
    store.jobs.add(job_of("bob"))
    first, following = store.jobs.newest("alice", before=None, most=2)
    assert [one.id for one in first] == ids[:2:-1]
    second, following = store.jobs.newest("alice", before=following, most=2)
    third, end = store.jobs.newest("alice", before=following, most=2)
    assert [one.id for one in second + third] == ids[2::-1]
    assert end is None


def test_what_ran_in_a_process_that_is_gone_has_failed(opened: Opener) -> None:
    store = opened(clock=Clock(1_800_000_002.0))
    job = store.jobs.add(job_of(status="processing", idempotency=("k", "h")))
    done = store.jobs.add(
        job_of(status="succeeded", completed_at=1_800_000_001.0, logs=["a"], metrics={"x": 1.5})
    )
    store.close()
    store = opened(clock=Clock(1_800_000_002.0))
    found = store.jobs.find(job.id)
    assert found is not None
    assert (found.status, found.error and found.error["code"]) == ("failed", "interrupted")
    assert found.completed_at is not None
    assert store.jobs.find(done.id) == done
    # No client got a result, so the request may be repeated.
    again = job_of(idempotency=("k", "h"))
    assert store.jobs.add(again).id == again.id


@pytest.mark.parametrize("how", ["sweep", "forget"])
@pytest.mark.parametrize("room", ["theirs", "none"])
def test_on_a_full_disk_files_make_the_room_to_forget_them(
    monkeypatch: pytest.MonkeyPatch, how: str, room: str, opened: Opener
) -> None:
    """If their space is not enough, the files are still removed, also after a restart."""
    clock = Clock()
    store = opened(life_s=60, clock=clock)
    job = store.jobs.add(job_of(status="succeeded", completed_at=clock()))
    files = [kept(store, job=job.id) for _ in range(3)]
    paths = [store.media.path_of(one) for one in files]
    execute = store._database.execute

    def full(statement: str, *values: Any) -> int:
        if statement.startswith("DELETE") and (room == "none" or any(map(Path.exists, paths))):
            raise storage_full("the disk of the job database is full")
        return execute(statement, *values)

    if how == "sweep":
        clock.now += 61
    with monkeypatch.context() as now:
        now.setattr(store._database, "execute", full)
        tried = store.sweep if how == "sweep" else lambda: store.forget(job.id)
        if room == "none":
            with pytest.raises(InternalServerError):
                tried()
            assert store.media.used_bytes == 15
            with pytest.raises(FileNotFoundError):
                store.media.open(files[0])
        else:
            tried()
            assert store.media.used_bytes == 0
            assert store.jobs.find(job.id) is None
    assert not any(map(Path.exists, paths))
    store.close()
    store = opened(life_s=60, clock=clock)
    assert [store.media.find(one.name) for one in files] == [None] * 3
    assert store.media.used_bytes == 0


def test_links(tmp_path: Path) -> None:
    clock = Clock()
    path = tmp_path / "secrets"
    links = UrlSigner(path, clock=clock)
    assert path.stat().st_mode & 0o777 == 0o600
    expires, signature = parts_of(links.query("/media/a", clock() + 60))
    assert links.accepts("/media/a", expires, signature)
    assert not links.accepts("/media/b", expires, signature)
    assert not links.accepts("/media/a", str(int(expires) + 1), signature)
    for wrong in (signature[:-1], signature + "A", "", "\u00e9", signature.lower()):
        assert not links.accepts("/media/a", expires, wrong)
    for wrong in ("", "-1", "1e9", "\u0661", "9" * 13, f" {expires}"):
        assert not links.accepts("/media/a", wrong, signature)
    # A new process reads the same secrets. A link survives one rotation, but not two.
    again = UrlSigner(path, clock=clock)
    assert again.accepts("/media/a", expires, signature)
    again.rotate(now=True)
    assert again.accepts("/media/a", expires, signature)
    again.rotate(now=True)
    assert not again.accepts("/media/a", expires, signature)
    assert links.accepts("/media/a", expires, signature)
    clock.now += 60
    assert not links.accepts("/media/a", expires, signature)
