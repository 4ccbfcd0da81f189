"""Torch's old files are read as data: what is in a pickle beside numbers is never run."""

from __future__ import annotations

import pickle
import struct
import zipfile
from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import pytest
from polymux.models.failures import ModelError
from polymux.models.pickled import convert

if TYPE_CHECKING:
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
        ("polymux.models.pickled", "convert"),
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
