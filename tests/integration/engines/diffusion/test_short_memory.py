"""What is done where memory is short: slices, offload, what leaves the device, what is counted.

Offload is diffusers' and accelerate's own, with the processor in the place of the GPU: parts come
and go by the same hooks, and weights lie where they would lie.
"""

from __future__ import annotations

import inspect
import shutil
from functools import partialmethod
from typing import TYPE_CHECKING, Any

import accelerate
import numpy
import pytest
import torch
from diffusers import DiffusionPipeline, StableDiffusionXLPipeline
from PIL import Image
from polymux import errors
from polymux.engines.base import Cancelled
from polymux.engines.diffusion import images
from polymux.engines.diffusion.pipelines import PipelineManager
from polymux.models.diffusion_folders import weight_bytes
from support import diffusing, diffusion_models
from support.diffusing import HeardSink
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine

SMALL = {"width": 64, "height": 64, "num_inference_steps": 2, "seed": 1, "prompt": "a house"}


class Largest(TorchDispatchMode):
    """How many numbers the largest tensor has that comes of any of torch's operations."""

    def __init__(self) -> None:
        super().__init__()
        self.numbers = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        if isinstance(made, torch.Tensor):
            self.numbers = max(self.numbers, made.numel())
        return made


def painted(engine: DiffusionEngine, sink: HeardSink, **given: Any) -> numpy.ndarray[Any, Any]:
    asked = diffusing.request("generate_image", "B", **SMALL | given)
    output = engine.run(asked, sink, diffusing.token())
    return numpy.asarray(Image.open(output.value[0].path)).astype(int)


def offloading(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    """As a GPU's parts would come and go, on the processor."""

    def place(_: PipelineManager, pipeline: Any) -> str:
        if how == "model":
            pipeline.enable_model_cpu_offload()
        else:
            pipeline.enable_sequential_cpu_offload()
        return how

    def offload(model: Any, _: Any, **others: Any) -> Any:
        # Diffusers numbers the device, and a processor has no numbers.
        return plain(model, torch.device("cpu"), **others)

    plain = accelerate.cpu_offload
    monkeypatch.setattr(accelerate, "cpu_offload", offload)
    for name in ("enable_model_cpu_offload", "enable_sequential_cpu_offload"):
        # What loads LoRA weights calls them again, with the accelerator that there is.
        method = getattr(DiffusionPipeline, name)
        on_processor = partialmethod(method, device="cpu")
        monkeypatch.setattr(DiffusionPipeline, name, on_processor)
    monkeypatch.setattr(PipelineManager, "_place", place)


@pytest.mark.parametrize("how", ["model", "sequential"])
def test_weights_of_a_request_and_cancelling_under_offload(
    every: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    file = diffusing.upload(diffusion_models.lora(tmp_path / "lora", every["picture:B"]))
    engine = diffusing.engine(every, device="cpu")
    sink = HeardSink(tmp_path)
    plain = painted(engine, sink)
    with_it = painted(engine, sink, replicate_weights_file=file, lora_scale=1.0)
    offloading(monkeypatch, how)
    found = painted(engine, sink, replicate_weights_file=file, lora_scale=1.0)
    assert (found == with_it).all()
    assert (found != plain).any()
    token = diffusing.token()
    asked = diffusing.request("generate_image", "B", **SMALL | {"num_inference_steps": 20})
    with pytest.raises(Cancelled):
        engine.run(asked, HeardSink(tmp_path, lambda _: token.cancel()), token)
    assert (painted(engine, sink) == plain).all()
    # Weights lie where they lay.
    for name, one in engine.manager.parts("picture:B").items():
        if isinstance(one, torch.nn.Module):
            assert {value.device.type for value in one.state_dict().values()} == {"cpu"}, name
            assert not any(hasattr(module, "_hf_hook") for module in one.modules()), name


@pytest.mark.usefixtures("previews_at_once")
def test_no_previews_where_the_decoder_comes_and_goes(
    every: dict[str, Path], sink: HeardSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine = diffusing.engine(every, device="cpu")
    for _ in range(2):
        painted(engine, sink)
        assert len(sink.previews) == SMALL["num_inference_steps"]
        offloading(monkeypatch, "model")


def test_what_does_not_fit_is_offloaded_once_others_have_left(
    every: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """How the GPU's free memory decides, told by numbers in its place."""
    manager = diffusing.engine(every, device="cpu").manager
    for role in ("picture:B", "picture:C"):
        manager.parts(role)
    taken = inspect.signature(StableDiffusionXLPipeline).parameters
    parts = manager.parts("picture:B").items()
    pipeline = StableDiffusionXLPipeline(**{name: one for name, one in parts if name in taken})
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
    # They leave first: what is free after that decides.
    answers = iter([0, 2 * sum(sizes)])
    monkeypatch.setattr(manager, "_free_bytes", lambda: next(answers))
    assert manager._fitting(pipeline) == "none"


def test_slices_of_attention_keep_a_smaller_matrix_and_paint_the_same(
    every: dict[str, Path], sink: HeardSink
) -> None:
    """By plain attention, which keeps a matrix of all with all for each head."""

    def largest_of(how: str) -> tuple[numpy.ndarray[Any, Any], int]:
        engine = diffusing.engine(every, attention=how, previews=False)
        heard: list[int] = []
        with sdpa_kernel(SDPBackend.MATH), Largest() as largest:
            unet = engine.manager.parts("picture:B")["unet"]
            # The decoder's pictures would be larger than what is looked at.
            hooks = (
                unet.register_forward_pre_hook(lambda *_: setattr(largest, "numbers", 0)),
                unet.register_forward_hook(lambda *_: heard.append(largest.numbers)),
            )
            picture = painted(engine, sink, width=256, height=256)
            for one in hooks:
                one.remove()
        return picture, max(heard)

    whole, sliced = largest_of("whole"), largest_of("sliced")
    assert abs(whole[0] - sliced[0]).max() <= 2
    assert sliced[1] * 2 <= whole[1]
    assert not diffusing.engine({}, attention="auto", device="cpu").manager._slices_attention()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"device": "meta"}, "must be auto, cpu, cuda or cuda:N"),
        ({"dtype": "int8"}, "must be auto, float32, float16 or bfloat16"),
        ({"attention": "flash"}, "attention='flash': must be auto, whole or sliced"),
        ({"offload": "disk"}, "offload='disk': must be auto, none, model or sequential"),
    ],
)
def test_what_there_is_not_is_refused(options: dict[str, Any], words: str) -> None:
    with pytest.raises(errors.NoBackendError, match=words):
        PipelineManager(options)


def test_a_decoder_that_was_widened_is_narrow_again(every: dict[str, Path], tmp_path: Path) -> None:
    """SDXL's works in single precision: cut short there, the next picture must not find it so."""
    member = {"path": str(every["picture:B"]), "name": "tiny"}
    # Without an engine, which would measure a processor that is slow with such numbers.
    manager = PipelineManager(
        {"models": {"picture:B": member}, "dtype": "float16", "previews": False}
    )
    vae = manager.parts("picture:B")["vae"]
    vae.register_to_config(force_upcast=True)
    token = diffusing.token()
    seen = []

    def cancel(*_: Any) -> None:
        seen.append(vae.dtype)
        token.cancel()

    asked = diffusing.request("generate_image", "B", **SMALL | {"num_inference_steps": 1})
    hook = vae.decoder.register_forward_pre_hook(cancel)
    with pytest.raises(Cancelled):
        images.make(manager, asked, HeardSink(tmp_path), token)
    hook.remove()
    assert seen == [torch.float32]
    assert vae.dtype == torch.float16
    made = images.make(manager, asked, HeardSink(tmp_path), diffusing.token())
    with Image.open(made.value[0].path) as picture:
        assert picture.size == (64, 64)


def test_memory_is_counted_by_the_width_of_numbers(models: dict[str, Path], tmp_path: Path) -> None:
    path = shutil.copytree(models["picture:B"], tmp_path / "xl")
    wide, half = (
        diffusing.engine({"picture:B": path}, dtype=one).manager for one in ("float32", "bfloat16")
    )
    whole = wide.weight_bytes("picture:B")
    assert whole == 2 * half.weight_bytes("picture:B") == weight_bytes(path, 4)
    next((path / "unet").glob("*.safetensors")).write_bytes(b"junk")
    assert half.weight_bytes("picture:B") == 0
