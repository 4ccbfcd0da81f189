"""Solvers by the names of AUTOMATIC1111's samplers, as classes of diffusers, begun on the way.

The table is that of https://huggingface.co/docs/diffusers/api/schedulers/overview, with what has
become possible since: SDEs of the third order and with single steps.
"""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion.schedulers import Scheduler, known, made

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "DPM++ 3M SDE Karras"

# What a model's own configuration may say otherwise is said here: its solver is another one.
_PLAIN = {"use_karras_sigmas": False, "use_exponential_sigmas": False, "use_beta_sigmas": False}
_KARRAS = {**_PLAIN, "use_karras_sigmas": True}
_EXPONENTIAL = {**_PLAIN, "use_exponential_sigmas": True}
_MULTI, _SINGLE = "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler"
_SDE = {"algorithm_type": "sde-dpmsolver++"}
_HEUN = {**_SDE, "solver_type": "heun"}
_THIRD = {**_SDE, "solver_order": 3}
# Without it a number of steps that the order does not divide has no solver for its last.
_BY_STEPS = {**_SDE, "lower_order_final": True}
_DPM2, _DPM2_A = "KDPM2DiscreteScheduler", "KDPM2AncestralDiscreteScheduler"
_LMS, _PLMS = "LMSDiscreteScheduler", "PNDMScheduler"
_WITHIN = {"clip_sample": False, "set_alpha_to_one": False}

_NAMED: Mapping[str, Scheduler] = {
    "DPM++ 2M": Scheduler(_MULTI, _PLAIN),
    "DPM++ 2M Karras": Scheduler(_MULTI, _KARRAS),
    "DPM++ SDE": Scheduler(_SINGLE, _BY_STEPS | _PLAIN),
    "DPM++ SDE Karras": Scheduler(_SINGLE, _BY_STEPS | _KARRAS),
    "DPM++ 2M SDE": Scheduler(_MULTI, _SDE | _PLAIN),
    "DPM++ 2M SDE Karras": Scheduler(_MULTI, _SDE | _KARRAS),
    "DPM++ 2M SDE Exponential": Scheduler(_MULTI, _SDE | _EXPONENTIAL),
    "DPM++ 2M SDE Heun": Scheduler(_MULTI, _HEUN | _PLAIN),
    "DPM++ 2M SDE Heun Karras": Scheduler(_MULTI, _HEUN | _KARRAS),
    "DPM++ 2M SDE Heun Exponential": Scheduler(_MULTI, _HEUN | _EXPONENTIAL),
    "DPM++ 3M SDE": Scheduler(_MULTI, _THIRD | _PLAIN),
    "DPM++ 3M SDE Karras": Scheduler(_MULTI, _THIRD | _KARRAS),
    "DPM++ 3M SDE Exponential": Scheduler(_MULTI, _THIRD | _EXPONENTIAL),
    "DPM2": Scheduler(_DPM2, _PLAIN, passes=2),
    "DPM2 Karras": Scheduler(_DPM2, _KARRAS, passes=2),
    "DPM2 a": Scheduler(_DPM2_A, _PLAIN, passes=2),
    "DPM2 a Karras": Scheduler(_DPM2_A, _KARRAS, passes=2),
    "Euler": Scheduler("EulerDiscreteScheduler", _PLAIN),
    "Euler a": Scheduler("EulerAncestralDiscreteScheduler"),
    "Heun": Scheduler("HeunDiscreteScheduler", {**_PLAIN, "clip_sample": False}, passes=2),
    "LMS": Scheduler(_LMS, _PLAIN),
    "LMS Karras": Scheduler(_LMS, _KARRAS),
    "DDIM": Scheduler("DDIMScheduler", _WITHIN),
    "PLMS": Scheduler(_PLMS, {"skip_prk_steps": True, "set_alpha_to_one": False}),
    "UniPC": Scheduler("UniPCMultistepScheduler", _PLAIN),
}
_LMS_ORDER = 4


def named(name: str) -> Scheduler:
    """The class of a solver.

    Args:
        name: As AUTOMATIC1111's web page calls it.

    Raises:
        BadRequestError: Nothing here does what that name says.

    Example:
        >>> from polymux.engines.diffusion.upscale.schedulers import named
        >>> named("DPM2 a").kind
        'KDPM2AncestralDiscreteScheduler'
    """
    return known(_NAMED, name, "does what this one does")


def calls(name: str, steps: int) -> int:
    """How often that many last steps ask the model.

    Raises:
        BadRequestError: There is no such solver.

    Example:
        >>> from polymux.engines.diffusion.upscale.schedulers import calls
        >>> calls("Euler", 6), calls("Heun", 6), calls("PLMS", 6)
        (6, 11, 7)
    """
    found = named(name)
    if found.kind == _PLMS and steps > 1:
        return steps + 1
    return steps * found.passes - (found.passes - 1)


class Solver:
    """A solver that begins where only so much noise is left as was added.

    Args:
        steps: How many steps the whole way from noise has.
        last: How many of them are gone: the last ones; at least 1.

    Attributes:
        timesteps: Those that the model is asked about, the noisiest first; some solvers ask twice
            a step.

    Raises:
        BadRequestError: There is no such solver.
    """

    def __init__(
        self, name: str, config: Mapping[str, Any], steps: int, last: int, device: Any
    ) -> None:
        which = named(name)
        with warnings.catch_warnings():
            # Some of diffusers' solvers hand tensors to NumPy in a way that it warns of.
            warnings.simplefilter("ignore", DeprecationWarning)
            self._scheduler = made(which, config)
            self._scheduler.set_timesteps(steps, device=device)
        self._kind = which.kind
        self._done = 0
        self._takes_generator = "generator" in inspect.signature(self._scheduler.step).parameters
        if which.kind == _PLMS:
            self.timesteps = self._of_plms(steps - last)
            return
        begin = (steps - last) * self._scheduler.order
        self.timesteps = self._scheduler.timesteps[begin:]
        if hasattr(self._scheduler, "set_begin_index"):
            self._scheduler.set_begin_index(begin)

    def _of_plms(self, begin: int) -> Any:
        """PLMS goes its first step twice, wherever it begins."""
        import torch

        plain = self._scheduler.timesteps
        plain = torch.cat((plain[:1], plain[2:])) if len(plain) > 1 else plain
        plain = plain[begin:]
        return torch.cat((plain[:1], plain[1:2], plain[1:]))

    def noisy(self, latents: Any, noise: Any) -> Any:
        return self._scheduler.add_noise(latents, noise, self.timesteps[:1])

    def scaled(self, latents: Any, timestep: Any) -> Any:
        return self._scheduler.scale_model_input(latents, timestep)

    def next(self, prediction: Any, timestep: Any, latents: Any, generator: Any) -> Any:
        """Latents one step further.

        Args:
            generator: Of the noise that ancestral and stochastic solvers add.
        """
        self._done += 1
        others: dict[str, Any] = {"generator": generator} if self._takes_generator else {}
        if self._kind == _LMS:
            # It would go by what it had seen on the whole way, which begins elsewhere.
            others["order"] = min(self._done, _LMS_ORDER)
        return self._scheduler.step(prediction, timestep, latents, return_dict=False, **others)[0]
