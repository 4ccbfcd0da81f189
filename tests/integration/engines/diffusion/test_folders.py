"""Folders of models: what is loaded, what is shared, what is refused."""

from __future__ import annotations

import json
import pickle
import shutil
from typing import TYPE_CHECKING, Any

import pytest
import torch
from polymux import errors
from polymux.engines.diffusion import calibration, folders
from polymux.engines.diffusion.pipelines import PipelineManager
from support import diffusing

if TYPE_CHECKING:
    from pathlib import Path


class Trap:
    """Leaves a file behind when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> Any:
        return (open, (str(self.path), "w"))


@pytest.fixture
def own(models: dict[str, Path], tmp_path: Path) -> Path:
    """A model of this test's own."""
    return shutil.copytree(models["picture:B"], tmp_path / "own")


def test_pickles_are_never_opened(own: Path, tmp_path: Path) -> None:
    for one in own.rglob("*.safetensors"):
        name = (
            "pytorch_model.bin"
            if one.name == "model.safetensors"
            else one.name.replace("safetensors", "bin")
        )
        (one.parent / name).write_bytes(pickle.dumps(Trap(tmp_path / "sprung")))
        one.unlink()
    with pytest.raises(errors.NoBackendError, match="pickles, which are not supported"):
        folders.loaded(own, torch.float32)
    assert not (tmp_path / "sprung").exists()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"unet": ["os", "system"]}, "its unet is of os"),
        ({"unet": ["../evil", "Net"]}, "its unet is of ../evil"),
        ({"_class_name": "NoSuchPipeline"}, "has no NoSuchPipeline"),
        ({"_class_name": ["evil.py", "Pipeline"]}, "no model_index.json that names"),
    ],
)  # fmt: skip
def test_an_index_names_nothing_foreign(own: Path, change: dict[str, Any], words: str) -> None:
    index = own / "model_index.json"
    index.write_text(json.dumps(json.loads(index.read_text()) | change))
    with pytest.raises(errors.NoBackendError, match=words):
        folders.loaded(own, torch.float32)


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b'{"a": 1}', b"\xff\xfe"])
def test_an_index_that_is_none_is_refused(own: Path, content: bytes) -> None:
    (own / "model_index.json").write_bytes(content)
    with pytest.raises(errors.NoBackendError, match="no model_index"):
        folders.index_of(own)


@pytest.mark.parametrize("size", [0, 7, 100])
def test_cut_weights_are_refused_without_a_path(own: Path, size: int) -> None:
    weights = next((own / "unet").glob("*.safetensors"))
    weights.write_bytes(weights.read_bytes()[:size])
    with pytest.raises(errors.NoBackendError, match="own cannot be used") as caught:
        folders.loaded(own, torch.float32)
    assert str(own) not in str(caught.value)


def test_parts_are_loaded_once_and_shared(models: dict[str, Path]) -> None:
    manager = diffusing.engine(
        {"picture:A": models["picture:A"], "picture:B": models["picture:B"]}
    ).manager
    assert manager.parts("picture:A")["unet"] is manager.parts("picture:B")["unet"]
    assert manager.is_loaded("picture:A")


def test_memory_that_is_short_is_made_by_giving_up_the_oldest(
    models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    manager = diffusing.engine(
        {"picture:B": models["picture:B"], "picture:C": models["picture:C"]}
    ).manager
    manager.parts("picture:B")
    manager.parts("picture:C")
    assert manager.is_loaded("picture:B")
    assert manager.is_loaded("picture:C")
    del manager._loaded[manager.slot("picture:C").path]
    monkeypatch.setattr("polymux._util.memory.machine_free_bytes", lambda: 1)
    manager.parts("picture:C")
    assert not manager.is_loaded("picture:B")
    assert manager.is_loaded("picture:C")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "tpu"}, "must be auto, cpu, cuda or cuda:N"),
        ({"device": "meta"}, "must be auto, cpu, cuda or cuda:N"),
        ({"dtype": "int8"}, "must be auto, float32, float16 or bfloat16"),
    ],
)  # fmt: skip
def test_devices_and_numbers_that_there_are_not_are_refused(
    options: dict[str, Any], words: str
) -> None:
    with pytest.raises(errors.NoBackendError, match=words):
        PipelineManager(options)


def test_a_device_that_is_not_there_is_refused() -> None:
    if torch.cuda.is_available():
        assert PipelineManager({"device": "cuda"}).device.type == "cuda"
        return
    with pytest.raises(errors.NoBackendError, match="finds no CUDA device"):
        PipelineManager({"device": "cuda"})


def test_operations_are_counted_without_weights(models: dict[str, Path]) -> None:
    path = models["picture:B"]
    small = calibration.flops_of_pass(path, 256, 256)
    large = calibration.flops_of_pass(path, 512, 512)
    assert 3.5 < large / small < 16
    assert calibration.flops_of_decoding(path, 512, 512) == pytest.approx(
        4 * calibration.flops_of_decoding(path, 256, 256)
    )


def test_estimates_learn_from_what_work_took(models: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusing.engine({"picture:B": models["picture:B"]})
    sink = diffusing.HeardSink(tmp_path)

    def estimated(**given: Any) -> dict[str, Any]:
        values = {"prompt": "x", "width": 256, "height": 256, "num_inference_steps": 4, **given}
        asked = diffusing.request("generate_image", "B", **values)
        told = asked._replace(
            operation="estimate_generation",
            values={**asked.values, "estimated_operation": "generate_image", "has_mask": False},
        )
        value: dict[str, Any] = engine.run(told, sink, diffusing.token()).value
        return value

    before = estimated()
    assert estimated(num_outputs=2)["seconds"] == pytest.approx(2 * before["seconds"])
    assert estimated(num_inference_steps=8)["seconds"] > before["seconds"]
    assert before["memory_bytes"] > 0
    assert "1 x 4 steps of 256 x 256" in before["why"]
    asked = diffusing.request(
        "generate_image", "B", prompt="x", width=256, height=256, num_inference_steps=4
    )
    for _ in range(2):  # The first loads, which says nothing.
        engine.run(asked, sink, diffusing.token())
    after = estimated()
    # Tiny networks do far less than their layers could: that is learned.
    assert after["seconds"] > 2 * before["seconds"]
    assert after["memory_bytes"] < before["memory_bytes"]
