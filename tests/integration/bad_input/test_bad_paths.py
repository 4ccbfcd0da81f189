"""Inputs and outputs that are not regular files, and names with special meaning."""

from __future__ import annotations

import errno
import os
import resource
import signal
import stat
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from support.hostile import Clips


@pytest.fixture
def source(clips: Clips, tmp_path: Path) -> Path:
    path = tmp_path / "input.wav"
    path.write_bytes(clips.data("wav"))
    return path


def made(kind: str, folder: Path) -> Path:
    """Create a path that is not a regular file."""
    path = folder / kind
    if kind == "folder":
        path.mkdir()
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "through a file":
        path.write_bytes(b"")
        path = path / "inside.wav"
    return Path("/dev/zero") if kind == "device" else path


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("missing", polymux.InputNotFoundError),
        ("folder", polymux.InputUnreadableError),
        ("pipe", polymux.InputUnreadableError),
        ("device", polymux.InputUnreadableError),
        ("through a file", polymux.InputError),
        ("loop", polymux.InputUnreadableError),
    ],
)
def test_inputs_that_are_no_files(kind: str, error: type[Exception], tmp_path: Path) -> None:
    path = made(kind, tmp_path)
    destination = tmp_path / "out.mp3"
    with pytest.raises(error) as caught:
        polymux.convert_to_mp3(path, destination)
    assert path.name in str(caught.value)
    assert not destination.exists()
    with pytest.raises(error):
        polymux.probe(path)


def _in_child(call: str, prepare: Callable[[], object]) -> str:
    """The name of the exception that `call` raises in a forked child after `prepare`, or "none"."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        answer = "none"
        try:
            prepare()
            eval(call, {"polymux": polymux})  # The code is a constant of this module.
        except BaseException as error:  # The test compares the type of any exception.
            answer = type(error).__name__
        os.write(writer, answer.encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)
    with os.fdopen(reader, "rb") as pipe:
        return pipe.read().decode()


def test_an_output_that_is_the_input(source: Path, tmp_path: Path) -> None:
    before = source.read_bytes()
    other_name = tmp_path / "other-name.wav"
    other_name.hardlink_to(source)
    for destination in (source, other_name, tmp_path / "." / "input.wav"):
        with pytest.raises(polymux.OutputRefusedError):
            polymux.convert_to_mp3(source, destination)
    assert source.read_bytes() == before
    assert sorted(path.name for path in tmp_path.iterdir()) == ["input.wav", "other-name.wav"]


def test_an_output_that_exists(clips: Clips, source: Path, tmp_path: Path) -> None:
    """An existing output remains if overwrite=False or on failure. Its mode never changes."""
    destination = tmp_path / "out.mp3"
    destination.write_bytes(b"precious")
    destination.chmod(0o640)
    with pytest.raises(polymux.OutputExistsError, match=r"out\.mp3"):
        polymux.convert_to_mp3(source, destination, overwrite=False)
    with pytest.raises(polymux.MediaError):
        polymux.convert_to_mp3(clips.data("m4a")[:1000], destination)
    assert destination.read_bytes() == b"precious"
    assert len(list(tmp_path.iterdir())) == 2
    polymux.convert_to_mp3(source, destination)
    assert destination.read_bytes() == polymux.convert_to_mp3(source).read()
    assert stat.S_IMODE(destination.stat().st_mode) == 0o640


@pytest.mark.parametrize("kind", ["folder", "pipe", "device"])
def test_outputs_that_are_no_files(kind: str, source: Path, tmp_path: Path) -> None:
    destination = made(kind, tmp_path)
    before = sorted(tmp_path.rglob("*"))
    with pytest.raises(polymux.OutputRefusedError):
        polymux.convert_to_mp3(source, destination)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_full_disk(source: Path, tmp_path: Path) -> None:
    place = tmp_path / "small"
    place.mkdir()
    destination = place / "out.mp3"
    large = f"polymux.convert_to_mp3({str(source)!r}, {str(destination)!r}, bitrate='320k')"
    mount = ["mount", "-t", "tmpfs", "-o", "size=16k", "polymux-test", str(place)]
    mounted = subprocess.run(mount, capture_output=True, check=False).returncode == 0
    try:
        # Without the permission to mount, a file size limit simulates a small disk.
        outcome = _in_child(large, (lambda: None) if mounted else _limit_file_size)
        assert outcome == "OutputFailedError"
        assert list(place.iterdir()) == []
        # After the failure the space is free again, so a smaller conversion succeeds.
        small = large.replace("'320k'", "'32k', sample_rate=22050, channels=1")
        assert _in_child(small, (lambda: None) if mounted else _limit_file_size) == "none"
        assert [path.name for path in place.iterdir()] == ["out.mp3"]
    finally:
        if mounted:
            subprocess.run(["umount", str(place)], check=True)


def _limit_file_size() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, 16_384))


def test_a_full_disk_behind_a_file_object(source: Path) -> None:
    with Path("/dev/full").open("wb", buffering=0) as full, pytest.raises(OSError) as caught:
        polymux.convert_to_mp3(source, full)
    assert caught.value.errno == errno.ENOSPC
    assert not isinstance(caught.value, polymux.PolymuxError)
