"""The schedulers of the interface, by their names there, as classes of diffusers with options.

The names are those of the Replicate models' ``scheduler`` fields.
https://huggingface.co/docs/diffusers/api/schedulers/overview has the classes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping


class Scheduler(NamedTuple):
    """A class of diffusers.

    Attributes:
        kind: Its name.
        options: Beside what the model's own configuration says.
        passes: How often a step asks the model.
    """

    kind: str
    options: Mapping[str, Any] = {}
    passes: int = 1


_KARRAS = {"use_karras_sigmas": True}
_SDE = {"algorithm_type": "sde-dpmsolver++"}
_PICTURES = {
    "K_EULER": Scheduler("EulerDiscreteScheduler"),
    "K_EULER_ANCESTRAL": Scheduler("EulerAncestralDiscreteScheduler"),
    "DDIM": Scheduler("DDIMScheduler"),
    # Without its first steps by Runge-Kutta's method, as Stable Diffusion was published with it.
    "PNDM": Scheduler("PNDMScheduler", {"skip_prk_steps": True}),
    "HeunDiscrete": Scheduler("HeunDiscreteScheduler", passes=2),
    "DPMSolverMultistep": Scheduler("DPMSolverMultistepScheduler"),
    "KarrasDPM": Scheduler("DPMSolverMultistepScheduler", _KARRAS),
    "DPM++2MKarras": Scheduler("DPMSolverMultistepScheduler", _KARRAS),
    "DPM++2MSDE": Scheduler("DPMSolverMultistepScheduler", _SDE),
    "DPMSolver++": Scheduler("DPMSolverMultistepScheduler"),
}
#: The same solvers for networks that are told noise as Karras et al. have it, such as Playground's:
#: "Elucidating the Design Space of Diffusion-Based Generative Models", 2022. Of no use for others.
_ELUCIDATED = {
    "EulerDiscreteScheduler": "EDMEulerScheduler",
    "DPMSolverMultistepScheduler": "EDMDPMSolverMultistepScheduler",
}
#: What Stable Diffusion was trained with, for configurations that do not say it.
_TRAINED = {
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "clip_sample": False,
    "set_alpha_to_one": False,
    "steps_offset": 1,
}


def of_pictures(name: str, config: Mapping[str, Any], **options: Any) -> Any:
    """A new scheduler for pictures.

    Args:
        options: Beside both.

    Raises:
        BadRequestError: There is none of that name.
    """
    which = _named(name)
    if _is_elucidated(config):
        which = which._replace(kind=_ELUCIDATED.get(which.kind, which.kind))
    return made(which, config, **options)


def is_foreign(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a model was made for other solvers than that, and paints badly with it.

    Raises:
        BadRequestError: There is none of that name.
    """
    return _is_elucidated(config) and _named(name).kind not in _ELUCIDATED


def _is_elucidated(config: Mapping[str, Any]) -> bool:
    return config.get("sigma_data") is not None


def passes_of_pictures(name: str) -> int:
    """How often a step of that scheduler asks the model.

    Raises:
        BadRequestError: There is none of that name.
    """
    return _named(name).passes


def made(which: Scheduler, config: Mapping[str, Any], **options: Any) -> Any:
    """A new scheduler of a class, with the model's configuration as far as it fits."""
    import diffusers

    kind = getattr(diffusers, which.kind)
    plain = {name: one for name, one in config.items() if not name.startswith("_")}
    # What others' solvers were told is none of this one's.
    for name in ("algorithm_type", "solver_type", "solver_order"):
        plain.pop(name, None)
    plain = {**_TRAINED, **plain} if "beta_start" not in plain else plain
    return kind.from_config(plain, **{**which.options, **options})


def _named(name: str) -> Scheduler:
    return known(_PICTURES, name, "has that name")


def known(schedulers: Mapping[str, Scheduler], name: str, lacking: str) -> Scheduler:
    """One of some schedulers.

    Args:
        lacking: What none of them does where it is none of them, for people.

    Raises:
        BadRequestError: It is none of them.
    """
    if name not in schedulers:
        raise bad_request(
            f"scheduler={name!r}: no solver here {lacking}; there are: {', '.join(schedulers)}",
            param="scheduler",
        )
    return schedulers[name]
