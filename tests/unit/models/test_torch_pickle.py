from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from polymux.errors import InvalidRequestError, MissingDependencyError, OutputFailedError
from polymux.models import torch_pickle
from polymux.models.errors import ModelError
from polymux.models.families import layout_of
from polymux.models.torch_pickle import convert
from support.lazy_imports import safetensors, torch

if TYPE_CHECKING:
    from pathlib import Path


class Runs:
    """Calls a function when it is unpickled."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.called = (function, arguments)

    def __reduce__(self) -> Any:
        return self.called


def saved(path: Path, value: Any) -> Path:
    torch.save(value, path)
    return path


def test_tensors_of_all_kinds(tmp_path: Path) -> None:
    """Views of one storage, tied weights and every type are kept; other entries are left out."""
    whole = torch.arange(12.0)
    tensors = {
        "first": whole[:6].view(2, 3), "last": whole[6:], "half": whole.half(), "one": whole[3],
        "words": torch.arange(5), "rough": whole.bfloat16(), "none": torch.empty(0, 4),
        "bits": torch.tensor([True, False]), "own": torch.nn.Parameter(whole.clone()),
        "tied": whole, "turned": whole.view(3, 4).t(),
    }  # fmt: skip
    source = saved(tmp_path / "w.bin", {"state_dict": tensors, "epoch": 3})
    convert(source, tmp_path / "w.safetensors")
    found = safetensors.load_file(tmp_path / "w.safetensors")
    assert found.keys() == tensors.keys()
    assert all(torch.equal(found[name], one) for name, one in tensors.items())
    assert all(found[name].dtype == one.dtype for name, one in tensors.items())
    assert "torch" not in subprocess.check_output(
        [sys.executable, "-c", "import polymux.models.torch_pickle, sys; print(*sys.modules)"]
    ).decode().split()  # fmt: skip


def test_nothing_runs(tmp_path: Path) -> None:
    sprung = tmp_path / "sprung"
    source = saved(tmp_path / "w", {"a": torch.zeros(1), "b": Runs(os.system, f"touch {sprung}")})
    with pytest.raises(ModelError, match=r"w of r\b.*posix\.system"):
        convert(source, tmp_path / "out", "w of r")
    assert not sprung.exists()
    assert not (tmp_path / "out").exists()


def test_a_small_file_does_not_become_a_large_one(tmp_path: Path) -> None:
    source = saved(tmp_path / "w", {"a": torch.zeros(1).expand(1 << 40)})
    with pytest.raises(ModelError, match="4398"):
        convert(source, tmp_path / "out")
    packed = tmp_path / "packed"
    with zipfile.ZipFile(source) as plain, zipfile.ZipFile(packed, "w", 8) as made:
        for name in plain.namelist():
            made.writestr(name, plain.read(name))
    with pytest.raises(ModelError, match=r"(?i)compressed"):
        convert(packed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_a_small_file_does_not_fill_the_memory(tmp_path: Path) -> None:
    tensors = {"a": torch.zeros(1)}
    allowed = saved(tmp_path / "allowed", tensors | {"b": Runs(bytearray, 1 << 20)})
    convert(allowed, tmp_path / "out")
    refused = saved(tmp_path / "refused", tensors | {"b": Runs(bytearray, 2 << 30)})
    with pytest.raises(ModelError):
        convert(refused, tmp_path / "refused.safetensors")


def test_a_damaged_file(tmp_path: Path) -> None:
    source = saved(tmp_path / "w", {"a": torch.zeros(100)})
    source.write_bytes(source.read_bytes()[:200])
    with pytest.raises(ModelError):
        convert(source, tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_what_is_missing_is_reported_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Usage(NamedTuple):
        free: int

    source = saved(tmp_path / "w", {"a": torch.zeros(100)})
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10))
    with pytest.raises(OutputFailedError, match=r"1\.\d kB.*\b10 B\b"):
        convert(source, tmp_path / "out")
    monkeypatch.setattr(torch_pickle, "find_spec", lambda name: None)
    with pytest.raises(MissingDependencyError, match=r"torch.*'polymux\[diffusion\]'"):
        convert(source, tmp_path / "out")


@pytest.mark.parametrize("name", ["w.bin", "w.ckpt"])
def test_pickles_of_your_own_are_refused(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(b"anything")
    for family in (None, "diffusion"):
        with pytest.raises(InvalidRequestError, match=rf"{name}\b.*safetensors"):
            layout_of(path, family)
