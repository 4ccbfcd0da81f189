"""Torch's old files are read as data: what is in a pickle beside numbers is never run."""

from __future__ import annotations

import errno
import os
import pickle
import shutil
import struct
import tracemalloc
import zipfile
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from polymux.errors import OutputFailedError
from polymux.models.errors import ModelError
from polymux.models.torch_pickle import convert

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


class Runs:
    """What a pickle asks to be called when it is read."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.called = (function, arguments)

    def __reduce__(self) -> Any:
        return self.called


def archive(path: Path, program: bytes, numbers: bytes = b"") -> Path:
    with zipfile.ZipFile(path, "w") as made:
        made.writestr("weights/data.pkl", program)
        made.writestr("weights/data/0", numbers)
    return path


def named(module: str, name: str, arguments: bytes = b")") -> bytes:
    """A program that names something and calls it."""
    return b"\x80\x02c" + f"{module}\n{name}\n".encode() + arguments + b"R."


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4, 5])
def test_calls_are_refused_before_they_happen(tmp_path: Path, protocol: int) -> None:
    sprung = tmp_path / "sprung"
    for trap in (Runs(open, str(sprung), "w"), Runs(eval, f"open({str(sprung)!r}, 'w')")):
        program = pickle.dumps({"a": trap}, protocol)
        with pytest.raises(ModelError, match="without running it"):
            convert(archive(tmp_path / "w", program), tmp_path / "out")
    assert not sprung.exists()
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("os", "system"),
        ("builtins", "getattr"),
        ("torch", "load"),
        ("torch._utils", "_rebuild_tensor_v2.__globals__"),
        ("collections", "OrderedDict.fromkeys"),
        ("polymux.models.torch_pickle", "convert"),
        ("functools", "partial"),
    ],
)
def test_names_are_refused(tmp_path: Path, module: str, name: str) -> None:
    with pytest.raises(ModelError, match="it names"):
        convert(archive(tmp_path / "w", named(module, name)), tmp_path / "out")


def test_what_is_given_cannot_be_changed(tmp_path: Path) -> None:
    """A program that puts members into the table's class, or into a function of the reading."""
    for told in (b"ccollections\nOrderedDict\n", b"ctorch._utils\n_rebuild_tensor_v2\n"):
        program = b"\x80\x02" + told + b"N}U\x06updateU\x01xs\x86b."
        with pytest.raises(ModelError):
            convert(archive(tmp_path / "w", program), tmp_path / "out")
    assert callable(OrderedDict.update)


def test_numbers_are_copied(tmp_path: Path) -> None:
    import torch
    from safetensors.torch import load_file

    state = {"a": torch.arange(6.0).reshape(2, 3), "b": torch.ones(2, dtype=torch.float16)}
    torch.save(state, tmp_path / "weights.bin")
    convert(tmp_path / "weights.bin", tmp_path / "weights.safetensors")
    found = load_file(tmp_path / "weights.safetensors")
    assert found.keys() == state.keys()
    assert all(torch.equal(found[name], one) for name, one in state.items())


@pytest.mark.parametrize("cut", [0, 10, 200])
def test_what_is_cut_is_refused(tmp_path: Path, cut: int) -> None:
    path = archive(tmp_path / "w", pickle.dumps({"a": 1}), struct.pack("<f", 1))
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(ModelError):
        convert(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


class Usage(NamedTuple):
    """What the system says of a disk."""

    total: int
    used: int
    free: int


def shared(path: Path, names: int, kind: int = zipfile.ZIP_STORED) -> Path:
    """A megabyte of zeros, packed as `kind`, under several names."""
    import torch

    one = torch.zeros(1 << 18)
    torch.save({f"w{number}": one for number in range(names)}, path)
    return packed(path, kind)


def packed(path: Path, kind: int) -> Path:
    """The same archive with its numbers packed, which torch never does and its reader takes."""
    with zipfile.ZipFile(path) as archive:
        members = {one: archive.read(one) for one in archive.namelist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data, kind if "/data/" in name else zipfile.ZIP_STORED)
    return path


@pytest.mark.parametrize("kind", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_packed_numbers_are_numbers(tmp_path: Path, kind: int) -> None:
    import torch
    from safetensors.torch import load_file

    numbers = torch.rand(1000)
    torch.save({"a": numbers, "part": numbers[100:200]}, tmp_path / "w")
    convert(packed(tmp_path / "w", kind), tmp_path / "out")
    found = load_file(tmp_path / "out")
    assert torch.equal(found["a"], numbers)
    assert torch.equal(found["part"], numbers[100:200])


@pytest.mark.parametrize("kind", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_what_torch_cannot_unpack_is_refused(tmp_path: Path, kind: int) -> None:
    """Kilobytes of them would be gigabytes of memory at once."""
    with pytest.raises(ModelError, match="packed as no file of torch's is"):
        convert(shared(tmp_path / "w", 1, kind), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_tied_weights_are_written_for_each_name(tmp_path: Path) -> None:
    """As T5 has them: one table under four names, and all that a file may be multiplied by."""
    convert(shared(tmp_path / "w", 4), tmp_path / "out")
    assert (tmp_path / "out").stat().st_size > 4 << 20


@pytest.mark.parametrize(
    ("names", "kind"),
    [(5, zipfile.ZIP_STORED), (300, zipfile.ZIP_DEFLATED), (1, zipfile.ZIP_DEFLATED)],
)
def test_little_that_would_become_much_is_refused(tmp_path: Path, names: int, kind: int) -> None:
    """Many names of the same numbers, or a megabyte out of a kilobyte: nothing is written."""
    path = shared(tmp_path / "w", names, kind)
    with pytest.raises(ModelError, match=r"it would make \d.* of the \d.* that it has"):
        convert(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_the_disk_must_have_room_for_all_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file itself would fit twice."""
    path = shared(tmp_path / "w", 3)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(9 << 20, 7 << 20, 2 << 20))
    with pytest.raises(OutputFailedError, match=r"w: 3\.1 MB .*2\.1 MB are free") as failed:
        convert(path, tmp_path / "out")
    assert failed.value.errno == errno.ENOSPC
    assert not (tmp_path / "out").exists()


def full(*_: object) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def stopped(*_: object) -> None:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("fail", "kind"), [(full, OutputFailedError), (stopped, KeyboardInterrupt)]
)
def test_what_cannot_be_written_leaves_nothing(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    fail: Callable[..., None],
    kind: type[BaseException],
) -> None:
    path = shared(tmp_path / "w", 1)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(kind):
        convert(path, tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("what", ["/data.pkl", "/data/0"])
def test_damage_is_told_as_damage(tmp_path: Path, what: str) -> None:
    """What was deflated and cannot be inflated is no traceback, and leaves no file."""
    import torch

    torch.save({"a": torch.rand(1000)}, tmp_path / "plain")
    with (
        zipfile.ZipFile(tmp_path / "plain") as plain,
        zipfile.ZipFile(tmp_path / "w", "w") as made,
    ):
        for name in plain.namelist():
            kind = zipfile.ZIP_DEFLATED if name.endswith(what) else zipfile.ZIP_STORED
            made.writestr(name, plain.read(name), kind)
        (member,) = [one for one in made.infolist() if one.filename.endswith(what)]
    data = bytearray((tmp_path / "w").read_bytes())
    # Behind its head of 30 bytes and its name; deflate has no block that begins with these bits.
    data[member.header_offset + 30 + len(member.filename)] = 0xFF
    (tmp_path / "w").write_bytes(data)
    with pytest.raises(ModelError, match=r"^w of r holds no weights.*while decompressing"):
        convert(tmp_path / "w", tmp_path / "out", "w of r")
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    with pytest.raises(ModelError, match=r"^w cannot be read: Is a directory") as failed:
        convert(tmp_path / "w", tmp_path / "out")
    assert failed.value.errno == errno.EISDIR


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "out").write_text("words")
    with pytest.raises(OutputFailedError, match="exists"):
        convert(shared(tmp_path / "w", 1), tmp_path / "out")
    (tmp_path / "w").write_text("nothing")
    with pytest.raises(ModelError):
        convert(tmp_path / "w", tmp_path / "out")
    assert (tmp_path / "out").read_text() == "words"


@pytest.mark.parametrize(
    ("name", "begin", "words"),
    [
        ("byteorder", b"little", "another byte order"),
        ("data.pkl", pickle.dumps({"a": 1}), "Bad CRC-32"),
    ],
    ids=["order", "program"],
)
def test_nothing_unpacks_into_memory(tmp_path: Path, name: str, begin: bytes, words: str) -> None:
    """More is there than is read, and than its size says where that is a lie."""
    members = {"data.pkl": pickle.dumps({"a": 1}), name: begin + bytes(160 << 20)}
    with zipfile.ZipFile(tmp_path / "w", "w", zipfile.ZIP_DEFLATED) as made:
        for one, data in members.items():
            made.writestr(f"weights/{one}", data)
        if name == "data.pkl":
            made.getinfo("weights/data.pkl").file_size = 1 << 20
    del members
    tracemalloc.start()
    try:
        with pytest.raises(ModelError, match=words):
            convert(tmp_path / "w", tmp_path / "out")
        assert tracemalloc.get_traced_memory()[1] < 140 << 20
    finally:
        tracemalloc.stop()


def test_shapes_are_of_this_world(tmp_path: Path) -> None:
    """Of no number at all, but with an axis so long that the head would be larger than a disk."""
    place = (
        b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x00\x00\x00\x00K\x00tQ"
    )
    long = b"\x8a\xff" + b"\x7f" * 255
    axes = b"(K\x00" + long + b"t"
    tensor = b"ctorch._utils\n_rebuild_tensor_v2\n(" + place + b"K\x00" + axes + b"(K\x01K\x01ttR"
    program = b"\x80\x02}X\x01\x00\x00\x00a" + tensor + b"s."
    with pytest.raises(ModelError, match="has no shape"):
        convert(archive(tmp_path / "w", program), tmp_path / "out")
