"""The models of diffusion, loaded once and shared, and the device that they are on.

A request gets a pipeline of its own over the shared parts, with its own scheduler: two with
different ones do not mix. One piece of work at a time has the device.
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
from polymux.models.diffusion_folders import weight_bytes
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import torch

    from polymux.engines.base import EngineSink

#: Beside the weights, so much of them again is used while it works.
_WORKING_SHARE = 1.3
#: The part of a model that is one by itself.
_WHOLE = "whole"
_MAX_PIXELS = 2048 * 2048
_OFFLOADS = ("auto", "none", "model", "sequential")
_ATTENTIONS = ("auto", "whole", "sliced")
#: The first of NVIDIA's GPUs for which torch has attention that keeps no matrix of all with all.
_SPARING_GPUS = (5, 0)
#: Above that, a decoder works in tiles: its memory grows with the pixels.
_UNTILED_PIXELS = 1280 * 1280


@dataclass(frozen=True, slots=True)
class ModelSlot:
    """A model in its role.

    Attributes:
        role: As `polymux.models.roles` calls it.
        name: Of the model.
        path: Its folder.
        instead_of: The model that belongs there, where this is a substitute; else empty.
        known_version: SHA-256 of its largest file, where a manifest has it; else empty.
    """

    role: str
    name: str
    path: Path
    instead_of: str
    known_version: str

    @property
    def version(self) -> str:
        """SHA-256 of its largest file: read through once, where no manifest has it."""
        return self.known_version or folders.version(self.path)


class PipelineManager:
    """Models and a device.

    Args:
        options: ``models`` (role to ``path``, ``name``, and perhaps ``instead_of``, ``version``),
            ``device`` (``"auto"``: CUDA where there is one), ``dtype`` (``"auto"``: bfloat16 or
            float16 on CUDA, float32 on a processor), ``offload`` (``"auto"``: where the device is
            short of memory; ``"none"``, ``"model"``, ``"sequential"``), ``attention`` (``"auto"``:
            one head after the other where torch has nothing that is as sparing; ``"whole"``,
            ``"sliced"``), ``max_pixels`` of a picture that is made (2048 x 2048),
            ``untiled_pixels``, above which it is decoded in tiles (1280 x 1280), ``loras`` (name to
            path of its weights),
            ``non_commercial`` (whether such weights may be used: false), ``tiny_vae`` (whether
            the role ``picture:decoder`` decodes: false), ``previews`` (true), ``upscaler`` (path of
            a network of ncnn, a .param file, by which detail begins; Lanczos' filter without) and
            ``upscaler_factor`` (its own), ``max_detail_pixels`` of what detail makes (64 million).

    Raises:
        NoBackendError: A package is missing, or the device is not there.
    """

    def __init__(self, options: Mapping[str, Any]) -> None:
        try:
            import diffusers
            import torch
            import transformers
        except ImportError as error:
            package = error.name or "diffusers"
            raise missing_package("generation", package, "diffusion") from None
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
            role: ModelSlot(
                role,
                str(one.get("name", "")),
                Path(one["path"]),
                str(one.get("instead_of", "")),
                str(one.get("version", "")),
            )
            for role, one in dict(options.get("models", {})).items()
        }
        #: Folder to its parts, the longest unused first.
        self._loaded: dict[Path, dict[str, Any]] = {}
        #: Held by whoever works with the device.
        self.lock = threading.Lock()

    def slot(self, role: str) -> ModelSlot:
        """The model in a role.

        Raises:
            NoBackendError: There is none.
        """
        found = self._slots.get(role)
        if found is None:
            raise status_error(errors.NoBackendError, f"no model here has the role {role}")
        return found

    def has(self, role: str) -> bool:
        return role in self._slots

    def weight_bytes(self, role: str) -> int:
        """What the weights of the model in a role take in memory, whatever they take on disk.

        What cannot be read counts for nothing: loading it says what is wrong.
        """
        try:
            return weight_bytes(self.slot(role).path, self.dtype.itemsize)
        except (errors.InvalidRequestError, OSError):
            return 0

    def is_loaded(self, role: str) -> bool:
        return role in self._slots and self._slots[role].path in self._loaded

    def parts(self, role: str) -> dict[str, Any]:
        """The parts of a model by their names, loaded where they are not: unet, vae, and so on.

        Raises:
            NoBackendError: The folder is no model, or holds pickles instead of safetensors.
        """
        return self._kept(role, lambda path: folders.loaded(path, self.dtype))

    def part(self, role: str, kind: str | type) -> Any:
        """A model that is a part by itself, such as a ControlNet, loaded where it is not.

        Args:
            role: Of the model.
            kind: Its class in diffusers by its name, or any class.

        Raises:
            NoBackendError: The folder holds none, or holds pickles.
        """
        load = folders.loaded_one
        return self._kept(role, lambda path: {_WHOLE: load(path, kind, self.dtype)})[_WHOLE]

    def _kept(self, role: str, load: Callable[[Path], dict[str, Any]]) -> dict[str, Any]:
        """What is in memory for a role; where it is not, what loading gives. Now the last used."""
        path = self.slot(role).path
        parts = self._loaded.pop(path, None)
        if parts is None:
            self._make_room(self.weight_bytes(role))
            parts = load(path)
        self._loaded[path] = parts
        return parts

    def prepare_decoder(self, decoder: Any, size: tuple[int, int]) -> None:
        """Has it work on one picture at a time, and in tiles where that is large."""
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
        """A pipeline over a model's parts, on the device, for one request.

        Args:
            kind: Class of diffusers, such as ``"StableDiffusionXLPipeline"``.
            others: Parts in the place of the model's, or beside them.
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
                # Decoders are widened while they work, and stay so where that was cut short.
                if module.dtype != dtype:
                    module.to(dtype)
            del made, dtypes
            if self.device.type == "cuda":
                self._free()

    def _slices_attention(self) -> bool:
        """Whether attention is computed one head after the other.

        Torch's own kernels need memory for what goes in and comes out alone, and slicing would only
        cost time; where a GPU has none of them, a matrix of all with all is kept for each head.
        """
        if self._attention != "auto":
            return self._attention == "sliced"
        if self.device.type == "cpu":
            return False
        return bool(self._torch.cuda.get_device_capability(self.device) < _SPARING_GPUS)

    def _place(self, pipeline: Any) -> str:
        """Puts its parts on the device: all, or one after the other where that is short."""
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
        """How its parts fit the device; models that are not at work leave it first."""
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
        """Takes the models off the device that this pipeline has no part of."""
        at_work = {id(one) for one in _modules(pipeline)}
        for parts in self._loaded.values():
            for one in parts.values():
                if isinstance(one, self._torch.nn.Module) and id(one) not in at_work:
                    one.to("cpu")
        self._free()

    def check_size(self, size: tuple[int, int]) -> None:
        """Refuses a width and height that come to more pixels than are made.

        Raises:
            RequestTooLargeError: They do.
        """
        pixels = size[0] * size[1]
        if pixels > self.max_pixels:
            raise status_error(
                errors.RequestTooLargeError,
                f"{size[0]} x {size[1]}: that are {pixels / 1e6:.1f} megapixels, and "
                f"{self.max_pixels / 1e6:.1f} are the most",
            )

    def generator(self, seed: int) -> torch.Generator:
        """The source of noise for a seed: the processor's, so that all devices begin alike."""
        return self._torch.Generator("cpu").manual_seed(seed % (1 << 63))


def seed_of(values: Mapping[str, Any], sink: EngineSink) -> int:
    """The seed of a request, told in its log; any where it names none."""
    given = values.get("seed")
    seed = random.SystemRandom().randrange(1 << 32) if given is None else int(given)
    sink.log(f"seed: {seed}")
    return seed


def _hush(*libraries: Any) -> None:
    """What libraries say is nobody's business unless something is wrong."""
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
            errors.NoBackendError, f"device={wanted!r}: must be auto, cpu, cuda or cuda:N"
        )
    if device.type == "cuda" and not torch.cuda.is_available():
        raise status_error(
            errors.NoBackendError, f"device={wanted!r}: torch finds no CUDA device here"
        )
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
            f"dtype={wanted!r}: must be auto, float32, float16 or bfloat16",
        )
    return getattr(torch, wanted)


def _one_of(known: tuple[str, ...], options: Mapping[str, Any], name: str) -> str:
    """An option's value, the first where there is none."""
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
