"""Loading and sharing of diffusion models, and their placement on the device.

Each request gets a pipeline with its own scheduler over the shared components, because schedulers
have state. One request at a time uses the device.
"""

from __future__ import annotations

import gc
import random
import threading
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import missing_package, threads
from polymux.engines.diffusion import folders
from polymux.engines.diffusion.image_files import GRID_PX
from polymux.engines.diffusion.native_size import drawn_size
from polymux.models.diffusion_folders import weight_bytes
from polymux.models.roles import request_of
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import torch

    from polymux.engines.base import EngineSink

#: Memory during execution relative to the size of the weights.
_WORKING_SHARE = 1.3
#: Key of a model that is a single component.
_WHOLE = "whole"
_MAX_PIXELS = 2048 * 2048
_OFFLOADS = ("auto", "none", "model", "sequential")
_ATTENTIONS = ("auto", "whole", "sliced")
#: Minimum compute capability of NVIDIA GPUs for torch's memory-efficient attention.
_SPARING_GPUS = (5, 0)
#: Decoders process larger images in tiles, because their memory use grows with the pixels.
_UNTILED_PIXELS = 1280 * 1280


@dataclass(frozen=True, slots=True)
class ModelSlot:
    """A model assigned to a role.

    Attributes:
        role: Role, as in `polymux.models.roles`.
        name: Name of the model.
        path: Its directory.
        instead_of: The role's default model if this is another one, else empty.
        known_version: SHA-256 of its largest file from the manifest; empty if unknown.
        is_small: Whether it is a small model that is used because nothing else is installed.
        native_size: Width and height at which it generates; None for the requested size.
        known_vae_factor: Pixels per latent cell from the manifest; None if unknown.
    """

    role: str
    name: str
    path: Path
    instead_of: str
    known_version: str
    is_small: bool = False
    native_size: tuple[int, int] | None = None
    known_vae_factor: int | None = None

    @classmethod
    def of(cls, role: str, facts: Mapping[str, Any]) -> ModelSlot:
        """Create it from a model's facts in the engine's option ``models``."""
        size = facts.get("native_size")
        return cls(
            role,
            str(facts.get("name", "")),
            Path(facts["path"]),
            str(facts.get("instead_of", "")),
            str(facts.get("version", "")),
            facts.get("is_small") is True,
            tuple(size) if size else None,
            facts.get("vae_factor"),
        )

    @property
    def version(self) -> str:
        """SHA-256 of the largest file. It is computed once if the manifest does not have it."""
        return self.known_version or folders.version(self.path)

    @property
    def vae_factor(self) -> int:
        """Pixels per latent cell on each side."""
        return self.known_vae_factor or folders.vae_factor(self.path)

    def drawn_size(self, size: tuple[int, int]) -> tuple[int, int]:
        """Return the size at which the model generates an image of a requested size."""
        if self.native_size is None:
            return size
        grid_px = max(GRID_PX, self.vae_factor * folders.unet_factor(self.path))
        return drawn_size(self.native_size, size, grid_px)

    def tell_of_substitute(self, sink: EngineSink) -> None:
        """Warn if this is not the default model of its role."""
        if self.is_small:
            request = request_of(self.role)
            command = request[0].replace("_", "-") if request is not None else "OPERATION"
            sink.warn(
                f"using the small model {self.name}, because {self.instead_of} is not installed. "
                "It shows that prompts are followed, not quality. Run 'polymux models recommend "
                f"{command}' to find a larger model for this machine"
            )
        elif self.instead_of:
            sink.warn(f"using model {self.name} instead of {self.instead_of}")


class PipelineManager:
    """The models and the device of the engine.

    Args:
        options: ``models`` (role to ``path``, ``name``, and optionally ``instead_of``, ``version``,
            ``is_small``, ``native_size``, ``vae_factor``), ``device`` (``"auto"``: CUDA if
            available), ``dtype`` (``"auto"``: bfloat16 or float16 on CUDA, float32 on a CPU),
            ``offload`` (``"auto"``: if device memory is low; ``"none"``, ``"model"``,
            ``"sequential"``), ``attention`` (``"auto"``: one head at a time if torch has no
            memory-efficient attention; ``"whole"``, ``"sliced"``), ``max_pixels`` of an output
            image (2048 x 2048), ``untiled_pixels``, above which images are decoded in tiles (1280 x
            1280), ``loras`` (name to path of the weights), ``non_commercial`` (whether
            non-commercial models may be used: false), ``tiny_vae`` (whether the role
            ``picture:decoder`` decodes: false), ``previews`` (true), ``upscaler`` (path of an ncnn
            network, a .param file, that upscales before detail is added; Lanczos if not set) and
            ``upscaler_factor`` (its factor), ``installed_upscaler`` (``path`` and ``name`` of a
            network that enlarges images from a model's native size if ``upscaler`` is not set),
            ``max_detail_pixels`` of an upscaled image (64 million).

    Raises:
        NoBackendError: A package is missing, or the device is not available.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        try:
            import diffusers
            import torch
            import transformers
        except ImportError as error:
            package = error.name or "diffusers"
            raise missing_package("diffusion", package, "diffusion") from None
        _hush(diffusers, transformers)
        torch.set_num_threads(threads())
        self._torch = torch
        self.options = dict(options)
        self.device = _device(torch, str(options.get("device", "auto")))
        self.dtype = _dtype(torch, self.device, str(options.get("dtype", "auto")))
        self._offload = _one_of(_OFFLOADS, options, "offload")
        self._attention = _one_of(_ATTENTIONS, options, "attention")
        self.max_pixels = int(options.get("max_pixels", _MAX_PIXELS))
        self.untiled_pixels = int(options.get("untiled_pixels", _UNTILED_PIXELS))
        self.shows_previews = options.get("previews", True) is True
        self._slots = {
            role: ModelSlot.of(role, one) for role, one in dict(options.get("models", {})).items()
        }
        #: Directory to its loaded components, least recently used first.
        self._loaded: dict[Path, dict[str, Any]] = {}
        #: Held by the request that uses the device.
        self.lock = threading.Lock()

    def slot(self, role: str) -> ModelSlot:
        """Return the model of a role.

        Raises:
            NoBackendError: No model is assigned to the role.
        """
        found = self._slots.get(role)
        if found is None:
            raise status_error(errors.NoBackendError, f"no model is assigned to the role {role}")
        return found

    def has(self, role: str) -> bool:
        return role in self._slots

    def weight_bytes(self, role: str) -> int:
        """Return the memory in bytes of a role's weights, independent of their format on disk.

        Unreadable files count as 0, because loading will report the error.
        """
        try:
            return weight_bytes(self.slot(role).path, self.dtype.itemsize)
        except (errors.InvalidRequestError, OSError):
            return 0

    def is_loaded(self, role: str) -> bool:
        return role in self._slots and self._slots[role].path in self._loaded

    def parts(self, role: str) -> dict[str, Any]:
        """Return the components of a model by name (unet, vae, ...), and load them if needed.

        Raises:
            NoBackendError: The directory is not a model, or its weights are pickles.
        """
        return self._kept(role, lambda path: folders.loaded(path, self.dtype))

    def part(self, role: str, kind: str | type) -> Any:
        """Return a model that is a single component, such as a ControlNet, and load it if needed.

        Args:
            role: Role of the model.
            kind: Name of a class in diffusers, or any class.

        Raises:
            NoBackendError: The directory is not such a component, or its weights are pickles.
        """
        load = folders.loaded_one
        return self._kept(role, lambda path: {_WHOLE: load(path, kind, self.dtype)})[_WHOLE]

    def _kept(self, role: str, load: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """Return the components of a role, load them if needed, and mark them as recently used."""
        path = self.slot(role).path
        parts = self._loaded.pop(path, None)
        if parts is None:
            self._make_room(self.weight_bytes(role))
            parts = load(path)
        self._loaded[path] = parts
        return parts

    def prepare_decoder(self, decoder: Any, size: tuple[int, int]) -> None:
        """Let the decoder process one image at a time, and large images in tiles."""
        if hasattr(decoder, "enable_slicing"):
            decoder.enable_slicing()
        if not hasattr(decoder, "enable_tiling"):
            return
        if size[0] * size[1] > self.untiled_pixels:
            decoder.enable_tiling()
        else:
            decoder.disable_tiling()

    def _make_room(self, needed_bytes: int) -> None:
        from polymux._util.memory import machine_free_bytes

        while self._loaded:
            free = machine_free_bytes()
            if free is None or free >= needed_bytes * _WORKING_SHARE:
                return
            oldest = next(iter(self._loaded))
            del self._loaded[oldest]
            self._free()

    def _free(self) -> None:
        gc.collect()
        if self.device.type == "cuda":
            self._torch.cuda.empty_cache()

    @contextmanager
    def pipeline(self, kind: str, role: str, scheduler: Any, **others: Any) -> Iterator[Any]:
        """Provide a pipeline with a model's components on the device for one request.

        Args:
            kind: Name of a class in diffusers, such as ``"StableDiffusionXLPipeline"``.
            role: Role of the model.
            scheduler: The scheduler.
            others: Components that replace or complement the model's.
        """
        import diffusers

        made = folders.pipeline(
            getattr(diffusers, kind), self.parts(role) | {"scheduler": scheduler} | others
        )
        made.set_progress_bar_config(disable=True)
        if self._slices_attention():
            made.enable_attention_slicing("max")
        how = self._place(made)
        dtypes = [(one, one.dtype) for one in _modules(made)]
        try:
            yield made
        finally:
            if how != "none":
                made.remove_all_hooks()
                made.to("cpu")
            for module, dtype in dtypes:
                # Pipelines upcast decoders while they run; an exception leaves them in that dtype.
                if module.dtype != dtype:
                    module.to(dtype)
            del made, dtypes
            if self.device.type == "cuda":
                self._free()

    def _slices_attention(self) -> bool:
        """Whether attention is computed one head at a time.

        Torch's efficient kernels only need memory for input and output, so slicing would only cost
        time. GPUs without them need a matrix of all pairs of positions for each head.
        """
        if self._attention != "auto":
            return self._attention == "sliced"
        if self.device.type == "cpu":
            return False
        return bool(self._torch.cuda.get_device_capability(self.device) < _SPARING_GPUS)

    def _place(self, pipeline: Any) -> str:
        """Move components to the device: all, or one at a time if its memory is too small."""
        if self.device.type == "cpu":
            return "none"
        how = self._offload if self._offload != "auto" else self._fitting(pipeline)
        if how == "none":
            pipeline.to(self.device)
        elif how == "model":
            pipeline.enable_model_cpu_offload(device=self.device)
        else:
            pipeline.enable_sequential_cpu_offload(device=self.device)
        return how

    def _fitting(self, pipeline: Any) -> str:
        """Return the offload mode that fits. Unused models are removed from the device first."""
        sizes = [_size_bytes(one) for one in _modules(pipeline) if one.device.type == "cpu"]
        if sum(sizes) * _WORKING_SHARE > self._free_bytes():
            self._clear_of_others(pipeline)
        free = self._free_bytes()
        if sum(sizes) * _WORKING_SHARE <= free:
            return "none"
        return "model" if max(sizes) * _WORKING_SHARE <= free else "sequential"

    def _free_bytes(self) -> int:
        return int(self._torch.cuda.mem_get_info(self.device)[0])

    def _clear_of_others(self, pipeline: Any) -> None:
        """Move models that this pipeline does not use to the CPU."""
        at_work = {id(one) for one in _modules(pipeline)}
        for parts in self._loaded.values():
            for one in parts.values():
                if isinstance(one, self._torch.nn.Module) and id(one) not in at_work:
                    one.to("cpu")
        self._free()

    def drawn_size(self, slot: ModelSlot, size: tuple[int, int]) -> tuple[int, int]:
        """Return the size at which a model generates an output, after checking both.

        Raises:
            RequestTooLargeError: The output has too many pixels.
            NoBackendError: The model's native size has too many pixels.
        """
        pixels = size[0] * size[1]
        if pixels > self.max_pixels:
            raise status_error(
                errors.RequestTooLargeError,
                f"output too large (got {size[0]} x {size[1]} pixels, {pixels / 1e6:.1f} "
                f"megapixels, allowed {self.max_pixels / 1e6:.1f} megapixels). Use a smaller width "
                "and height",
            )
        drawn = slot.drawn_size(size)
        if drawn[0] * drawn[1] > self.max_pixels:
            raise status_error(
                errors.NoBackendError,
                f"model {slot.name} cannot be used: it generates at {drawn[0]} x {drawn[1]} pixels "
                f"(allowed {self.max_pixels / 1e6:.1f} megapixels, the engine's option max_pixels)",
            )
        return drawn

    def generator(self, seed: int) -> torch.Generator:
        """Return a noise generator for a seed, on the CPU for equal results on all devices."""
        return self._torch.Generator("cpu").manual_seed(seed % (1 << 63))


def seed_of(values: Mapping[str, Any], sink: EngineSink) -> int:
    """Return the request's seed or a random one, and log it."""
    given = values.get("seed")
    seed = random.SystemRandom().randrange(1 << 32) if given is None else int(given)
    sink.log(f"seed: {seed}")
    return seed


def _hush(*libraries: Any) -> None:
    """Hide the libraries' messages and progress bars, except errors."""
    for library in libraries:
        library.utils.logging.set_verbosity_error()
        library.utils.logging.disable_progress_bar()


def _device(torch: Any, wanted: str) -> Any:
    if wanted == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(wanted)
    except RuntimeError:
        device = None
    if device is None or device.type not in ("cpu", "cuda"):
        raise status_error(
            errors.NoBackendError,
            f"device={wanted!r}: unknown device (allowed: auto, cpu, cuda, cuda:N)",
        )
    if device.type == "cuda" and not torch.cuda.is_available():
        raise status_error(errors.NoBackendError, f"device={wanted!r}: torch found no CUDA device")
    return device


def _dtype(torch: Any, device: Any, wanted: str) -> Any:
    if wanted == "auto":
        if device.type == "cpu":
            wanted = "float32"
        else:
            wanted = "bfloat16" if torch.cuda.is_bf16_supported() else "float16"
    if wanted not in ("float32", "float16", "bfloat16"):
        raise status_error(
            errors.NoBackendError,
            f"dtype={wanted!r}: unknown dtype (allowed: auto, float32, float16, bfloat16)",
        )
    return getattr(torch, wanted)


def _one_of(known: tuple[str, ...], options: Mapping[str, Any], name: str) -> str:
    """Return an option's value; the first known value is the default."""
    wanted = str(options.get(name, known[0]))
    if wanted not in known:
        words = f"{', '.join(known[:-1])} or {known[-1]}"
        raise status_error(errors.NoBackendError, f"{name}={wanted!r}: must be {words}")
    return wanted


def _modules(pipeline: Any) -> list[Any]:
    import torch

    return [one for one in pipeline.components.values() if isinstance(one, torch.nn.Module)]


def _size_bytes(module: Any) -> int:
    return sum(one.numel() * one.element_size() for one in module.parameters())
