"""Images: all variants, modes and schedulers, seeds, progress, cancellation and errors."""

from __future__ import annotations

import json
import random
import shutil
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.contract import operation
from polymux.engines.base import Cancelled
from support import diffusion, diffusion_models
from support.diffusion import HeardSink, picture, request, upload

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.engines.base import Output
    from polymux.engines.diffusion.engine import DiffusionEngine

    Make = Callable[..., Output]
    Paint = Callable[..., numpy.ndarray[Any, Any]]

SMALL = {"width": 64, "height": 64, "num_inference_steps": 2, "seed": 1, "prompt": "a house"}
SCHEDULERS = {
    one.id: one.field("scheduler").choices or () for one in operation("generate_image").variants
}
EDM = {
    "_class_name": "EDMDPMSolverMultistepScheduler", "sigma_min": 0.002, "sigma_max": 80.0,
    "sigma_data": 0.5, "rho": 7.0, "solver_order": 2, "prediction_type": "epsilon",
}  # fmt: skip


def made(engine: DiffusionEngine, sink: HeardSink, variant: str = "B", **given: Any) -> Output:
    asked = request("generate_image", variant, **SMALL | given)
    return engine.run(asked, sink, diffusion.token())


@pytest.fixture
def make(engine: DiffusionEngine, sink: HeardSink) -> Make:
    return lambda **given: made(engine, sink, **given)


@pytest.fixture
def paint(make: Make) -> Paint:
    """The samples of the result."""
    return lambda **given: pixels(make(**given))


def pixels(output: Output, number: int = 0) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(Image.open(output.value[number].path)).astype(int)


def noise(width: int, height: int, seed: int = 1) -> Image.Image:
    """Soft random colors that the decoder hardly changes."""
    values = random.Random(seed).randbytes(8 * 8 * 3)
    return Image.frombytes("RGB", (8, 8), values).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize("variant", ["A", "C"])  # B has the schedulers and model of A.
def test_every_scheduler_paints(paint: Paint, variant: str) -> None:
    found = []
    for name in SCHEDULERS[variant]:
        one = paint(variant=variant, scheduler=name, num_inference_steps=4)
        assert one.shape == (64, 64, 3)
        found.append(one.tobytes())
    # Two pairs of names are aliases.
    assert len(set(found)) >= len(found) - 2


@pytest.mark.parametrize("name", ["DPMSolver++", "DDIM"])
def test_networks_that_take_noise_otherwise(
    models: dict[str, Path], sink: HeardSink, tmp_path: Path, name: str
) -> None:
    """Noise levels of Karras et al., such as Playground's. Unsupported options cause a warning."""
    folder = shutil.copytree(models["picture:C"], tmp_path / "playground")
    (folder / "scheduler" / "scheduler_config.json").write_text(json.dumps(EDM), "utf-8")
    index = json.loads((folder / "model_index.json").read_text("utf-8"))
    index["scheduler"] = ["diffusers", EDM["_class_name"]]
    (folder / "model_index.json").write_text(json.dumps(index), "utf-8")
    found = pixels(made(diffusion.engine({"picture:C": folder}), sink, "C", scheduler=name))
    assert found.std() > 1
    fits = name == "DPMSolver++"
    assert any("DPMSolver++" in line for line in sink.lines) is not fits


def test_each_of_several_has_a_seed_of_its_own(make: Make, sink: HeardSink) -> None:
    output = make(num_outputs=3, seed=5)
    assert [one.file_name for one in output.value] == [f"picture-{n}.png" for n in (1, 2, 3)]
    assert sink.progress == sorted(sink.progress)
    assert len(sink.progress) == 6
    assert sink.progress[-1] <= 1.0
    second = make(seed=6)
    assert (pixels(output, 1) == pixels(second)).all()
    assert (pixels(output, 0) != pixels(output, 1)).any()


def test_what_it_was_made_of_is_in_the_file(paint: Paint, make: Make, sink: HeardSink) -> None:
    words = {"prompt": "ein Haus — 家", "negative_prompt": "nichts"}
    first = make(**words, seed=None)
    assert (pixels(first) == paint(**words, seed=sink.seed)).all()
    parameters = Image.open(first.value[0].path).text["parameters"]
    assert parameters.splitlines()[:2] == ["ein Haus — 家", "Negative prompt: nichts"]
    for one in (f"Seed: {sink.seed}", "Sampler: K_EULER", "Size: 64x64"):
        assert one in parameters


def test_a_long_prompt_is_cut_with_a_warning(make: Make, sink: HeardSink) -> None:
    make(prompt="a very long description " * 40)
    assert any("prompt" in line and "75" in line for line in sink.lines)


def test_a_picture_gives_the_size(make: Make, sink: HeardSink, tmp_path: Path) -> None:
    output = make(**picture("image", noise(203, 131), tmp_path), width=512)
    assert pixels(output).shape == (128, 200, 3)
    assert any("203 x 131" in line and "200 x 128" in line for line in sink.lines)


def test_strength_says_how_much_is_given_up(paint: Paint, tmp_path: Path) -> None:
    image = noise(64, 64)
    asked = picture("image", image, tmp_path) | {"num_inference_steps": 10}
    kept, little, much = (paint(**asked, prompt_strength=one) for one in (0.0, 0.2, 1.0))
    assert (kept == numpy.asarray(image)).all()
    assert (little != much).any()


def test_repainting_has_the_size_that_was_asked_for(paint: Paint, tmp_path: Path) -> None:
    """Black areas stay identical, white areas are repainted."""
    image, mask = noise(128, 64), Image.new("L", (64, 64), 0)
    mask.paste(255, (32, 0, 64, 64))
    given = picture("image", image, tmp_path) | picture("mask", mask, tmp_path)
    found = paint(**given, prompt_strength=1.0, width=128)
    before = numpy.asarray(image).astype(int)
    assert found.shape == (64, 128, 3)
    assert (found[:, :56] == before[:, :56]).all()
    assert abs(found[:, 72:] - before[:, 72:]).mean() > 5
    assert paint(**given, width=64, height=72).shape == (72, 64, 3)


@pytest.mark.parametrize("size", [(1, 1), (63, 400)])
def test_pictures_that_are_too_small(make: Make, tmp_path: Path, size: tuple[int, int]) -> None:
    given = picture("image", Image.new("RGB", size), tmp_path)
    with pytest.raises(errors.BadRequestError, match=f"{size[0]} x {size[1]}"):
        make(**given)


def test_the_words_the_guidance_and_what_is_not_wanted_count(paint: Paint) -> None:
    against = {"guidance_scale": 9.0, "negative_prompt": "trees"}
    asked = ({"guidance_scale": 1.0}, {"guidance_scale": 9.0}, against, {"prompt": "a dog"})
    assert len({paint(**one).tobytes() for one in asked}) == 4


def test_the_mark_is_read_back(paint: Paint, make: Make, sink: HeardSink, tmp_path: Path) -> None:
    # Random weights paint images in which a watermark is hard to embed. In a soft image, all bits
    # survive.
    plain, marked = (paint(width=512, height=512, apply_watermark=one) for one in (False, True))
    assert abs(plain - marked).max() > 0
    assert abs(plain - marked).mean() < 8
    assert diffusion.watermark_bits(marked) >= 44
    assert diffusion.watermark_bits(plain) <= 36
    make(**picture("image", noise(128, 128), tmp_path), apply_watermark=True)
    assert any("apply_watermark" in line for line in sink.lines), "it is too small for one"


def test_weights_of_a_request_act_by_their_scale_and_are_gone_after_it(
    paint: Paint, models: dict[str, Path], tmp_path: Path
) -> None:
    file = upload(diffusion_models.lora(tmp_path / "lora", models["picture:B"]))
    before = paint()
    none, half, whole = (
        paint(replicate_weights_file=file, lora_scale=one) for one in (0.0, 0.5, 1.0)
    )
    assert (before == none).all()
    assert (before != half).any()
    assert (half != whole).any()
    assert (before == paint()).all()


@pytest.mark.parametrize("how", ["expert_ensemble_refiner", "base_image_refiner"])
def test_the_refiner_goes_over_the_picture(paint: Paint, make: Make, how: str) -> None:
    given = {"num_inference_steps": 10}
    plain = paint(**given)
    refined = make(**given, refine=how)
    assert (pixels(refined) != plain).any()
    assert refined.metrics["steps"] == (10 if how.startswith("expert") else 13)
    assert (paint(**given) == plain).all()


def test_what_this_engine_has_not(models: dict[str, Path], sink: HeardSink) -> None:
    own = diffusion.engine({"picture:B": models["picture:B"]}, max_pixels=256 * 256)
    with pytest.raises(errors.NoBackendError, match=r"sdxl-refiner-1\.0") as caught:
        made(own, sink, refine="base_image_refiner")
    assert caught.value.param == "refine"
    with pytest.raises(errors.RequestTooLargeError, match=r"0\.1 megapixels"):
        made(own, sink, width=264, height=256)


def test_flagged_ones_are_left_out(
    models: dict[str, Path], sink: HeardSink, tmp_path: Path
) -> None:
    drops, keeps = (
        diffusion.engine(
            models | {"picture:safety": diffusion_models.safety_checker(tmp_path / str(one), one)}
        )
        for one in (True, False)
    )
    with pytest.raises(errors.UnprocessableEntityError) as caught:
        made(drops, sink)
    assert caught.value.code == "content_filtered"
    assert len(made(drops, sink, disable_safety_checker=True).value) == 1
    assert len(made(keeps, sink).value) == 1


def test_cancelling_ends_within_one_step(engine: DiffusionEngine, tmp_path: Path) -> None:
    """Also before decoding, if the last step is done."""
    for steps, done in ((50, 2), (2, 2)):
        token, heard = diffusion.token(), []

        def count(_: float, token: Any = token, heard: list[int] = heard, done: int = done) -> None:
            heard.append(1)
            if len(heard) == done:
                token.cancel()

        asked = request("generate_image", "B", **SMALL | {"num_inference_steps": steps})
        with pytest.raises(Cancelled):
            engine.run(asked, HeardSink(tmp_path, count), token)
        assert len(heard) == done
        assert not list(tmp_path.rglob("draft-*"))


def test_cancelling_ends_a_pass_of_the_network_in_its_midst(
    paint: Paint, engine: DiffusionEngine, sink: HeardSink
) -> None:
    token = diffusion.token()
    before = paint()
    unet = engine.manager.parts("picture:B")["unet"]
    ended: list[int] = []
    begin = unet.register_forward_pre_hook(lambda *_: token.cancel())
    end = unet.register_forward_hook(lambda *_: ended.append(1))
    try:
        with pytest.raises(Cancelled):
            engine.run(request("generate_image", "B", **SMALL), sink, token)
    finally:
        begin.remove()
        end.remove()
    assert ended == []
    assert not unet.mid_block._forward_pre_hooks
    # The canceled work does not affect the next one.
    assert (paint() == before).all()


@pytest.mark.usefixtures("previews_at_once")
def test_previews_are_small_pictures(make: Make, sink: HeardSink, models: dict[str, Path]) -> None:
    shown = make(width=256, height=128)
    assert len(sink.previews) == 2
    (sink.folder / "preview").write_bytes(sink.previews[-1])
    with Image.open(sink.folder / "preview") as preview:
        assert preview.size == (192, 96)
    # Previews do not change the result.
    silent = diffusion.engine(models, previews=False)
    assert (pixels(shown) == pixels(made(silent, sink, width=256, height=128))).all()
    assert len(sink.previews) == 2


def test_a_substitute_is_logged(models: dict[str, Path], sink: HeardSink) -> None:
    cast = {"picture:B": {"path": str(models["picture:C"]), "name": "mine", "instead_of": "sdxl"}}
    own = diffusion.engine({})
    own.manager = type(own.manager)({"models": cast})
    made(own, sink)
    assert any("mine" in line and "sdxl" in line for line in sink.lines)
