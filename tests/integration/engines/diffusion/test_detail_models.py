"""What detail is painted by: every solver, model and LoRA weights, with tiny random weights."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy
import pytest
import torch
from diffusers import DDIMScheduler
from PIL import Image
from polymux import errors
from polymux.contract import operation
from polymux.engines.base import Cancelled, Token
from polymux.engines.diffusion import loras, previews
from polymux.engines.diffusion.upscale.schedulers import Solver, calls
from polymux.service.model import Upload
from support import detail_models, diffusing, diffusion_models
from support.detail_models import ROLE, difference, made, picture, worked

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine

WITHOUT_COUNTERPART = ("DPM fast", "DPM adaptive", "DPM++ 2S a", "DPM++ 2S a Karras", "Restart")
FIELDS = {
    field.name: field for one in operation("upscale_image").variants if one.id == "A"
    for field in one.fields
}  # fmt: skip
SCHEDULERS = [one for one in FIELDS["scheduler"].choices or () if one not in WITHOUT_COUNTERPART]
SMALL = picture(60, 50)
STEPS = {"num_inference_steps": 10, "creativity": 0.6}


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return detail_models.models(tmp_path_factory.mktemp("detail"))


@pytest.fixture(scope="module")
def engine(models: dict[str, Path]) -> DiffusionEngine:
    return diffusing.engine(models, previews=False)


def upload(path: Path) -> Upload:
    return Upload(path, path.name, "", path.stat().st_size)


@pytest.fixture(scope="module")
def painted(
    engine: DiffusionEngine, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Any]:
    """What each solver makes of the same."""
    folder = tmp_path_factory.mktemp("painted")
    return cache(lambda name: made(engine, folder, SMALL, **STEPS, scheduler=name))


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_solver_paints_the_same_again(
    engine: DiffusionEngine, tmp_path: Path, painted: Callable[[str], Any], name: str
) -> None:
    assert painted(name).std() > 1
    assert numpy.array_equal(painted(name), made(engine, tmp_path, SMALL, **STEPS, scheduler=name))


@pytest.mark.parametrize("name", SCHEDULERS)
def test_every_solver_does_a_single_step(
    engine: DiffusionEngine, tmp_path: Path, name: str
) -> None:
    values = {"num_inference_steps": 1, "creativity": 1, "dynamic": 1}
    assert made(engine, tmp_path, SMALL, scheduler=name, **values).std() > 1


def test_solvers_and_seeds_differ(
    engine: DiffusionEngine, tmp_path: Path, painted: Callable[[str], Any]
) -> None:
    found = {painted(one).tobytes() for one in SCHEDULERS}
    for name in ("DPM++ 3M SDE Karras", "DPM++ SDE", "DDIM"):
        found.add(made(engine, tmp_path, SMALL, **STEPS, scheduler=name, seed=2).tobytes())
    assert len(found) == len(SCHEDULERS) + 3


@pytest.mark.parametrize("name", WITHOUT_COUNTERPART)
def test_the_others_are_refused(engine: DiffusionEngine, tmp_path: Path, name: str) -> None:
    with pytest.raises(errors.BadRequestError, match="there are: DPM"):
        worked(engine, tmp_path, SMALL, scheduler=name)


#: Solvers that add no noise, and how far they may be from the solution at most.
ERRORS = {
    "DPM++ 2M": 0.06, "DPM++ 2M Karras": 0.001, "DPM2": 0.01, "DPM2 Karras": 0.004, "Euler": 0.07,
    "Heun": 0.002, "LMS": 0.001, "LMS Karras": 0.005, "DDIM": 0.07, "PLMS": 0.005, "UniPC": 0.06,
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_solver_that_begins_midway_solves(name: str) -> None:
    """Of what is spread as Gauss' curve says, the noise and the solution are known."""
    config = DDIMScheduler(
        beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", steps_offset=1
    ).config
    solver = Solver(name, config, 40, 18, "cpu")
    assert len(solver.timesteps) == calls(name, 18)
    generator = torch.Generator().manual_seed(1)
    clean, noise = torch.randn(2, 1, 4, 64, 64, generator=generator)
    latents = solver.noisy(0.5 * clean, noise)
    solution = None
    for timestep in solver.timesteps:
        seen = solver.scaled(latents, timestep)
        share = _clean_share(config, float(timestep))
        spread = share * 0.5**2 + 1 - share
        solution = seen * 0.5 / spread**0.5 if solution is None else solution
        latents = solver.next((1 - share) ** 0.5 * seen / spread, timestep, latents, generator)
    assert solution is not None
    if name in ERRORS:
        worst = (latents - solution).abs().max() / solution.abs().max()
        assert float(worst) < ERRORS[name]
    # What adds noise ends elsewhere, spread like the rest.
    assert float(latents.std()) == pytest.approx(0.5, rel=0.15)


def _clean_share(config: Any, timestep: float) -> float:
    betas = numpy.linspace(config.beta_start**0.5, config.beta_end**0.5, 1000) ** 2
    shares = numpy.cumprod(1 - betas)
    noise = numpy.log((1 - shares) / shares)
    at = float(numpy.interp(timestep, numpy.arange(1000), noise))
    return 1 / (1 + numpy.exp(at))


def test_two_requests_with_different_solvers_do_not_mix(
    engine: DiffusionEngine, tmp_path: Path
) -> None:
    names = ["Euler a", "DPM++ 3M SDE Karras", "PLMS", "Heun"] * 2
    alone = {name: made(engine, tmp_path, SMALL, scheduler=name) for name in names}
    folders = [tmp_path / f"{number}" for number in range(len(names))]
    for folder in folders:
        folder.mkdir()
    with ThreadPoolExecutor(2) as pool:
        together = list(
            pool.map(lambda one, name: made(engine, one, SMALL, scheduler=name), folders, names)
        )
    for name, found in zip(names, together, strict=True):
        assert numpy.array_equal(found, alone[name])


def test_lora_weights_count_and_leave_nothing(models: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusing.engine(models, previews=False)
    unet = engine.manager.parts(ROLE)["unet"]
    path = detail_models.lora(tmp_path / "weights", unet)
    engine.manager.options["loras"] = {"more": str(path)}
    before = {name: one.clone() for name, one in unet.state_dict().items()}
    plain = made(engine, tmp_path, SMALL)
    found = [
        made(engine, tmp_path, SMALL, prompt=f"a barn<lora:more:{weight}>")
        for weight in (0, 0.5, 1)
    ]
    assert numpy.array_equal(found[0], plain)
    assert difference(found[1], plain) > 0
    assert difference(found[2], found[1]) > 0
    # The same weights twice add up; those of the negative prompt count too.
    twice = made(engine, tmp_path, SMALL, prompt="a barn<lora:more:0.5><lora:more:0.5>")
    assert numpy.array_equal(twice, found[2])
    brought = made(engine, tmp_path, SMALL, lora_links_file=upload(path))
    assert numpy.array_equal(brought, found[2])
    assert {*before} == {*unet.state_dict()}
    assert all(torch.equal(one, before[name]) for name, one in unet.state_dict().items())
    assert numpy.array_equal(made(engine, tmp_path, SMALL), plain)


def test_lora_weights_go_when_the_work_is_ended(models: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusing.engine(models, previews=False)
    unet = engine.manager.parts(ROLE)["unet"]
    names = {*unet.state_dict()}
    path = detail_models.lora(tmp_path / "weights", unet)
    token = Token()
    sink = diffusing.HeardSink(tmp_path, lambda _: token.cancel())
    files = diffusing.picture("image", Image.fromarray(SMALL), tmp_path)
    values = detail_models.QUICK | files | {"lora_links_file": upload(path)}
    with pytest.raises(Cancelled):
        engine.run(diffusing.request("upscale_image", "A", **values), sink, token)
    assert {*unet.state_dict()} == names


def test_what_the_default_prompts_name_is_said(engine: DiffusionEngine, tmp_path: Path) -> None:
    prompts = {name: FIELDS[name].default for name in ("prompt", "negative_prompt")}
    _, sink = worked(engine, tmp_path, SMALL, **prompts)
    said = "\n".join(sink.lines)
    for name in ("<lora:more_details:0.5>", "<lora:SDXLrender_v2.0:1>", "JuggernautNegative-neg"):
        assert name in said


def test_a_model_of_ones_own(models: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusing.engine(models, previews=False)
    parts = engine.manager.parts(ROLE)
    same = detail_models.checkpoint(tmp_path / "same", parts["unet"], parts["text_encoder"])
    fresh = diffusion_models.stable_diffusion_parts(tmp_path / "fresh", seed=9)
    other = detail_models.checkpoint(tmp_path / "other", fresh["unet"], fresh["text_encoder"])
    plain = made(engine, tmp_path, SMALL)
    assert numpy.array_equal(
        made(engine, tmp_path, SMALL, custom_sd_model_file=upload(same)), plain
    )
    found = made(engine, tmp_path, SMALL, custom_sd_model_file=upload(other))
    assert not numpy.array_equal(found, plain)
    assert numpy.array_equal(made(engine, tmp_path, SMALL), plain)


@pytest.mark.parametrize("field", ["custom_sd_model", "lora_links"])
@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"PK\x03\x04" * 9, b"junk" * 99])
def test_weights_that_are_none_are_refused(
    engine: DiffusionEngine, tmp_path: Path, field: str, content: bytes
) -> None:
    path = tmp_path / "weights"
    path.write_bytes(content)
    with pytest.raises(errors.BadRequestError, match=f"^{field}: ") as caught:
        worked(engine, tmp_path, SMALL, **{f"{field}_file": upload(path)})
    assert caught.value.param == field


@pytest.mark.parametrize("field", ["custom_sd_model", "lora_links"])
def test_weights_for_something_else_are_refused(
    engine: DiffusionEngine, tmp_path: Path, field: str
) -> None:
    from safetensors.torch import save_file

    shapes = {
        "custom_sd_model": "model.diffusion_model.input_blocks.0.0.weight",
        "lora_links": "lora_unet_nothing.lora_down.weight",
    }
    path = tmp_path / "weights"
    save_file({shapes[field]: torch.zeros(3, 3)}, path)
    with pytest.raises(errors.BadRequestError, match=f"^{field}: "):
        worked(engine, tmp_path, SMALL, **{f"{field}_file": upload(path)})


@pytest.mark.parametrize("missing", [ROLE, "detail:controlnet"])
def test_a_model_that_is_not_installed_is_named(
    models: dict[str, Path], tmp_path: Path, missing: str
) -> None:
    pulled = {ROLE: "juggernaut-reborn", "detail:controlnet": "control-v11f1e-sd15-tile"}[missing]
    engine = diffusing.engine({role: one for role, one in models.items() if role != missing})
    with pytest.raises(errors.NoBackendError, match=f"'polymux models pull {pulled}'") as caught:
        worked(engine, tmp_path, SMALL)
    assert caught.value.status == 501


@pytest.mark.parametrize("choice", FIELDS["sd_model"].choices or ())
def test_every_model_of_the_contract_has_its_role(
    models: dict[str, Path], tmp_path: Path, choice: str
) -> None:
    from polymux.models.roles import needed_roles

    role, control = needed_roles("upscale_image", "A", {"sd_model": choice})
    engine = diffusing.engine({role: models[ROLE], control: models[control]}, previews=False)
    assert made(engine, tmp_path, SMALL, sd_model=choice).shape == (100, 120, 3)


def test_a_substitute_is_said(models: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusing.engine(models, previews=False)
    manager = engine.manager
    slot = manager.slot(ROLE)
    manager._slots[ROLE] = type(slot)(ROLE, "another", slot.path, "juggernaut-reborn", slot.version)
    _, sink = worked(engine, tmp_path, SMALL)
    assert "another takes the place of juggernaut-reborn" in sink.lines


def test_half_the_precision_is_enough(models: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusing.engine(models, previews=False, dtype="bfloat16")
    found = made(engine, tmp_path, SMALL)
    exact = made(diffusing.engine(models, previews=False, dtype="float32"), tmp_path, SMALL)
    assert 0 < difference(found, exact) < 0.5 * float(exact.std())
    assert numpy.array_equal(found, made(engine, tmp_path, SMALL))


def test_previews_change_nothing(
    models: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(previews, "_EVERY_S", 0.0)
    monkeypatch.setattr(previews, "_SHARE", 1e9)
    output, sink = worked(diffusing.engine(models), tmp_path, SMALL)
    # One after each step but the last, which the picture itself follows.
    assert len(sink.previews) == 1
    with Image.open(output.value[0].path) as opened:
        plain = made(diffusing.engine(models, previews=False), tmp_path, SMALL)
        assert numpy.array_equal(numpy.asarray(opened), plain)


def test_without_weights_nothing_is_laid_over_the_model(
    engine: DiffusionEngine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So the package for it may be missing."""
    monkeypatch.delattr(loras, "laid_over")
    assert made(engine, tmp_path, SMALL, prompt="<lora:nobody:1>").shape == (100, 120, 3)
