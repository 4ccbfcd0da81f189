"""Pictures: every variant, mode and scheduler, seeds, progress, cancelling, and what is refused."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.contract import operation
from polymux.engines.base import Cancelled
from support import diffusing, diffusion_models
from support.diffusing import HeardSink, picture, request

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.base import Output
    from polymux.engines.diffusion.engine import DiffusionEngine

SMALL = {"width": 256, "height": 256, "num_inference_steps": 2, "seed": 1, "prompt": "a house"}
VARIANTS = {one.id: one for one in operation("generate_image").variants}
SCHEDULERS = [
    (variant, name)
    for variant, one in VARIANTS.items()
    for name in one.field("scheduler").choices or ()
]


def made(engine: DiffusionEngine, sink: HeardSink, variant: str = "B", **given: Any) -> Output:
    asked = request("generate_image", variant, **SMALL | given)
    return engine.run(asked, sink, diffusing.token())


def pixels(output: Output, number: int = 0) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(Image.open(output.value[number].path)).astype(int)


def noise(width: int, height: int, seed: int = 1) -> Image.Image:
    """Soft random colours, which a decoder leaves about as they are."""
    values = random.Random(seed).randbytes(8 * 8 * 3)
    return Image.frombytes("RGB", (8, 8), values).resize((width, height), Image.Resampling.BICUBIC)


@pytest.mark.parametrize(("variant", "scheduler"), SCHEDULERS)
def test_every_scheduler_paints_and_repeats(
    engine: DiffusionEngine, sink: HeardSink, variant: str, scheduler: str
) -> None:
    first = pixels(made(engine, sink, variant, scheduler=scheduler, num_inference_steps=3))
    again = pixels(made(engine, sink, variant, scheduler=scheduler, num_inference_steps=3))
    other = pixels(made(engine, sink, variant, scheduler=scheduler, num_inference_steps=3, seed=2))
    assert first.shape == (256, 256, 3)
    assert (first == again).all()
    assert (first != other).any()
    assert sink.progress[-1] <= 1.0


def test_schedulers_differ(engine: DiffusionEngine, sink: HeardSink) -> None:
    names = ["K_EULER", "K_EULER_ANCESTRAL", "DDIM", "PNDM", "HeunDiscrete", "KarrasDPM"]
    found = [
        pixels(made(engine, sink, scheduler=name, num_inference_steps=4)).tobytes()
        for name in names
    ]
    assert len(set(found)) == len(names)


def test_each_of_several_has_a_seed_of_its_own(engine: DiffusionEngine, sink: HeardSink) -> None:
    output = made(engine, sink, num_outputs=3, seed=5)
    assert [one.file_name for one in output.value] == [f"picture-{n}.png" for n in (1, 2, 3)]
    second = made(engine, sink, num_outputs=1, seed=6)
    assert (pixels(output, 1) == pixels(second)).all()
    assert (pixels(output, 0) != pixels(output, 1)).any()


def test_a_seed_that_is_not_given_is_told(engine: DiffusionEngine, sink: HeardSink) -> None:
    asked = request("generate_image", "B", **{k: v for k, v in SMALL.items() if k != "seed"})
    first = engine.run(asked, sink, diffusing.token())
    seed = next(line for line in sink.lines if line.startswith("seed: ")).removeprefix("seed: ")
    assert (pixels(first) == pixels(made(engine, sink, seed=int(seed)))).all()
    told = Image.open(first.value[0].path).text["parameters"]
    assert told.startswith("a house\n")
    assert f"Seed: {seed}" in told
    assert "Sampler: K_EULER" in told
    assert "Size: 256x256" in told


def test_words_of_any_language_are_told_in_the_file(
    engine: DiffusionEngine, sink: HeardSink
) -> None:
    output = made(engine, sink, prompt="ein Haus — 家", negative_prompt="nichts")
    told = Image.open(output.value[0].path).text["parameters"]
    assert told.splitlines()[:2] == ["ein Haus — 家", "Negative prompt: nichts"]


def test_a_long_prompt_is_cut_and_that_is_told(engine: DiffusionEngine, sink: HeardSink) -> None:
    made(engine, sink, prompt="a very long description " * 40)
    assert any("prompt" in line and "75" in line for line in sink.lines)


def test_a_picture_gives_the_size(engine: DiffusionEngine, sink: HeardSink, tmp_path: Path) -> None:
    output = made(engine, sink, **picture("image", noise(203, 131), tmp_path), width=512)
    assert pixels(output).shape == (128, 200, 3)
    assert any("203 x 131 became 200 x 128" in line for line in sink.lines)


def test_strength_says_how_much_is_given_up(
    engine: DiffusionEngine, sink: HeardSink, tmp_path: Path
) -> None:
    image = noise(128, 128)
    asked = picture("image", image, tmp_path) | {"num_inference_steps": 10}
    kept = pixels(made(engine, sink, **asked, prompt_strength=0.0))
    assert (kept == numpy.asarray(image)).all()
    little = pixels(made(engine, sink, **asked, prompt_strength=0.2))
    much = pixels(made(engine, sink, **asked, prompt_strength=1.0))
    assert (little != much).any()


def test_black_is_kept_to_the_bit_and_white_repainted(
    engine: DiffusionEngine, sink: HeardSink, tmp_path: Path
) -> None:
    image = noise(256, 256)
    mask = Image.new("L", (256, 256), 0)
    mask.paste(255, (128, 0, 256, 256))
    given = picture("image", image, tmp_path) | picture("mask", mask, tmp_path)
    found = pixels(made(engine, sink, **given, prompt_strength=1.0))
    before = numpy.asarray(image).astype(int)
    assert (found[:, :128] == before[:, :128]).all()
    assert abs(found[:, 128:] - before[:, 128:]).mean() > 5


def test_repainting_has_the_size_that_was_asked_for(
    engine: DiffusionEngine, sink: HeardSink, tmp_path: Path
) -> None:
    given = picture("image", noise(300, 200), tmp_path)
    given |= picture("mask", Image.new("L", (64, 64), 255), tmp_path)
    assert pixels(made(engine, sink, **given, width=264, height=256)).shape == (256, 264, 3)


@pytest.mark.parametrize("size", [(1, 1), (63, 400)])
def test_pictures_that_are_too_small_are_refused(
    engine: DiffusionEngine, sink: HeardSink, tmp_path: Path, size: tuple[int, int]
) -> None:
    given = picture("image", Image.new("RGB", size), tmp_path)
    with pytest.raises(errors.BadRequestError, match=f"{size[0]} x {size[1]} pixels are too few"):
        made(engine, sink, **given)


def test_pictures_that_would_be_too_large_are_refused(
    models: dict[str, Path], sink: HeardSink
) -> None:
    own = diffusing.engine(models, max_pixels=256 * 256)
    with pytest.raises(errors.RequestTooLargeError, match=r"0\.1 megapixels"):
        made(own, sink, width=264)


def test_the_guidance_matters_and_so_does_what_is_not_wanted(
    engine: DiffusionEngine, sink: HeardSink
) -> None:
    plain = pixels(made(engine, sink, guidance_scale=1.0))
    guided = pixels(made(engine, sink, guidance_scale=9.0))
    against = pixels(made(engine, sink, guidance_scale=9.0, negative_prompt="trees"))
    assert (plain != guided).any()
    assert (guided != against).any()


def test_the_mark_is_hidden_and_read_back(engine: DiffusionEngine, sink: HeardSink) -> None:
    from diffusers.pipelines.stable_diffusion_xl.watermark import WATERMARK_BITS
    from imwatermark import WatermarkDecoder

    def read(values: numpy.ndarray[Any, Any]) -> list[int]:
        blue_first = numpy.ascontiguousarray(values[:, :, ::-1].astype(numpy.uint8))
        return [int(bit) for bit in WatermarkDecoder("bits", 48).decode(blue_first, "dwtDct")]

    # Random weights paint what is hard to hide in; over a soft picture the mark is whole.
    plain = pixels(made(engine, sink, width=512, height=512))
    marked = pixels(made(engine, sink, width=512, height=512, apply_watermark=True))
    assert abs(plain - marked).max() > 0
    assert abs(plain - marked).mean() < 8
    agree = sum(one == other for one, other in zip(read(marked), WATERMARK_BITS, strict=True))
    chance = sum(one == other for one, other in zip(read(plain), WATERMARK_BITS, strict=True))
    assert agree >= 44
    assert chance <= 36


def test_a_small_picture_has_no_room_for_a_mark(
    engine: DiffusionEngine, sink: HeardSink, tmp_path: Path
) -> None:
    given = picture("image", noise(128, 128), tmp_path)
    made(engine, sink, **given, apply_watermark=True)
    assert any("apply_watermark" in line for line in sink.lines)


def test_weights_of_a_request_act_by_their_scale_and_are_gone_after_it(
    engine: DiffusionEngine, sink: HeardSink, models: dict[str, Path], tmp_path: Path
) -> None:
    from polymux.service.model import Upload

    path = diffusion_models.lora(tmp_path / "lora", models["picture:B"])
    file = Upload(path, "lora.safetensors", "application/octet-stream", path.stat().st_size)
    before = pixels(made(engine, sink))
    none = pixels(made(engine, sink, replicate_weights_file=file, lora_scale=0.0))
    half = pixels(made(engine, sink, replicate_weights_file=file, lora_scale=0.5))
    whole = pixels(made(engine, sink, replicate_weights_file=file, lora_scale=1.0))
    assert (before == none).all()
    assert (before != half).any()
    assert (half != whole).any()
    assert (before == pixels(made(engine, sink))).all()


@pytest.mark.parametrize(
    "content", [b"", b"PK\x03\x04" + b"x" * 100, b"\x10" + b"\x00" * 7 + b"{" * 16]
)
def test_weights_that_are_none_are_refused(
    engine: DiffusionEngine, sink: HeardSink, tmp_path: Path, content: bytes
) -> None:
    from polymux.service.model import Upload

    path = tmp_path / "weights"
    path.write_bytes(content)
    file = Upload(path, "weights", "application/octet-stream", len(content))
    with pytest.raises(errors.BadRequestError, match="no LoRA weights"):
        made(engine, sink, replicate_weights_file=file)


@pytest.mark.parametrize("how", ["expert_ensemble_refiner", "base_image_refiner"])
def test_the_refiner_goes_over_the_picture(
    engine: DiffusionEngine, sink: HeardSink, how: str
) -> None:
    given = {"num_inference_steps": 10}
    plain = pixels(made(engine, sink, **given))
    refined = made(engine, sink, **given, refine=how)
    assert (pixels(refined) != plain).any()
    assert refined.metrics["steps"] == (10 if how.startswith("expert") else 13)
    assert (pixels(made(engine, sink, **given)) == plain).all()


def test_without_a_refiner_its_name_is_told(models: dict[str, Path], sink: HeardSink) -> None:
    own = diffusing.engine({"picture:B": models["picture:B"]})
    with pytest.raises(
        errors.NoBackendError, match=r"sdxl-refiner-1\.0 is not installed"
    ) as caught:
        made(own, sink, refine="base_image_refiner")
    assert caught.value.param == "refine"


def test_flagged_pictures_are_left_out(
    models: dict[str, Path], sink: HeardSink, tmp_path: Path
) -> None:
    checks = {
        flags: diffusion_models.safety_checker(tmp_path / str(flags), flags)
        for flags in (True, False)
    }
    drops = diffusing.engine({**models, "picture:safety": checks[True]})
    with pytest.raises(errors.UnprocessableEntityError, match="no picture passed"):
        made(drops, sink)
    assert len(made(drops, sink, disable_safety_checker=True).value) == 1
    keeps = diffusing.engine({**models, "picture:safety": checks[False]})
    assert len(made(keeps, sink).value) == 1


def test_the_small_decoder_paints_otherwise(models: dict[str, Path], sink: HeardSink) -> None:
    with_it = diffusing.engine(models, tiny_vae=True)
    without = diffusing.engine(models)
    assert (pixels(made(with_it, sink)) != pixels(made(without, sink))).any()


@pytest.mark.parametrize("after", [1, 3])
def test_cancelling_ends_within_one_step(
    engine: DiffusionEngine, tmp_path: Path, after: int
) -> None:
    token = diffusing.token()
    steps = 0

    def count(_: float) -> None:
        nonlocal steps
        steps += 1
        if steps == after:
            token.cancel()

    asked = request("generate_image", "B", **SMALL | {"num_inference_steps": 50})
    with pytest.raises(Cancelled):
        engine.run(asked, HeardSink(tmp_path, count), token)
    assert steps == after
    # What was cancelled leaves nothing behind that the next would notice.
    sink = HeardSink(tmp_path)
    assert (pixels(made(engine, sink)) == pixels(made(engine, sink))).all()


def test_cancelling_ends_a_pass_of_the_network_in_its_midst(
    engine: DiffusionEngine, sink: HeardSink
) -> None:
    token = diffusing.token()
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
    assert len(made(engine, sink).value) == 1


def test_cancelling_in_the_last_step_saves_the_decoding(
    engine: DiffusionEngine, tmp_path: Path
) -> None:
    token = diffusing.token()
    sink = HeardSink(tmp_path, lambda done: token.cancel() if done > 0.94 else None)
    asked = request("generate_image", "B", **SMALL)
    with pytest.raises(Cancelled):
        engine.run(asked, sink, token)
    assert not list(tmp_path.rglob("draft-*"))


def test_progress_grows_over_all_pictures(engine: DiffusionEngine, sink: HeardSink) -> None:
    made(engine, sink, num_outputs=2, num_inference_steps=5)
    assert sink.progress == sorted(sink.progress)
    assert len(sink.progress) == 10


def test_previews_are_small_pictures(
    engine: DiffusionEngine, sink: HeardSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("polymux.engines.diffusion.previews._EVERY_S", 0.0)
    monkeypatch.setattr("polymux.engines.diffusion.previews._SHARE", 1e9)
    shown = made(engine, sink, width=512, num_inference_steps=4)
    assert len(sink.previews) == 4
    (sink.folder / "preview").write_bytes(sink.previews[-1])
    with Image.open(sink.folder / "preview") as preview:
        assert preview.size == (192, 96)
    # They are looked at, and change nothing.
    assert (pixels(shown) == pixels(made(engine, sink, width=512, num_inference_steps=4))).all()


def test_a_substitute_is_told_of(models: dict[str, Path], sink: HeardSink) -> None:
    cast = {"picture:B": {"path": str(models["picture:C"]), "name": "mine", "instead_of": "sdxl"}}
    own = diffusing.engine({})
    own.manager = type(own.manager)({"models": cast})
    made(own, sink)
    assert "mine paints in the place of sdxl" in sink.lines


def test_two_with_different_schedulers_do_not_mix(engine: DiffusionEngine, tmp_path: Path) -> None:
    import threading

    names = ["K_EULER", "DDIM", "KarrasDPM", "PNDM"]
    alone = [
        pixels(made(engine, HeardSink(tmp_path), scheduler=name, num_inference_steps=4))
        for name in names
    ]
    found: dict[str, Any] = {}

    def paint(name: str) -> None:
        found[name] = pixels(
            made(engine, HeardSink(tmp_path), scheduler=name, num_inference_steps=4)
        )

    threads = [threading.Thread(target=paint, args=(name,)) for name in names]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, before in zip(names, alone, strict=True):
        assert (found[name] == before).all()
