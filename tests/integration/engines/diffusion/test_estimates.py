"""Estimates of generations include all of the work and never decrease with more work."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.base import Token
from polymux.engines.diffusion import calibration, estimates
from polymux.engines.diffusion.engine import ESTIMATE
from polymux.engines.diffusion.estimates import ESTIMATED, HAS_MASK, HAS_VIDEO, IMAGE_SIZE
from support import diffusion, diffusion_models

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine
    from support.diffusion import HeardSink

PICTURE = {"prompt": "a house", "width": 256, "height": 256, "num_inference_steps": 10}
VIDEO = {"prompt": "waves", "width": 64, "height": 64, "num_frames": 5, "num_inferences_steps": 4}
DETAIL = {"prompt": "a house", "creativity": 1.0, IMAGE_SIZE: [96, 64]}
MUSIC = {"prompt_a": "jazz"}
REFINED = {"refine": "base_image_refiner"}
IMAGE, UPSCALE, MAKE_MUSIC = ("generate_image", "B"), ("upscale_image", "A"), ("generate_music", "")
VIDEOS = [
    (("generate_video", ""), VIDEO | {"video_model": model}, name, values)
    for model in ("xl", "potat1")
    for name, values in {"num_frames": (1, 5, 8), "batch_size": (1, 2), "width": (64, 96)}.items()
]
#: Each value of the field needs more work than the one before.
GROWING: list[tuple[tuple[str, str], dict[str, Any], str, tuple[Any, ...]]] = [
    (IMAGE, PICTURE, "num_inference_steps", (1, 2, 50)),
    (IMAGE, PICTURE, "num_outputs", (1, 4)),
    (IMAGE, PICTURE, "width", (256, 512)),
    (IMAGE, PICTURE, "guidance_scale", (1, 7)),
    (IMAGE, PICTURE, "refine", ("no_refiner", "base_image_refiner")),
    (IMAGE, PICTURE | REFINED, "refine_steps", (5, 20, 299)),
    (IMAGE, PICTURE, "disable_safety_checker", (True, False)),
    (IMAGE, PICTURE | {IMAGE_SIZE: [256, 256]}, "prompt_strength", (0.1, 0.5, 1)),
    (UPSCALE, DETAIL, "scale_factor", (1, 2, 4)),
    (UPSCALE, DETAIL, "num_inference_steps", (2, 18)),
    (MAKE_MUSIC, MUSIC, "num_inference_steps", (2, 20)),
    (MAKE_MUSIC, MUSIC, "denoising", (0.1, 0.5, 1.0)),
    (("generate_video", ""), VIDEO, "num_inferences_steps", (1, 2, 50)),
    *VIDEOS,
]


@pytest.fixture(scope="module")
def every(every: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Includes a safety checker."""
    folder = tmp_path_factory.mktemp("safety")
    return every | {"picture:safety": diffusion_models.safety_checker(folder, flags=False)}


@pytest.fixture(scope="module")
def counting(every: dict[str, Path]) -> DiffusionEngine:
    return diffusion.engine(every)


def counted(
    engine: DiffusionEngine, operation: str = "generate_image", variant: str = "B", /, **given: Any
) -> tuple[float, float]:
    """The estimated (seconds, bytes) on a device of 1 GFLOP/s."""
    asked = diffusion.request(operation, variant, **{HAS_MASK: False, HAS_VIDEO: False, **given})
    estimate = estimates.of(engine.manager, asked, 1e9)
    return estimate["seconds"], estimate["memory_bytes"]


@pytest.mark.parametrize(("what", "plain", "name", "values"), GROWING)
def test_more_is_never_less(
    counting: DiffusionEngine,
    what: tuple[str, str],
    plain: dict[str, Any],
    name: str,
    values: tuple[Any, ...],
) -> None:
    found = [counted(counting, *what, **plain | {name: one}) for one in values]
    for (before_s, before_bytes), (after_s, after_bytes) in itertools.pairwise(found):
        assert after_s > before_s, found
        assert after_bytes >= before_bytes, found
        if what[0] == "generate_video" and name in ("num_frames", "width"):
            assert after_bytes > before_bytes, "all frames are in memory at once"


def test_the_weights_and_the_time_of_all_that_works_are_counted(every: dict[str, Path]) -> None:
    plain, quick = diffusion.engine(every), diffusion.engine(every, tiny_vae=True)
    one = PICTURE | {"disable_safety_checker": True}
    own_s, alone = counted(plain, **one)
    quick_s, decoder = counted(quick, **one)
    assert decoder - alone == quick.manager.weight_bytes("picture:decoder") > 0
    # Both networks have the same size here, so only a wider one shows the difference.
    assert quick_s != own_s
    _, refiner = counted(quick, **one | REFINED)
    assert refiner - decoder == quick.manager.weight_bytes("picture:refiner") > 0
    _, checked = counted(quick, **PICTURE)
    assert checked - decoder == quick.manager.weight_bytes("picture:safety") > 0
    ensemble_s, _ = counted(plain, **one | {"refine": "expert_ensemble_refiner"})
    assert ensemble_s >= own_s


def test_operations_are_counted_without_weights(models: dict[str, Path]) -> None:
    path = models["picture:B"]
    small, large = (calibration.flops_of_pass(path, side, side) for side in (256, 512))
    assert 3.5 < large / small < 16
    assert calibration.flops_of_decoding(path, 512, 512) == pytest.approx(
        4 * calibration.flops_of_decoding(path, 256, 256)
    )


def estimated(engine: DiffusionEngine, sink: Any, **given: Any) -> dict[str, Any]:
    values = {HAS_MASK: False, HAS_VIDEO: False, ESTIMATED: "generate_image", **given}
    asked = diffusion.request("generate_image", "B", **PICTURE | values)
    estimate: dict[str, Any] = engine.run(asked._replace(operation=ESTIMATE), sink, Token()).value
    return estimate


def test_estimates_learn_of_work(models: dict[str, Path], sink: HeardSink) -> None:
    engine = diffusion.engine({"picture:B": models["picture:B"]})
    engine._flops_per_s = 1e12  # A busy device may be measured as too slow.
    before = estimated(engine, sink)
    assert estimated(engine, sink, num_outputs=2)["seconds"] == pytest.approx(2 * before["seconds"])
    assert before["memory_bytes"] > 0
    assert "256 x 256" in before["why"]
    for _ in range(2):  # The first run loads the model and is not measured.
        engine.run(diffusion.request("generate_image", "B", **PICTURE), sink, Token())
    after = estimated(engine, sink)
    # Tiny networks are less efficient than the initial estimate, which the engine learns.
    assert after["seconds"] > 2 * before["seconds"]
    assert after["memory_bytes"] < before["memory_bytes"]


def test_what_cannot_be_counted_is_not_refused(
    every: dict[str, Path], sink: HeardSink, tmp_path: Path
) -> None:
    (tmp_path / "model_index.json").write_text('{"_class_name": "StableDiffusionXLPipeline"}')
    estimate = estimated(diffusion.engine(every | {"picture:B": tmp_path}), sink)
    assert (estimate["seconds"], estimate["memory_bytes"]) == (None, None)


def test_there_is_a_place_for_estimates_beside_all_generations(
    every: dict[str, Path], sink: HeardSink
) -> None:
    """With one thread more than generations, one is free while all wait for the device."""
    max_concurrency = 3
    made = diffusion.engine(every, max_concurrency=max_concurrency)
    assert made.max_concurrency > max_concurrency
    tokens = [Token() for _ in range(max_concurrency)]
    ends: list[BaseException] = []

    def paint(token: Token) -> None:
        try:
            made.run(diffusion.request("generate_image", "B", **PICTURE), sink, token)
        except BaseException as error:
            ends.append(error)

    with made.manager.lock:
        threads = [threading.Thread(target=paint, args=(one,)) for one in tokens]
        for one in threads:
            one.start()
        assert estimated(made, sink)["seconds"] > 0
        for token in tokens:
            token.cancel()
        for one in threads:
            one.join(20)
    assert len(ends) == max_concurrency
