"""Model folders: loading, sharing and errors."""

from __future__ import annotations

import json
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import pytest
from polymux import errors
from polymux.engines.diffusion import folders
from polymux.engines.diffusion.pipelines import PipelineManager
from support import diffusion
from support.lazy_imports import torch

if TYPE_CHECKING:
    from pathlib import Path


class Trap:
    """Creates a file when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (open, (str(self.path), "w"))


@pytest.fixture
def own(models: dict[str, Path], tmp_path: Path) -> Path:
    """A copy of a model that the test may change."""
    return shutil.copytree(models["picture:B"], tmp_path / "own")


def test_pickles_are_never_opened(own: Path, tmp_path: Path) -> None:
    for one in own.rglob("*.safetensors"):
        name = one.name.replace("safetensors", "bin")
        (one.parent / {"model.bin": "pytorch_model.bin"}.get(name, name)).write_bytes(
            pickle.dumps(Trap(tmp_path / "sprung"))
        )
        one.unlink()
    with pytest.raises(errors.NoBackendError, match="pickle"):
        folders.loaded(own, torch.float32)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unet": ["os", "system"]}, "unet"),
        ({"unet": ["../evil", "Net"]}, "unet"),
        ({"_class_name": "NoSuchPipeline"}, "NoSuchPipeline"),
        ({"_class_name": ["evil.py", "Pipeline"]}, "model_index.json"),
    ],
)  # fmt: skip
def test_an_index_names_nothing_foreign(own: Path, change: dict[str, Any], words: str) -> None:
    index = own / "model_index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | change))
    with pytest.raises(errors.NoBackendError, match=words):
        folders.loaded(own, torch.float32)


@pytest.mark.parametrize("content", [b"", b"[]", b'{"a": 1}', b"\xff\xfe"])
def test_an_index_that_is_none_is_refused(own: Path, content: bytes) -> None:
    (own / "model_index.json").write_bytes(content)
    with pytest.raises(errors.NoBackendError, match="model_index"):
        folders.index_of(own)


@pytest.mark.parametrize("size", [0, 100])
def test_cut_weights_are_refused_without_a_path(own: Path, size: int) -> None:
    weights = next((own / "unet").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:size])
    with pytest.raises(errors.NoBackendError, match=r"\bown\b") as caught:
        folders.loaded(own, torch.float32)
    assert str(own) not in str(caught.value)


def test_parts_are_loaded_once_and_shared(models: dict[str, Path]) -> None:
    manager = diffusion.engine(models).manager
    assert manager.parts("picture:A")["unet"] is manager.parts("picture:B")["unet"]
    assert manager.is_loaded("picture:A")


def test_memory_that_is_short_is_made_by_giving_up_the_oldest(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = diffusion.engine(models).manager
    for role in ("picture:B", "picture:C"):
        manager.parts(role)
        assert manager.is_loaded(role)
    del manager._loaded[manager.slot("picture:C").path]
    monkeypatch.setattr("polymux._util.memory.machine_free_bytes", lambda: 1)
    manager.parts("picture:C")
    assert not manager.is_loaded("picture:B")
    assert manager.is_loaded("picture:C")


def test_a_device_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        assert PipelineManager({"device": "cuda"}).device.type == "cuda"
        return
    with pytest.raises(errors.NoBackendError, match="cuda"):
        PipelineManager({"device": "cuda"})
