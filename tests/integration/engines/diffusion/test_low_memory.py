"""Generation with little memory: slicing, offloading, unloading and estimates.

Offloading uses the hooks of diffusers and accelerate with the CPU in place of the GPU, so weights
move as they would on a GPU.
"""

from __future__ import annotations

import inspect
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.engines.base import Cancelled
from polymux.engines.diffusion import images
from polymux.engines.diffusion.pipelines import PipelineManager
from support import diffusion, diffusion_models
from support.diffusion import HeardSink
from support.lazy_imports import diffusers, torch

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine

SMALL = {"width": 64, "height": 64, "num_inference_steps": 2, "seed": 1, "prompt": "a house"}


def painted(engine: DiffusionEngine, sink: HeardSink, **given: Any) -> numpy.ndarray[Any, Any]:
    asked = diffusion.request("generate_image", "B", **SMALL | given)
    output = engine.run(asked, sink, diffusion.token())
    return numpy.asarray(Image.open(output.value[0].path)).astype(int)


def offloading(monkeypatch: pytest.MonkeyPatch) -> None:
    """Offload to the CPU in the way a GPU's parts would be."""
    import accelerate

    def place(_: PipelineManager, pipeline: Any) -> str:
        pipeline.enable_sequential_cpu_offload()
        return "sequential"

    def offload(model: Any, _: Any, **others: Any) -> Any:
        # diffusers passes a device index, which a CPU does not have.
        return plain(model, torch.device("cpu"), **others)

    plain = accelerate.cpu_offload
    monkeypatch.setattr(accelerate, "cpu_offload", offload)
    for name in ("enable_model_cpu_offload", "enable_sequential_cpu_offload"):
        # Loading LoRA weights calls these methods again with the default accelerator.
        method = getattr(diffusers.DiffusionPipeline, name)
        on_processor = partialmethod(method, device="cpu")
        monkeypatch.setattr(diffusers.DiffusionPipeline, name, on_processor)
    monkeypatch.setattr(PipelineManager, "_place", place)


def test_weights_of_a_request_and_cancelling_under_offload(
    every: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = diffusion.upload(diffusion_models.lora(tmp_path / "lora", every["picture:B"]))
    engine = diffusion.engine(every, device="cpu")
    sink = HeardSink(tmp_path)
    plain = painted(engine, sink)
    with_it = painted(engine, sink, replicate_weights_file=file, lora_scale=1.0)
    offloading(monkeypatch)
    found = painted(engine, sink, replicate_weights_file=file, lora_scale=1.0)
    assert (found == with_it).all()
    assert (found != plain).any()
    token = diffusion.token()
    asked = diffusion.request("generate_image", "B", **SMALL | {"num_inference_steps": 20})
    with pytest.raises(Cancelled):
        engine.run(asked, HeardSink(tmp_path, lambda _: token.cancel()), token)
    assert (painted(engine, sink) == plain).all()
    # The weights are on their original device.
    for name, one in engine.manager.parts("picture:B").items():
        if isinstance(one, torch.nn.Module):
            assert {value.device.type for value in one.state_dict().values()} == {"cpu"}, name
            assert not any(hasattr(module, "_hf_hook") for module in one.modules()), name


def test_what_does_not_fit_is_offloaded_once_others_have_left(
    every: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The decision by the GPU's free memory, with given numbers."""
    manager = diffusion.engine(every, device="cpu").manager
    for role in ("picture:B", "picture:C"):
        manager.parts(role)
    taken = inspect.signature(diffusers.StableDiffusionXLPipeline).parameters
    parts = manager.parts("picture:B").items()
    pipeline = diffusers.StableDiffusionXLPipeline(
        **{name: one for name, one in parts if name in taken}
    )
    nets = [one for one in pipeline.components.values() if isinstance(one, torch.nn.Module)]
    sizes = [sum(one.numel() * one.element_size() for one in net.parameters()) for net in nets]
    left: list[Any] = []
    moved = torch.nn.Module.to
    idle = manager.parts("picture:C")["unet"]
    monkeypatch.setattr(idle, "to", lambda where: left.append(where) or moved(idle, where))
    for free, how, others_left in (
        (2 * sum(sizes), "none", 0),
        (max(sizes) * 2, "model", 1),
        (max(sizes) // 2, "sequential", 2),
    ):
        monkeypatch.setattr(manager, "_free_bytes", lambda free=free: free)
        assert manager._fitting(pipeline) == how
        assert left == ["cpu"] * others_left
    # Other models are unloaded first. The free memory after that decides.
    answers = iter([0, 2 * sum(sizes)])
    monkeypatch.setattr(manager, "_free_bytes", lambda: next(answers))
    assert manager._fitting(pipeline) == "none"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "meta"}, "cuda:N"),
        ({"dtype": "int8"}, "bfloat16"),
        ({"attention": "flash"}, "sliced"),
        ({"offload": "disk"}, "sequential"),
    ],
)
def test_what_there_is_not_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.NoBackendError, match=words):
        PipelineManager(options)


def test_a_decoder_that_was_widened_is_narrow_again(every: dict[str, Path], tmp_path: Path) -> None:
    """A cancellation while SDXL's decoder has single precision must not affect the next image."""
    member = {"path": str(every["picture:B"]), "name": "tiny"}
    # An engine would measure the device, and CPUs are slow in half precision.
    manager = PipelineManager(
        {"models": {"picture:B": member}, "dtype": "float16", "previews": False}
    )
    vae = manager.parts("picture:B")["vae"]
    vae.register_to_config(force_upcast=True)
    token = diffusion.token()
    seen = []

    def cancel(*_: Any) -> None:
        seen.append(vae.dtype)
        token.cancel()

    asked = diffusion.request("generate_image", "B", **SMALL | {"num_inference_steps": 1})
    hook = vae.decoder.register_forward_pre_hook(cancel)
    with pytest.raises(Cancelled):
        images.make(manager, asked, HeardSink(tmp_path), token)
    hook.remove()
    assert seen == [torch.float32]
    assert vae.dtype == torch.float16
    made = images.make(manager, asked, HeardSink(tmp_path), diffusion.token())
    with Image.open(made.value[0].path) as picture:
        assert picture.size == (64, 64)
