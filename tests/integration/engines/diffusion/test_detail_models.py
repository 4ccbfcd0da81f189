"""Solvers, models and LoRA weights for detail, with tiny random weights."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.contract import operation
from polymux.engines.base import Cancelled, Token
from polymux.engines.diffusion.upscale.schedulers import Solver, calls
from support import detail_models, diffusion, diffusion_models
from support.detail_models import ROLE, SMALL, difference, made, worked
from support.diffusion import upload
from support.lazy_imports import diffusers, safetensors, torch

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine
    from support.detail_models import Paint, Work

WITHOUT_COUNTERPART = ("DPM fast", "DPM adaptive", "DPM++ 2S a", "DPM++ 2S a Karras", "Restart")
FIELDS = {
    field.name: field for one in operation("upscale_image").variants if one.id == "A"
    for field in one.fields
}  # fmt: skip
SCHEDULERS = [one for one in FIELDS["scheduler"].choices or () if one not in WITHOUT_COUNTERPART]


def test_every_solver_does_a_single_step(paint: Paint) -> None:
    values = {"num_inference_steps": 1, "creativity": 1, "dynamic": 1}
    for name in SCHEDULERS:
        assert paint(scheduler=name, **values).std() > 1, name


def test_the_others_are_refused(work: Work) -> None:
    with pytest.raises(errors.BadRequestError, match="Euler"):
        work(scheduler=WITHOUT_COUNTERPART[0])


#: Deterministic solvers -> maximum distance from the exact solution.
ERRORS = {
    "DPM++ 2M": 0.06, "DPM++ 2M Karras": 0.001, "DPM2": 0.01, "DPM2 Karras": 0.004, "Euler": 0.07,
    "Heun": 0.002, "LMS": 0.001, "LMS Karras": 0.005, "DDIM": 0.07, "PLMS": 0.005, "UniPC": 0.06,
}  # fmt: skip


@pytest.mark.parametrize("name", SCHEDULERS)
def test_a_solver_that_begins_midway_solves(name: str) -> None:
    """For a Gaussian distribution, the noise and the solution are known exactly."""
    config = diffusers.DDIMScheduler(
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
    # Solvers that add noise end elsewhere, with the same standard deviation.
    assert float(latents.std()) == pytest.approx(0.5, rel=0.15)


def _clean_share(config: Any, timestep: float) -> float:
    betas = numpy.linspace(config.beta_start**0.5, config.beta_end**0.5, 1000) ** 2
    shares = numpy.cumprod(1 - betas)
    noise = numpy.log((1 - shares) / shares)
    at = float(numpy.interp(timestep, numpy.arange(1000), noise))
    return 1 / (1 + numpy.exp(at))


def test_two_with_different_solvers_do_not_mix(detailing: DiffusionEngine, tmp_path: Path) -> None:
    names = ["Euler a", "DPM++ 3M SDE Karras", "PLMS", "Heun"]
    for name in names:
        (tmp_path / name).mkdir()

    def paint(name: str) -> bytes:
        return made(detailing, tmp_path / name, SMALL, scheduler=name).tobytes()

    alone = [paint(name) for name in names]
    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(paint, names)) == alone


def test_lora_weights_count_and_leave_nothing(detail: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusion.engine(detail, previews=False)
    unet = engine.manager.parts(ROLE)["unet"]
    path = detail_models.lora(tmp_path / "weights", unet)
    engine.manager.options["loras"] = {"more": str(path)}
    before = {name: one.clone() for name, one in unet.state_dict().items()}

    def paint(*words: str, **values: Any) -> Any:
        return made(engine, tmp_path, SMALL, prompt="".join(("a barn", *words)), **values)

    plain = paint()
    none, half, whole = (paint(f"<lora:more:{weight}>") for weight in (0, 0.5, 1))
    assert numpy.array_equal(none, plain)
    assert difference(half, plain) > 0
    assert difference(whole, half) > 0
    # Weights used twice add up, including those in the request.
    assert numpy.array_equal(paint("<lora:more:0.5><lora:more:0.5>"), whole)
    assert numpy.array_equal(paint(lora_links_file=upload(path)), whole)
    token = Token()
    sink = diffusion.HeardSink(tmp_path, lambda _: token.cancel())
    files = diffusion.picture("image", Image.fromarray(SMALL), tmp_path)
    values = detail_models.QUICK | files | {"lora_links_file": upload(path)}
    with pytest.raises(Cancelled):
        engine.run(diffusion.request("upscale_image", "A", **values), sink, token)
    assert {*before} == {*unet.state_dict()}
    assert all(torch.equal(one, before[name]) for name, one in unet.state_dict().items())
    assert numpy.array_equal(paint(), plain)


def test_what_the_default_prompts_name_is_logged(work: Work) -> None:
    prompts = {name: FIELDS[name].default for name in ("prompt", "negative_prompt")}
    _, sink = work(**prompts)
    log = "\n".join(sink.lines)
    for name in ("<lora:more_details:0.5>", "<lora:SDXLrender_v2.0:1>", "JuggernautNegative-neg"):
        assert name in log


def test_a_model_of_ones_own(paint: Paint, detailing: DiffusionEngine, tmp_path: Path) -> None:
    parts = detailing.manager.parts(ROLE)
    same = detail_models.checkpoint(tmp_path / "same", parts["unet"], parts["text_encoder"])
    fresh = diffusion_models.stable_diffusion_parts(tmp_path / "fresh", seed=9)
    other = detail_models.checkpoint(tmp_path / "other", fresh["unet"], fresh["text_encoder"])
    plain, by_same, by_other, after = (
        paint(**({"custom_sd_model_file": upload(one)} if one else {}))
        for one in (None, same, other, None)
    )
    assert numpy.array_equal(by_same, plain)
    assert not numpy.array_equal(by_other, plain)
    assert numpy.array_equal(after, plain)


FOREIGN = {
    "custom_sd_model": "model.diffusion_model.input_blocks.0.0.weight",
    "lora_links": "lora_unet_nothing.lora_down.weight",
}


@pytest.mark.parametrize("field", FOREIGN)
@pytest.mark.parametrize("content", [b"", b"\x80\x04K\x01.", b"junk" * 99, None])
def test_what_is_no_weights(work: Work, tmp_path: Path, field: str, content: bytes | None) -> None:
    path = tmp_path / "weights"
    if content is None:
        safetensors.save_file({FOREIGN[field]: torch.zeros(3, 3)}, path)
    else:
        path.write_bytes(content)
    with pytest.raises(errors.BadRequestError, match=field) as caught:
        work(**{f"{field}_file": upload(path)})
    assert caught.value.param == field


@pytest.mark.parametrize("missing", [ROLE, "detail:controlnet"])
def test_a_missing_model_is_named(detail: dict[str, Path], tmp_path: Path, missing: str) -> None:
    pulled = {ROLE: "juggernaut-reborn", "detail:controlnet": "control-v11f1e-sd15-tile"}[missing]
    engine = diffusion.engine({role: one for role, one in detail.items() if role != missing})
    with pytest.raises(errors.NoBackendError, match=f"polymux models pull {pulled}") as caught:
        worked(engine, tmp_path, SMALL)
    assert caught.value.status == 501


@pytest.mark.usefixtures("previews_at_once")
def test_previews_change_nothing(paint: Paint, detail: dict[str, Path], tmp_path: Path) -> None:
    output, sink = worked(diffusion.engine(detail), tmp_path, SMALL)
    # One preview after each step except the last, which the image itself follows.
    assert len(sink.previews) == 1
    with Image.open(output.value[0].path) as opened:
        assert numpy.array_equal(numpy.asarray(opened), paint())
