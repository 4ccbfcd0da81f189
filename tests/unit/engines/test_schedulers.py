from __future__ import annotations

import re
from typing import Any

import pytest
from polymux import contract
from polymux.engines.diffusion import schedulers
from polymux.engines.diffusion.upscale import schedulers as upscale_schedulers
from polymux.errors import BadRequestError
from support.lazy_imports import diffusers

#: The scheduler configurations of the published models.
SDXL = {
    "_class_name": "EulerDiscreteScheduler", "beta_end": 0.012, "beta_schedule": "scaled_linear",
    "beta_start": 0.00085, "clip_sample": False, "interpolation_type": "linear",
    "num_train_timesteps": 1000, "prediction_type": "epsilon", "sample_max_value": 1.0,
    "set_alpha_to_one": False, "skip_prk_steps": True, "steps_offset": 1,
    "timestep_spacing": "leading", "trained_betas": None, "use_karras_sigmas": False,
}  # fmt: skip
EDM = {
    "_class_name": "EDMDPMSolverMultistepScheduler", "algorithm_type": "dpmsolver++",
    "dynamic_thresholding_ratio": 0.995, "euler_at_final": False, "final_sigmas_type": "zero",
    "lower_order_final": True, "num_train_timesteps": 1000, "prediction_type": "epsilon",
    "rho": 7.0, "sample_max_value": 1.0, "sigma_data": 0.5, "sigma_max": 80.0, "sigma_min": 0.002,
    "solver_order": 2, "solver_type": "midpoint", "thresholding": False,
}  # fmt: skip
SD15 = {
    "_class_name": "PNDMScheduler", "beta_end": 0.012, "beta_schedule": "scaled_linear",
    "beta_start": 0.00085, "clip_sample": False, "num_train_timesteps": 1000,
    "set_alpha_to_one": False, "skip_prk_steps": True, "steps_offset": 1, "trained_betas": None,
}  # fmt: skip
NAMES = ("use_karras_sigmas", "algorithm_type", "solver_type", "solver_order", "timestep_spacing")
MULTI, SINGLE = "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler"
EDM_MULTI = "EDMDPMSolverMultistepScheduler"
PP, SDE = "dpmsolver++", "sde-dpmsolver++"

#: Class, use_karras_sigmas, algorithm_type, solver_type, solver_order, timestep_spacing. None: the
#: class lacks this parameter or ignores it.
OF_SDXL = {
    "K_EULER": ("EulerDiscreteScheduler", False, None, None, None, "leading"),
    "K_EULER_ANCESTRAL": ("EulerAncestralDiscreteScheduler", None, None, None, None, "leading"),
    "DDIM": ("DDIMScheduler", None, None, None, None, "leading"),
    "PNDM": ("PNDMScheduler", None, None, None, None, "leading"),
    "HeunDiscrete": ("HeunDiscreteScheduler", False, None, None, None, "leading"),
    "DPMSolverMultistep": (MULTI, False, PP, "midpoint", 2, "leading"),
    "KarrasDPM": (MULTI, True, PP, "midpoint", 2, "leading"),
    "DPM++2MKarras": (MULTI, True, PP, "midpoint", 2, "leading"),
    # The reference uses KDPM2AncestralDiscreteScheduler here; this is the one that the name says.
    "DPM++2MSDE": (MULTI, False, SDE, "midpoint", 2, "leading"),
    "DPMSolver++": (MULTI, False, PP, "midpoint", 2, "leading"),
}
OTHERS = ("K_EULER_ANCESTRAL", "HeunDiscrete")
OF_PLAYGROUND = {
    **{name: (*one[:-1], "linspace" if name in OTHERS else "leading")
       for name, one in OF_SDXL.items()},
    "K_EULER": ("EDMEulerScheduler", None, None, None, None, None),
    **{name: (EDM_MULTI, None, *one[2:-1], None)
       for name, one in OF_SDXL.items() if one[0] == MULTI},
}  # fmt: skip
LINEAR = (None, None, None, "linspace")
OF_DETAIL = {
    "DPM++ 2M": (MULTI, False, PP, "midpoint", 2, "linspace"),
    "DPM++ SDE": (SINGLE, False, SDE, "midpoint", 2, None),
    "DPM++ 2M SDE": (MULTI, False, SDE, "midpoint", 2, "linspace"),
    "DPM++ 2M SDE Heun": (MULTI, False, SDE, "heun", 2, "linspace"),
    "DPM++ 3M SDE": (MULTI, False, SDE, "midpoint", 3, "linspace"),
    "DPM2": ("KDPM2DiscreteScheduler", False, *LINEAR),
    "DPM2 a": ("KDPM2AncestralDiscreteScheduler", False, *LINEAR),
    "Euler": ("EulerDiscreteScheduler", False, *LINEAR),
    "Euler a": ("EulerAncestralDiscreteScheduler", None, *LINEAR),
    "Heun": ("HeunDiscreteScheduler", False, *LINEAR),
    "LMS": ("LMSDiscreteScheduler", False, *LINEAR),
    "DDIM": ("DDIMScheduler", None, None, None, None, "leading"),
    "PLMS": ("PNDMScheduler", None, None, None, None, "leading"),
    "UniPC": ("UniPCMultistepScheduler", False, None, "bh2", 2, "linspace"),
}
#: The schedulers of OF_DETAIL that also exist with Karras noise levels.
KARRAS = {
    "DPM++ 2M", "DPM++ SDE", "DPM++ 2M SDE", "DPM++ 2M SDE Heun", "DPM++ 3M SDE", "DPM2", "DPM2 a",
    "LMS",
}  # fmt: skip
EXPONENTIAL = {"DPM++ 2M SDE", "DPM++ 2M SDE Heun", "DPM++ 3M SDE"}
for _name, (_class, _, *_rest) in list(OF_DETAIL.items()):
    if _name in KARRAS:
        OF_DETAIL[f"{_name} Karras"] = (_class, True, *_rest)
    if _name in EXPONENTIAL:
        OF_DETAIL[f"{_name} Exponential"] = (_class, False, *_rest)
#: Schedulers without an equivalent in diffusers.
REFUSED = {"DPM fast", "DPM adaptive", "DPM++ 2S a", "DPM++ 2S a Karras", "Restart"}


def settings_of(scheduler: Any) -> tuple[Any, ...]:
    import inspect

    taken = inspect.signature(type(scheduler).__init__).parameters
    found = (scheduler.config[name] if name in taken else None for name in NAMES)
    name = type(scheduler).__name__
    assert type(scheduler) is getattr(diffusers, name), "another class of this name"
    return (name, *found)


def choices(operation: str, variant: str) -> set[str]:
    shape = next(one for one in contract.operation(operation).variants if one.id == variant)
    return set(next(one.choices for one in shape.fields if one.name == "scheduler"))


@pytest.mark.parametrize("name", OF_SDXL)
def test_schedulers_of_pictures(name: str) -> None:
    assert settings_of(schedulers.of_pictures(name, SDXL)) == OF_SDXL[name]
    assert not schedulers.is_foreign(name, SDXL)


@pytest.mark.parametrize("name", OF_PLAYGROUND)
def test_schedulers_of_a_network_with_edm_noise(name: str) -> None:
    made = schedulers.of_pictures(name, EDM)
    assert settings_of(made) == OF_PLAYGROUND[name]
    is_made_for_it = OF_PLAYGROUND[name][0].startswith("EDM")
    assert schedulers.is_foreign(name, EDM) is not is_made_for_it
    if is_made_for_it:
        values = [made.config[one] for one in ("sigma_min", "sigma_max", "sigma_data", "rho")]
        assert values == [0.002, 80.0, 0.5, 7.0]
    else:
        assert made.config["beta_schedule"] == "scaled_linear"
        assert made.config["clip_sample"] is False, "latents are larger than 1"


@pytest.mark.parametrize("name", OF_DETAIL)
def test_schedulers_of_detail(name: str) -> None:
    made = upscale_schedulers.Solver(name, SD15, 18, 6, "cpu")._scheduler
    assert settings_of(made) == OF_DETAIL[name]
    assert made.config.get("use_exponential_sigmas", False) is name.endswith("Exponential")
    assert made.config["steps_offset"] == 1


@pytest.mark.parametrize("variant", ["A", "B", "C"])
def test_no_choice_of_pictures_is_missing(variant: str) -> None:
    assert choices("generate_image", variant) <= set(OF_SDXL)


def test_no_choice_of_detail_is_missing_but_those_that_are_refused_by_name() -> None:
    assert choices("upscale_image", "A") == set(OF_DETAIL) | REFUSED
    for name in REFUSED:
        with pytest.raises(BadRequestError, match=re.escape(repr(name))):
            upscale_schedulers.named(name)
    with pytest.raises(BadRequestError, match="'Restart'"):
        schedulers.of_pictures("Restart", SDXL)
