"""The schedulers of the API as classes of diffusers with options.

The names are the values of the Replicate models' ``scheduler`` fields. The classes are documented
at https://huggingface.co/docs/diffusers/api/schedulers/overview.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Mapping


class Scheduler(NamedTuple):
    """A scheduler class of diffusers.

    Attributes:
        kind: Name of the class.
        options: Options in addition to the model's configuration.
        passes: Evaluations of the model per step.
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
    # Without the first Runge-Kutta steps, as in the original Stable Diffusion.
    "PNDM": Scheduler("PNDMScheduler", {"skip_prk_steps": True}),
    "HeunDiscrete": Scheduler("HeunDiscreteScheduler", passes=2),
    "DPMSolverMultistep": Scheduler("DPMSolverMultistepScheduler"),
    "KarrasDPM": Scheduler("DPMSolverMultistepScheduler", _KARRAS),
    "DPM++2MKarras": Scheduler("DPMSolverMultistepScheduler", _KARRAS),
    "DPM++2MSDE": Scheduler("DPMSolverMultistepScheduler", _SDE),
    "DPMSolver++": Scheduler("DPMSolverMultistepScheduler"),
}
#: Variants of the solvers for networks with the noise parametrization of Karras et al.,
#: "Elucidating the Design Space of Diffusion-Based Generative Models", 2022, such as Playground.
#: They do not work for other networks.
_ELUCIDATED = {
    "EulerDiscreteScheduler": "EDMEulerScheduler",
    "DPMSolverMultistepScheduler": "EDMDPMSolverMultistepScheduler",
}
#: Training settings of Stable Diffusion, for configurations without them.
_TRAINED = {
    "beta_start": 0.00085,
    "beta_end": 0.012,
    "beta_schedule": "scaled_linear",
    "clip_sample": False,
    "set_alpha_to_one": False,
    "steps_offset": 1,
}


def of_pictures(name: str, config: Mapping[str, Any], **options: Any) -> Any:
    """Create a scheduler for images.

    Args:
        name: Name of the scheduler in the API.
        config: Configuration of the model's scheduler.
        options: Options that override the others.

    Raises:
        BadRequestError: The name is unknown.
    """
    which = _named(name)
    if _is_elucidated(config):
        which = which._replace(kind=_ELUCIDATED.get(which.kind, which.kind))
    return made(which, config, **options)


def is_foreign(name: str, config: Mapping[str, Any]) -> bool:
    """Whether a model gives bad results with a scheduler, because it needs other solvers.

    Raises:
        BadRequestError: The name is unknown.
    """
    return _is_elucidated(config) and _named(name).kind not in _ELUCIDATED


def _is_elucidated(config: Mapping[str, Any]) -> bool:
    return config.get("sigma_data") is not None


def passes_of_pictures(name: str) -> int:
    """Return how often a step of a scheduler evaluates the model.

    Raises:
        BadRequestError: The name is unknown.
    """
    return _named(name).passes


def made(which: Scheduler, config: Mapping[str, Any], **options: Any) -> Any:
    """Create a scheduler with the applicable part of the model's configuration."""
    import diffusers

    kind = getattr(diffusers, which.kind)
    plain = {name: one for name, one in config.items() if not name.startswith("_")}
    # Settings of the model's own solver do not apply to other solvers.
    for name in ("algorithm_type", "solver_type", "solver_order"):
        plain.pop(name, None)
    plain = {**_TRAINED, **plain} if "beta_start" not in plain else plain
    return kind.from_config(plain, **{**which.options, **options})


def _named(name: str) -> Scheduler:
    return known(_PICTURES, name, "unknown scheduler")


def known(schedulers: Mapping[str, Scheduler], name: str, problem: str) -> Scheduler:
    """Return a scheduler by name.

    Args:
        schedulers: The available schedulers.
        name: The name.
        problem: Text of the error if the name is unknown.

    Raises:
        BadRequestError: The name is unknown.
    """
    if name not in schedulers:
        raise bad_request(
            f"scheduler={name!r}: {problem} (allowed: {', '.join(schedulers)})",
            param="scheduler",
        )
    return schedulers[name]
