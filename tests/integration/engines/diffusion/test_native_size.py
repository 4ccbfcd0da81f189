"""Generation at a model's native size, with the small model of this repository."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from PIL import Image, ImageDraw
from polymux.engines.diffusion import calibration, estimates
from polymux.engines.diffusion.engine import DiffusionEngine
from polymux.engines.diffusion.estimates import HAS_MASK, HAS_VIDEO, IMAGE_SIZE
from polymux.engines.diffusion.native_size import drawn_mask, drawn_size
from polymux.errors import NoBackendError
from polymux.models.folder import ModelsFolder
from support import diffusion, small_models
from support.diffusion import HeardSink, picture, request
from support.weights import upscaler

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Pixels = numpy.ndarray[Any, Any]
    Paint = Callable[..., Pixels]

STAR = {"prompt": "a green star on a blue background", "seed": 3, "guidance_scale": 4.0}
NETWORK = "realesr-animevideov3-x4"


def engine(**options: Any) -> DiffusionEngine:
    made = DiffusionEngine()
    made.load({"models": small_models.assigned(), "device": "cpu", "previews": False, **options})
    return made


def opened(path: Path) -> Pixels:
    with Image.open(path) as picture:
        return numpy.asarray(picture)


def parameters(path: Path) -> str:
    """The text about the generation in a file."""
    with Image.open(path) as picture:
        text: str = picture.text["parameters"]
        return text


@pytest.fixture(scope="module")
def small() -> DiffusionEngine:
    return engine()


@pytest.fixture
def paint(small: DiffusionEngine, sink: HeardSink) -> Paint:
    def painted(variant: str = "B", **given: Any) -> Pixels:
        values = {"num_inference_steps": 2, "width": 256, "height": 256, **STAR, **given}
        output = small.run(request("generate_image", variant, **values), sink, diffusion.token())
        return opened(output.value[0].path).astype(int)

    return painted


@pytest.mark.parametrize(
    ("native", "size", "grid_px", "drawn"),
    [
        ((64, 64), (1024, 1024), 16, (64, 64)),
        ((64, 64), (64, 64), 16, (64, 64)),
        ((512, 384), (1024, 768), 64, (512, 384)),
        ((64, 64), (1024, 512), 16, (96, 48)),
        ((64, 64), (512, 1024), 16, (48, 96)),
        ((512, 512), (1280, 720), 64, (704, 384)),
        ((500, 500), (1024, 1024), 64, (512, 512)),
        ((65, 65), (64, 64), 16, (64, 64)),
        ((1, 1), (64, 64), 16, (16, 16)),
    ],
)
def test_the_nearest_aspect_ratio(
    native: tuple[int, int], size: tuple[int, int], grid_px: int, drawn: tuple[int, int]
) -> None:
    assert drawn_size(native, size, grid_px) == drawn


def test_every_size_is_drawn_near_the_native_one() -> None:
    """Never at a quarter of its pixels or at four times as many, and always on the grid."""
    sides = range(64, 2049, 31)
    for width, height in itertools.product(sides, sides):
        found = drawn_size((64, 64), (width, height), 16)
        assert not any(one % 16 or one <= 0 for one in found)
        if 1 / 4 <= width / height <= 4:
            assert 0.6 <= found[0] * found[1] / 64**2 <= 1.6
            assert 0.7 <= found[0] / found[1] / (width / height) <= 1.43


def test_small_masks_reach_the_model() -> None:
    """Every cell with a white pixel is repainted; the others are kept."""
    mask = Image.new("L", (512, 384), 0)
    mask.putpixel((511, 0), 255)
    mask.putpixel((100, 200), 3)
    found = numpy.asarray(drawn_mask(mask, (64, 48), 4))
    assert found.shape == (48, 64)
    assert numpy.unique(found).tolist() == [0, 255]
    assert (found[:4, 60:] == 255).all()
    assert (found[24:28, 12:16] == 255).all()
    assert (found > 0).sum() == 2 * 16


def test_pictures_have_the_requested_size_and_follow_the_prompt(
    paint: Paint, sink: HeardSink
) -> None:
    found = paint(width=512, height=512, num_inference_steps=15)
    assert found.shape == (512, 512, 3)
    corners = found[[5, 5, -5, -5], [5, -5, 5, -5]]
    assert (corners.argmax(axis=1) == 2).all(), "the background is blue"
    middle = found[236:276, 236:276].mean(axis=(0, 1))
    assert middle.argmax() == 1, "the star is green"
    text = "\n".join(sink.lines)
    assert "64 x 64" in text
    assert "Lanczos" in text
    assert len([one for one in sink.lines if small_models.NAME in one]) == 1
    assert paint("A", width=512, height=256).shape == (256, 512, 3)


def test_a_picture_keeps_its_size(paint: Paint, tmp_path: Path) -> None:
    """Models without a native size need multiples of 8."""
    begun = Image.new("RGB", (203, 131), "orange")
    found = paint(**picture("image", begun, tmp_path), prompt_strength=0.5)
    assert found.shape == (131, 203, 3)
    assert (found != numpy.asarray(begun)).any()
    same = paint(**picture("image", begun, tmp_path), prompt_strength=0.0)
    assert (same == numpy.asarray(begun)).all()


@pytest.mark.parametrize("size", [(256, 256), (384, 256)])
def test_outside_the_mask_nothing_changes(
    paint: Paint, tmp_path: Path, size: tuple[int, int]
) -> None:
    noise = numpy.random.default_rng(0).integers(0, 256, (size[1], size[0], 3), numpy.uint8)
    begun = Image.fromarray(noise)
    mask = Image.new("RGB", size, "black")
    ImageDraw.Draw(mask).ellipse((100, 60, 180, 140), fill="white")
    given = picture("image", begun, tmp_path) | picture("mask", mask, tmp_path)
    found = paint(**given, width=size[0], height=size[1], prompt_strength=1.0)
    inside = numpy.asarray(mask)[:, :, 0] > 0
    assert (found[~inside] == noise[~inside]).all()
    assert (found[inside] != noise[inside]).any(axis=1).mean() > 0.9


def test_native_sizes_off_the_grid(sink: HeardSink) -> None:
    made = engine(models=small_models.assigned(native_size=[65, 65]))
    asked = request("generate_image", "B", **STAR, width=256, height=256, num_inference_steps=1)
    output = made.run(asked, sink, diffusion.token())
    assert opened(output.value[0].path).shape == (256, 256, 3)


def test_native_sizes_are_limited(sink: HeardSink) -> None:
    """A manifest cannot exceed the option for the number of pixels."""
    made = engine(models=small_models.assigned(native_size=[10_000, 10_000]))
    asked = request("generate_image", "B", **STAR, width=256, height=256, num_inference_steps=1)
    with pytest.raises(NoBackendError, match="max_pixels"):
        made.run(asked, sink, diffusion.token())


@pytest.mark.parametrize("option", ["upscaler", "installed_upscaler"])
def test_a_network_enlarges(sink: HeardSink, option: str) -> None:
    path = upscaler(NETWORK)
    value = str(path) if option == "upscaler" else {"path": str(path), "name": NETWORK}
    asked = request(
        "generate_image", "B", **STAR, width=512, height=256, num_inference_steps=1
    )  # fmt: skip
    output = engine(**{option: value}).run(asked, sink, diffusion.token())
    assert opened(output.value[0].path).shape == (256, 512, 3)
    (line,) = (one for one in sink.lines if "96 x 48" in one)
    assert NETWORK in line


def test_an_installed_network_that_is_broken_is_not_needed(sink: HeardSink, tmp_path: Path) -> None:
    broken = tmp_path / "broken.param"
    broken.write_text("7767517\n")
    asked = request("generate_image", "B", **STAR, width=256, height=256, num_inference_steps=1)
    option = {"path": str(broken), "name": "broken-network"}
    engine(installed_upscaler=option).run(asked, sink, diffusion.token())
    assert any("broken-network" in one for one in sink.lines)
    assert any("Lanczos" in one for one in sink.lines)


def estimated(made: DiffusionEngine, **given: Any) -> tuple[float, float]:
    values = {HAS_MASK: False, HAS_VIDEO: False, "prompt": "x", **given}
    found = estimates.of(made.manager, request("generate_image", "B", **values), 1e9)
    return found["seconds"], found["memory_bytes"]


def test_estimates_count_the_native_size(small: DiffusionEngine) -> None:
    large, little = (estimated(small, width=one, height=one) for one in (1024, 256))
    assert large == little
    begun = {IMAGE_SIZE: [512, 512], "prompt_strength": 1.0}
    assert estimated(small, **begun) > large, "the image is encoded too"
    # The network's work depends on the size of the result.
    network = engine(upscaler=str(upscaler(NETWORK)))
    first, second = (estimated(network, width=one, height=one)[0] for one in (256, 1024))
    assert large[0] < first < second
    # Without a native size, the same model would draw the whole image.
    plain = engine(models=small_models.assigned(native_size=None))
    assert estimated(plain, width=1024, height=1024)[0] > 50 * large[0]


def test_operations_are_counted_with_the_model_s_own_cells() -> None:
    """One pass of the network over 16 x 16 latents, counted on its weights."""
    import torch
    from diffusers import UNet2DConditionModel
    from torch.utils.flop_counter import FlopCounterMode

    net = UNet2DConditionModel.from_pretrained(small_models.PICTURES, subfolder="unet")
    counter = FlopCounterMode(display=False)
    with torch.inference_mode(), counter:
        net(torch.zeros(1, 4, 16, 16), 1, torch.zeros(1, 77, net.config.cross_attention_dim))
    counted = calibration.flops_of_pass(small_models.PICTURES, 64, 64)
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.2)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelsFolder:
    made = ModelsFolder(tmp_path / "models")
    small_models.install(made)
    monkeypatch.setenv("POLYMUX_MODELS", str(made.path))
    return made


def test_a_small_model_without_any_setting(installed: ModelsFolder, tmp_path: Path) -> None:
    """`Local` uses it with its own steps and guidance, and says so."""
    with polymux.Local(tmp_path / "results") as local:
        job = local.generate_image(STAR["prompt"], width=256, height=256, seed=3)
        words = parameters(job.images[0].path)
        assert (job.model, job.engine_model) == (
            "bytedance/sdxl-lightning-4step", small_models.NAME,
        )  # fmt: skip
        assert "Steps: 25" in words
        assert "CFG scale: 4.0" in words
        (warning,) = (one for one in job.warnings if small_models.NAME in one)
        assert warning in job.logs
        (line,) = (one for one in job.logs.splitlines() if "num_inference_steps=25" in one)
        assert "guidance_scale=4.0" in line
        # A given value is obeyed, also if it is the contract's default.
        given = local.generate_image(
            STAR["prompt"], width=256, height=256, seed=3, num_inference_steps=4
        )
        words = parameters(given.images[0].path)
        assert "Steps: 4," in words
        assert "CFG scale: 4.0" in words
        assert "num_inference_steps" not in given.logs
    assert installed.uses() == {}
