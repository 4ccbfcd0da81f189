from __future__ import annotations

import errno
import os
import pickle
from pathlib import Path

import polymux
import pytest
from polymux.media.media_file import ConversionOutcome
from polymux.media.results import report_from_native
from unit.test_values import REPORT

MP3 = b"ID3 not really an MP3 \x00\xff"


def report(size: int = len(MP3)) -> polymux.ConversionReport:
    return report_from_native({**REPORT, "bytes": size})


@pytest.fixture
def in_memory() -> polymux.MediaFile:
    return polymux.MediaFile(report(), data=MP3)


def on_disk(path: Path) -> polymux.MediaFile:
    path.write_bytes(MP3)
    return polymux.MediaFile(report(), path=path)


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_in_memory(in_memory: polymux.MediaFile) -> None:
    assert in_memory.read() == in_memory.data == MP3
    assert in_memory.path is None
    assert in_memory.size_bytes == len(MP3)
    assert in_memory.content_type == "audio/mpeg"
    assert "not really" not in repr(in_memory)
    assert pickle.loads(pickle.dumps(in_memory)) == in_memory


def test_on_disk_and_given_away(tmp_path: Path) -> None:
    file = on_disk(tmp_path / "a.mp3")
    assert (file.data, file.read()) == (None, MP3)
    (tmp_path / "a.mp3").unlink()
    with pytest.raises(FileNotFoundError):
        file.read()
    with pytest.raises(polymux.InvalidRequestError):
        polymux.MediaFile(report()).read()


@pytest.mark.parametrize("convert", [str, Path, os.fsencode])
def test_save(in_memory: polymux.MediaFile, tmp_path: Path, convert: type) -> None:
    path = in_memory.save(convert(tmp_path / "out.mp3"), overwrite=False)
    assert path == tmp_path / "out.mp3"
    assert path.read_bytes() == MP3
    umask = os.umask(0)
    os.umask(umask)
    assert path.stat().st_mode & 0o777 == 0o666 & ~umask
    path.write_bytes(b"old")
    path.chmod(0o640)
    with pytest.raises(polymux.OutputExistsError, match=r"out\.mp3") as caught:
        in_memory.save(path, overwrite=False)
    assert caught.value.errno == errno.EEXIST
    assert path.read_bytes() == b"old"
    in_memory.save(path)
    assert path.read_bytes() == MP3
    assert path.stat().st_mode & 0o777 == 0o640
    assert left_in(tmp_path) == ["out.mp3"]


def test_save_onto_itself_changes_nothing(tmp_path: Path) -> None:
    file = on_disk(tmp_path / "a.mp3")
    before = (tmp_path / "a.mp3").stat()
    assert file.save(tmp_path / "a.mp3") == tmp_path / "a.mp3"
    assert (tmp_path / "a.mp3").stat().st_ino == before.st_ino


def test_save_refuses_what_is_no_file(in_memory: polymux.MediaFile, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"precious")
    (tmp_path / "link.mp3").symlink_to(tmp_path / "target")
    os.mkfifo(tmp_path / "pipe.mp3")
    for path in (tmp_path, tmp_path / "link.mp3", tmp_path / "pipe.mp3", Path("/dev/null")):
        with pytest.raises(polymux.OutputRefusedError):
            in_memory.save(path)
    assert (tmp_path / "target").read_bytes() == b"precious"
    assert left_in(tmp_path) == ["link.mp3", "pipe.mp3", "target"]


def test_save_failures_are_typed(
    in_memory: polymux.MediaFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "old.mp3").write_bytes(b"old")
    (tmp_path / "read-only.mp3").write_bytes(b"keep")
    (tmp_path / "read-only.mp3").chmod(0o444)

    def full_disk(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full_disk)
    for name, number in [
        ("missing/out.mp3", errno.ENOENT),
        ("x" * 300 + ".mp3", errno.ENAMETOOLONG),
        ("read-only.mp3", errno.EACCES),
        ("old.mp3", errno.ENOSPC),
    ]:
        with pytest.raises(polymux.OutputFailedError) as caught:
            in_memory.save(tmp_path / name)
        assert caught.value.errno == number
    assert left_in(tmp_path) == ["old.mp3", "read-only.mp3"]
    assert (tmp_path / "old.mp3").read_bytes() == b"old"


def test_outcome(in_memory: polymux.MediaFile) -> None:
    good = ConversionOutcome(0, b"x" * 10_000, in_memory, None)
    assert good.ok
    assert good.unwrap() is in_memory
    assert len(repr(good)) < 1000
    error = polymux.NoAudioError("silent")
    bad = ConversionOutcome(1, "a.wav", None, error)
    assert not bad.ok
    with pytest.raises(polymux.NoAudioError) as caught:
        bad.unwrap()
    assert caught.value is error
