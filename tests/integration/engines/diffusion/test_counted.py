"""What generations are thought to take: all of the work is counted, and more is never less."""

from __future__ import annotations

import itertools
import threading
from typing import TYPE_CHECKING, Any

import diffusers
import pytest
import torch
from polymux.engines.base import Token
from polymux.engines.diffusion import calibration, estimates
from polymux.engines.diffusion import engine as engines
from polymux.engines.diffusion.engine import ESTIMATE
from polymux.engines.diffusion.estimates import ESTIMATED, HAS_MASK, HAS_VIDEO, IMAGE_SIZE
from support import detail_models, diffusing, diffusion_models, video_models

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine

PICTURE = {"prompt": "a house", "width": 256, "height": 256, "num_inference_steps": 10}
VIDEO = {"prompt": "waves", "width": 256, "height": 256, "num_frames": 5, "num_inferences_steps": 4}
REFINED = {"refine": "base_image_refiner"}
#: Each holds what the one before does, and more.
GROWING = {
    "steps": ("B", [{"num_inference_steps": one} for one in (1, 2, 10, 50)]),
    "outputs": ("B", [{"num_outputs": one} for one in (1, 2, 3, 4)]),
    "width": ("B", [{"width": one} for one in (256, 512, 1024, 2048)]),
    "guidance": ("B", [{"guidance_scale": one} for one in (1, 7)]),
    "refiner": ("B", [{}, REFINED, *(REFINED | {"refine_steps": n} for n in (5, 20, 400))]),
    "ensemble": ("B", [{}, {"refine": "expert_ensemble_refiner"}]),
    "safety": ("B", [{"disable_safety_checker": one} for one in (True, False)]),
    "strength": ("B", [{IMAGE_SIZE: [256, 256], "prompt_strength": one} for one in (0.1, 0.5, 1)]),
}


@pytest.fixture(scope="module")
def roles(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("counted")
    return {
        **models,
        **detail_models.models(folder / "detail"),
        "picture:safety": diffusion_models.safety_checker(folder / "safety", flags=False),
        "video:xl": video_models.text_to_video(folder / "text"),
        "video:576w": video_models.animate_diff(folder / "animated"),
        "video:potat1": video_models.wan(folder / "wan"),
        "music": diffusion_models.stable_diffusion(folder / "music"),
    }


@pytest.fixture(scope="module")
def counting(roles: dict[str, Path]) -> DiffusionEngine:
    return diffusing.engine(roles)


def counted(
    engine: DiffusionEngine, operation: str, variant: str = "", /, **given: Any
) -> tuple[float, float]:
    """Seconds and bytes on a device of 1 GFLOP/s."""
    asked = diffusing.request(operation, variant, **{HAS_MASK: False, HAS_VIDEO: False, **given})
    told = estimates.of(engine.manager, asked, 1e9)
    return told["seconds"], told["memory_bytes"]


def grows(found: list[tuple[float, float]], *, strictly: bool = True) -> None:
    for (before_s, before_bytes), (after_s, after_bytes) in itertools.pairwise(found):
        assert after_s > before_s or (not strictly and after_s == before_s), found
        assert after_bytes >= before_bytes, found


@pytest.mark.parametrize("what", GROWING)
def test_more_of_a_picture_is_never_less(counting: DiffusionEngine, what: str) -> None:
    variant, asked = GROWING[what]
    found = [counted(counting, "generate_image", variant, **PICTURE | one) for one in asked]
    grows(found, strictly=what != "ensemble")


@pytest.mark.parametrize("model", ["xl", "576w", "potat1"])
@pytest.mark.parametrize(
    ("name", "more"),
    [("num_frames", (1, 5, 8)), ("num_inferences_steps", (1, 2, 50)), ("batch_size", (1, 2, 8)),
     ("width", (256, 384, 512))],
)  # fmt: skip
def test_more_of_a_video_is_never_less(
    counting: DiffusionEngine, model: str, name: str, more: tuple[int, ...]
) -> None:
    asked = [VIDEO | {"video_model": model, name: one} for one in more]
    found = [counted(counting, "generate_video", **one) for one in asked]
    grows(found)
    if name in ("num_frames", "width"):
        memory = [one for _, one in found]
        assert memory == sorted(set(memory)), "all frames are in memory at once"


def test_more_of_detail_and_music_is_never_less(counting: DiffusionEngine) -> None:
    detail = {"prompt": "a house", "creativity": 1.0, IMAGE_SIZE: [96, 64]}
    for more in ([{"scale_factor": one} for one in (1, 2, 4)],
                 [{"num_inference_steps": one} for one in (2, 18, 50)]):  # fmt: skip
        grows([counted(counting, "upscale_image", "A", **detail | one) for one in more])
    for name, values in (("num_inference_steps", (2, 20, 50)), ("denoising", (0.1, 0.5, 1.0))):
        asked = [{"prompt_a": "jazz", name: one} for one in values]
        grows([counted(counting, "generate_music", **one) for one in asked])


def test_the_weights_of_all_that_works_are_counted(roles: dict[str, Path]) -> None:
    made = diffusing.engine(roles, tiny_vae=True)
    one = PICTURE | {"disable_safety_checker": True}
    _, alone = counted(diffusing.engine(roles), "generate_image", "B", **one)
    _, decoder = counted(made, "generate_image", "B", **one)
    assert decoder - alone == made.manager.weight_bytes("picture:decoder") > 0
    _, refiner = counted(made, "generate_image", "B", **one | REFINED)
    assert refiner - decoder == made.manager.weight_bytes("picture:refiner") > 0
    _, checked = counted(made, "generate_image", "B", **PICTURE)
    assert checked - decoder == made.manager.weight_bytes("picture:safety") > 0


def test_the_quick_decoder_saves_time(roles: dict[str, Path]) -> None:
    """Its weights are as few as the other's here: a wide one in the other's place shows it."""
    own, _ = counted(diffusing.engine(roles), "generate_image", "B", **PICTURE)
    quick, _ = counted(diffusing.engine(roles, tiny_vae=True), "generate_image", "B", **PICTURE)
    assert quick != own


def estimated(engine: DiffusionEngine, sink: Any, **given: Any) -> dict[str, Any]:
    values = {HAS_MASK: False, HAS_VIDEO: False, ESTIMATED: "generate_image", **given}
    asked = diffusing.request("generate_image", "B", **PICTURE | values)
    told: dict[str, Any] = engine.run(asked._replace(operation=ESTIMATE), sink, Token()).value
    return told


def test_the_pace_that_is_learned_is_the_same_with_a_refiner(
    roles: dict[str, Path], sink: diffusing.HeardSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device that takes ten seconds for each that is counted, whatever is asked of it."""
    made = diffusing.engine(roles)
    made._flops_per_s = 1e9
    before = estimated(made, sink, **REFINED)
    assert before["doubt"] > 1
    clock = iter((0.0, 10 * (before["seconds"] + engines._BESIDE_S)))
    monkeypatch.setattr(engines.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(engines, "_maker", lambda _: lambda *_: "made")
    monkeypatch.setattr(made.manager, "is_loaded", lambda _: True)
    asked = diffusing.request("generate_image", "B", **PICTURE | REFINED)
    assert made.run(asked, sink, Token()) == "made"
    plain = estimated(made, sink)
    counted_s, _ = counted(made, "generate_image", "B", **PICTURE)
    assert plain["seconds"] == pytest.approx(10 * (counted_s + engines._BESIDE_S))
    assert plain["doubt"] == 1.0


def test_tiny_work_does_not_make_a_model_slow(
    roles: dict[str, Path], sink: diffusing.HeardSink, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What belongs to every request is not taken for how fast the model is."""
    made = diffusing.engine(roles)
    made._flops_per_s = 1e15
    clock = iter((0.0, 1.5))
    monkeypatch.setattr(engines.time, "monotonic", lambda: next(clock))
    monkeypatch.setattr(engines, "_maker", lambda _: lambda *_: "made")
    monkeypatch.setattr(made.manager, "is_loaded", lambda _: True)
    made.run(diffusing.request("generate_image", "B", **PICTURE), sink, Token())
    made._flops_per_s = 1e6
    large = {"width": 1024, "height": 1024, "num_inference_steps": 500}
    counted_s = estimates.of(
        made.manager,
        diffusing.request("generate_image", "B", **PICTURE | large | {HAS_MASK: False}),
        1e6,
    )["seconds"]
    assert estimated(made, sink, **large)["seconds"] < 2 * counted_s


def test_counting_is_nothing_to_those_who_paint_meanwhile() -> None:
    """The hooks of torch's own counter are on all modules of the process."""

    class Watched(torch.nn.Linear):
        def forward(self, given: torch.Tensor) -> torch.Tensor:
            hooks.extend(torch.nn.modules.module._global_forward_pre_hooks)
            hooks.extend(torch.nn.modules.module._global_forward_hooks)
            return super().forward(given)

    hooks: list[Any] = []
    net = Watched(4, 8, device="meta")
    assert calibration._counted(net, torch.empty(2, 4, device="meta")) == 2 * 2 * 4 * 8
    assert hooks == []


def test_counting_goes_on_while_another_loads_in_half_precision(
    roles: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What loads sets torch's numbers by default, for all threads."""
    expected = counted(diffusing.engine(roles), "generate_image", "B", **PICTURE)
    made = diffusing.engine(roles)
    plain = diffusers.UNet2DConditionModel.from_config
    for counts in (calibration.flops_of_pass, calibration.flops_of_decoding):
        counts.cache_clear()

    def halfway(*given: Any, **named: Any) -> Any:
        made = plain(*given, **named)
        torch.set_default_dtype(torch.bfloat16)
        return made

    monkeypatch.setattr(diffusers.UNet2DConditionModel, "from_config", halfway)
    try:
        assert counted(made, "generate_image", "B", **PICTURE) == expected
    finally:
        torch.set_default_dtype(torch.float32)


def test_what_cannot_be_counted_is_not_refused(
    roles: dict[str, Path], sink: diffusing.HeardSink, tmp_path: Path
) -> None:
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "model_index.json").write_text(
        '{"_class_name": "StableDiffusionXLPipeline"}', "utf-8"
    )
    made = diffusing.engine(roles | {"picture:B": tmp_path / "odd"})
    told = estimated(made, sink)
    assert (told["seconds"], told["memory_bytes"]) == (None, None)


@pytest.mark.parametrize("max_concurrency", [1, 2, 3])
def test_there_is_a_place_for_estimates_beside_all_generations(
    roles: dict[str, Path], sink: diffusing.HeardSink, max_concurrency: int
) -> None:
    """The child has a thread for each place: as many wait for the device, and one is free."""
    made = diffusing.engine(roles, max_concurrency=max_concurrency)
    assert made.max_concurrency > max_concurrency
    tokens = [Token() for _ in range(max_concurrency)]
    ends: list[BaseException] = []

    def paint(token: Token) -> None:
        try:
            made.run(diffusing.request("generate_image", "B", **PICTURE), sink, token)
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
