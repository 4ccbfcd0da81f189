"""AUTOMATIC1111's samplers as classes of diffusers that can start at an intermediate step.

The table follows https://huggingface.co/docs/diffusers/api/schedulers/overview, with newer options:
SDE solvers of third order and single-step SDE solvers.
"""

from __future__ import annotations

import inspect
import warnings
from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion.schedulers import Scheduler, known, made

if TYPE_CHECKING:
    from collections.abc import Mapping

DEFAULT = "DPM++ 3M SDE Karras"

# These options override the model's configuration, which is for another solver.
_PLAIN = {"use_karras_sigmas": False, "use_exponential_sigmas": False, "use_beta_sigmas": False}
_KARRAS = {**_PLAIN, "use_karras_sigmas": True}
_EXPONENTIAL = {**_PLAIN, "use_exponential_sigmas": True}
_MULTI, _SINGLE = "DPMSolverMultistepScheduler", "DPMSolverSinglestepScheduler"
_SDE = {"algorithm_type": "sde-dpmsolver++"}
_HEUN = {**_SDE, "solver_type": "heun"}
_THIRD = {**_SDE, "solver_order": 3}
# Without this option, the last steps fail if the order does not divide their number.
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
    """Return a scheduler by its name in AUTOMATIC1111's web UI.

    Args:
        name: The name.

    Raises:
        BadRequestError: The name is unknown.

    Example:
        >>> from polymux.engines.diffusion.upscale.schedulers import named
        >>> named("DPM2 a").kind
        'KDPM2AncestralDiscreteScheduler'
    """
    return known(_NAMED, name, "unsupported scheduler")


def calls(name: str, steps: int) -> int:
    """Return how often the model is evaluated in the given number of final steps.

    Raises:
        BadRequestError: The scheduler is unknown.

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
    """A solver that starts at the noise level that was added to the image.

    Args:
        name: Name of the scheduler.
        config: Configuration of the model's scheduler.
        steps: Number of steps of a complete denoising.
        last: How many of the last steps are run; at least 1.
        device: The device.

    Attributes:
        timesteps: Timesteps at which the model is evaluated, noisiest first. Some solvers evaluate
            it twice per step.

    Raises:
        BadRequestError: The scheduler is unknown.
    """

    def __init__(
        self, name: str, config: Mapping[str, Any], steps: int, last: int, device: Any
    ) -> None:
        which = named(name)
        with warnings.catch_warnings():
            # Some solvers of diffusers pass tensors to NumPy in a deprecated way.
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
        """Repeat the first step, as PLMS requires from any start."""
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
        """Return the latents after one step.

        Args:
            prediction: Output of the network.
            timestep: The timestep.
            latents: The current latents.
            generator: Generator of the noise that ancestral and stochastic solvers add.
        """
        self._done += 1
        others: dict[str, Any] = {"generator": generator} if self._takes_generator else {}
        if self._kind == _LMS:
            # The default order would use derivatives of earlier steps, which were not run.
            others["order"] = min(self._done, _LMS_ORDER)
        return self._scheduler.step(prediction, timestep, latents, return_dict=False, **others)[0]
