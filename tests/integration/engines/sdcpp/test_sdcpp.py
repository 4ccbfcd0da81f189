"""stable-diffusion.cpp as an engine, with random weights of the smallest network that it knows."""

from __future__ import annotations

import asyncio
import io
import os
from pathlib import Path
from typing import Any

import numpy
import polymux
import pytest
from PIL import Image
from polymux import errors
from polymux.contract import operation
from polymux.engines.sdcpp.engine import SdcppEngine
from polymux.models import import_local
from polymux.models.families import layout_of
from polymux.models.folder import ModelsFolder
from polymux.models.roles import assign_models, use
from polymux.runtime.settings import EngineSettings
from support import diffusion, repositories, sdcpp_models

SMALL = {"width": 64, "height": 64, "num_inference_steps": 2, "seed": 3, "guidance_scale": 1.0}
ONE_STEP = {
    "model": "lorenzomarines/astra", "width": 256, "height": 256, "num_inference_steps": 1,
    "guidance_scale": 1.0,
}  # fmt: skip
(VARIANT_B,) = (one for one in operation("generate_image").variants if one.id == "B")


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sdcpp_models.write(tmp_path_factory.mktemp("models") / "quick")


@pytest.fixture(scope="module")
def engine(model: Path) -> SdcppEngine:
    os.environ["POLYMUX_THREADS"] = "1"
    made = SdcppEngine()
    made.load({"models": assign_models({"picture:B": str(model)}, family="sdcpp").models})
    return made


@pytest.fixture
def sink(tmp_path: Path) -> diffusion.HeardSink:
    return diffusion.HeardSink(tmp_path)


def painted(engine: SdcppEngine, sink: diffusion.HeardSink, **given: Any) -> Image.Image:
    work = diffusion.request("generate_image", "B", **SMALL | {"prompt": "a house"} | given)
    made = engine.run(work, sink, diffusion.token())
    with Image.open(made.value[0].path) as image:
        image.load()
        return image


def pixels(image: Image.Image) -> numpy.ndarray[Any, Any]:
    return numpy.asarray(image.convert("RGB")).astype(int)


def test_images_depend_on_prompt_seed_and_guidance(
    engine: SdcppEngine, sink: diffusion.HeardSink
) -> None:
    first, again = (painted(engine, sink) for _ in range(2))
    assert first.size == (64, 64)
    assert (pixels(first) == pixels(again)).all()
    assert "Seed: 3" in first.info["parameters"]
    others = ({"seed": 4}, {"prompt": "a dog"}, {"guidance_scale": 9.0}, {"num_inference_steps": 3})
    for one in others:
        assert (pixels(first) != pixels(painted(engine, sink, **one))).any()
    assert sink.progress[-1] > 0.9


@pytest.mark.parametrize("scheduler", VARIANT_B.field("scheduler").choices or ())
def test_schedulers(engine: SdcppEngine, sink: diffusion.HeardSink, scheduler: str) -> None:
    assert painted(engine, sink, scheduler=scheduler).size == (64, 64)


def test_sizes_between_the_grid(engine: SdcppEngine, sink: diffusion.HeardSink) -> None:
    assert painted(engine, sink, width=72, height=136).size == (72, 136)


def test_strength_and_masks(engine: SdcppEngine, sink: diffusion.HeardSink, tmp_path: Path) -> None:
    noise = numpy.random.default_rng(1).integers(0, 256, (64, 64, 3), numpy.uint8)
    before = Image.fromarray(noise).resize((8, 8)).resize((64, 64))
    given = diffusion.picture("image", before, tmp_path)
    unchanged = painted(engine, sink, prompt_strength=0.0, **given)
    assert (pixels(unchanged) == pixels(before)).all()
    weak, strong = (
        pixels(painted(engine, sink, num_inference_steps=4, prompt_strength=one, **given))
        for one in (0.3, 1.0)
    )
    assert (weak != strong).any()
    mask = Image.new("L", (64, 64))
    mask.paste(255, (0, 0, 32, 64))
    masked = painted(
        engine, sink, prompt_strength=1.0, **given, **diffusion.picture("mask", mask, tmp_path)
    )
    assert (pixels(masked)[:, 32:] == pixels(before)[:, 32:]).all()
    assert (pixels(masked)[:, :32] != pixels(before)[:, :32]).any()
    # Fewer than one step changes nothing.
    weakest = painted(engine, sink, num_inference_steps=2, prompt_strength=0.4, **given)
    assert (pixels(weakest) == pixels(before)).all()


def test_what_is_no_lora(engine: SdcppEngine, sink: diffusion.HeardSink, tmp_path: Path) -> None:
    page = tmp_path / "page"
    page.write_text("<html></html>")
    other = tmp_path / "other"
    other.write_bytes(repositories.safetensors(unet__lora_A=(2,)))
    for file in (page, other):
        given = {"replicate_weights_file": diffusion.upload(file)}
        with pytest.raises(errors.BadRequestError, match="replicate_weights"):
            painted(engine, sink, **given)


def test_a_model_for_images_makes_no_video(model: Path, sink: diffusion.HeardSink) -> None:
    engine = SdcppEngine()
    models = assign_models({"video:xl": str(model)}, family="sdcpp").models
    engine.load({"models": models})
    work = diffusion.request("generate_video", prompt="waves", video_model="xl", seed=1)
    with pytest.raises(errors.NoBackendError, match="videos"):
        engine.run(work, sink, diffusion.token())


def test_weights_in_other_formats(model: Path, sink: diffusion.HeardSink) -> None:
    engine = SdcppEngine()
    models = assign_models({"picture:B": str(model)}, family="sdcpp").models
    with pytest.raises(errors.NoBackendError, match="q8_0"):
        engine.load({"models": models, "weights": "q9"})
    engine.load({"models": models, "weights": "q8_0"})
    assert painted(engine, sink).size == (64, 64)


def settings(model: Path) -> dict[str, EngineSettings]:
    return {"sdcpp": EngineSettings("sdcpp", {"models": {"picture:B": str(model)}}, threads=1)}


def test_local_images(model: Path) -> None:
    with polymux.Local(engines=settings(model)) as local:
        made = local.generate_image("a house", **ONE_STEP, seed=5)
        with Image.open(io.BytesIO(made.images[0].read())) as image:
            assert image.size == (256, 256)
        assert made.engine_model == "quick"
        with pytest.raises(errors.NoBackendError, match="refine"):
            local.generate_image("a house", **ONE_STEP, refine="base_image_refiner")
        with pytest.raises(errors.NoBackendError):
            local.generate_image("a house", model="bytedance/sdxl-lightning-4step")


def test_canceling_ends_the_process(model: Path) -> None:
    """The next request starts another one."""

    async def main() -> None:
        before = _children()
        async with polymux.AsyncLocal(engines=settings(model)) as local:
            given = ONE_STEP | {"num_inference_steps": 500}
            task = asyncio.create_task(local.generate_image("a house", **given))
            while not (began := _children() - before):
                await asyncio.sleep(0.05)
            await asyncio.sleep(5)
            assert not task.done()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            while began & _children():
                await asyncio.sleep(0.05)
            again = await local.generate_image("a house", **ONE_STEP)
            assert len(again.images) == 1

    asyncio.run(asyncio.wait_for(main(), 200))


def test_damaged_files(model: Path, tmp_path: Path) -> None:
    """They fail the request, and not the service."""
    data = (model / "model.gguf").read_bytes()
    half = tmp_path / "half"
    half.mkdir()
    (half / "model.gguf").write_bytes(data[: len(data) // 2])
    (half / "taesd.gguf").symlink_to(model / "taesd.gguf")
    with polymux.Local(engines=settings(half)) as local:
        for _ in range(2):
            with pytest.raises(errors.APIStatusError):
                local.generate_image("a house", **ONE_STEP)


def test_models_are_found_by_their_files(model: Path, tmp_path: Path) -> None:
    folder = ModelsFolder(tmp_path / "models")
    made = import_local.add("quick", model, folder)
    assert made.family == "sdcpp"
    assert set(made.manifest.paths) == {"model", "taesd"}
    use("quick", ["picture:B"], folder)
    found = assign_models({}, folder, "sdcpp").models["picture:B"]
    assert (found["name"], set(found["parts"])) == ("quick", {"taesd"})
    assert "sdcpp" in assign_models({}, folder).problems["picture:B"]
    for role in ("music", "detail:juggernaut_reborn", "picture:refiner", "video:xl"):
        with pytest.raises(errors.InvalidRequestError, match=role):
            use("quick", [role], folder)
    assert layout_of(model / "model.gguf").family == "sdcpp"
    # Parts may include a language model. A network alone is not a model.
    parts = tmp_path / "parts"
    parts.mkdir()
    for name in ("diffusion_model.gguf", "llm.gguf"):
        (parts / name).write_bytes(b"GGUF")
    assert layout_of(parts).family == "sdcpp"
    network = tmp_path / "network.safetensors"
    network.write_bytes(repositories.safetensors(model__diffusion_model__x=(2,)))
    with pytest.raises(errors.InvalidRequestError, match="network"):
        layout_of(network)
    # Folders for other engines may have a file with this name.
    pipeline = repositories.write(tmp_path / "pipeline", repositories.pipeline())
    whole = repositories.safetensors(model__diffusion_model__x=(2,), cond_stage_model__x=(2,))
    (pipeline / "model.safetensors").write_bytes(whole)
    assert layout_of(pipeline).family == "diffusion"
    (model / "vae.gguf").touch()
    (model / "vae-2.gguf").touch()
    try:
        with pytest.raises(errors.InvalidRequestError, match="vae"):
            layout_of(model)
    finally:
        (model / "vae.gguf").unlink()
        (model / "vae-2.gguf").unlink()


def test_models_for_videos_make_no_images(tmp_path: Path) -> None:
    """The tensors tell, before anything is loaded."""
    folder = ModelsFolder(tmp_path / "models")
    place = tmp_path / "film"
    place.mkdir()
    network = repositories.safetensors(blocks__0__cross_attn__norm_k__weight=(2,))
    (place / "diffusion_model.safetensors").write_bytes(network)
    import_local.add("film", place, folder)
    with pytest.raises(errors.InvalidRequestError, match=r"picture:B.*generate_video"):
        use("film", ["picture:B"], folder)
    use("film", ["video:xl"], folder)
    assert assign_models({}, folder, "sdcpp").models["video:xl"]["name"] == "film"


def test_images_that_are_too_small(
    engine: SdcppEngine, sink: diffusion.HeardSink, tmp_path: Path
) -> None:
    given = diffusion.picture("image", Image.new("RGB", (32, 64)), tmp_path)
    with pytest.raises(errors.BadRequestError, match="image"):
        painted(engine, sink, **given)


def _children() -> set[str]:
    """The processes that this process has started."""
    return {one.name for one in Path("/proc").glob("[0-9]*") if _parent(one) == os.getpid()}


def _parent(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0
