"""The engine of stable-diffusion.cpp, which runs in a child process.

The library cannot stop a request, so the supervisor ends the process of a canceled one. The next
process finds the weights in the page cache.
"""

from __future__ import annotations

import io
import logging
import re
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import errors
from polymux.engines.base import Engine, Output, hash_of, missing_package, threads
from polymux.engines.diffusion.image_files import (
    check_size,
    composite,
    grey,
    parameters,
    picture_of,
    png,
    stretched,
    watermark,
)
from polymux.engines.diffusion.loras import FILE
from polymux.engines.diffusion.native_size import Resizer, drawn_size
from polymux.engines.diffusion.pipelines import ModelSlot, seed_of
from polymux.engines.diffusion.video import write_frames
from polymux.engines.sdcpp.models import PARTS, is_checkpoint
from polymux.models.diffusion_folders import is_lora
from polymux.models.roles import needed_roles
from polymux.service.errors import bad_request, engine_failed, status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Produced, Request, Token

    Size = tuple[int, int]

_log = logging.getLogger("polymux.engines")
#: Networks need sides that are multiples of this.
_GRID_PX = 64
#: Fraction of the progress for steps; the rest is decoding and writing.
_SHARE = 0.95
#: Larger images are decoded in tiles.
UNTILED_PIXELS = 768 * 768
_LORA = "replicate_weights"
#: Messages about LoRA weights that are not applied.
_FAILED_LORA = re.compile(r"lora.*failed|Only \(0 / |incompatible LoRA")
#: Metrics from which the backend estimates later requests.
WORK, WORK_S = "work", "work_s"
_PREVIEW_EVERY_S = 2.0
_PREVIEW_PX = 192
#: Schedulers of the API: sampling method and noise schedule of the library.
_SCHEDULERS = {
    "DDIM": ("DDIM_TRAILING", "DISCRETE"),
    "DPMSolverMultistep": ("DPMPP2M", "DISCRETE"),
    "DPMSolver++": ("DPMPP2M", "DISCRETE"),
    "DPM++2MKarras": ("DPMPP2M", "KARRAS"),
    "KarrasDPM": ("DPMPP2M", "KARRAS"),
    "HeunDiscrete": ("HEUN", "DISCRETE"),
    "K_EULER": ("EULER", "DISCRETE"),
    "K_EULER_ANCESTRAL": ("EULER_A", "DISCRETE"),
    "PNDM": ("IPNDM", "DISCRETE"),
    "DPM++2MSDE": ("DPMPP2S_A", "DISCRETE"),
}
#: Schedulers that the library has only in a similar form.
_SIMILAR = ("PNDM", "DPM++2MSDE")
#: Formats of weights in memory: name in settings to name in the library.
WEIGHTS = {
    "auto": "", "f32": "F32", "f16": "F16", "q8_0": "Q8_0", "q5_0": "Q5_0", "q5_1": "Q5_1",
    "q4_0": "Q4_0", "q4_1": "Q4_1",
}  # fmt: skip


class _Job(NamedTuple):
    """A request, the loaded model that runs it, and what watches it."""

    context: Any
    slot: ModelSlot
    request: Request
    sink: EngineSink
    token: Token
    steps: _Steps


class SdcppEngine(Engine):
    """Diffusion on CPUs with quantized weights, one request and one model at a time."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read the options. Models are loaded when they are first needed.

        Args:
            options: ``models`` (role to facts, as for `polymux.engines.diffusion`, and ``parts``:
                files beside the main one), ``weights`` (format in memory, a key of `WEIGHTS`;
                default: that of the file), ``previews`` (default: True), ``max_pixels`` of an
                output (default: 2048 x 2048), ``upscaler`` and ``upscaler_factor``.

        Raises:
            NoBackendError: The package cyllama is missing, or an option is invalid.
        """
        try:
            import cyllama.sd.stable_diffusion as library
        except ImportError as error:
            raise missing_package("sdcpp", "cyllama", "sdcpp", error) from None
        self._library = library
        #: For `Resizer`.
        self.options = dict(options)
        weights = str(options.get("weights", "auto"))
        if weights not in WEIGHTS:
            raise status_error(
                errors.NoBackendError,
                f"weights={weights!r}: unknown format (known: {', '.join(WEIGHTS)})",
            )
        self._weights = WEIGHTS[weights]
        self._max_pixels = int(options.get("max_pixels", 2048 * 2048))
        self._slots = {role: ModelSlot.of(role, one) for role, one in options["models"].items()}
        self._parts = {role: one.get("parts", {}) for role, one in options["models"].items()}
        self._context: Any = None
        self._loaded: tuple[Path, Mapping[str, str]] | None = None
        # The library writes messages and progress to standard output otherwise.
        self._failed_lora = False
        library.set_log_callback(self._log)
        library.set_progress_callback(_ignore)
        return {"weights": weights}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        role = request_role(request)
        slot = self._slots.get(role)
        if slot is None:
            raise status_error(errors.NoBackendError, f"no model is assigned to the role {role}")
        slot.tell_of_substitute(sink)
        token.check()
        context = self._context_of(slot, request.operation)
        steps = _Steps(self._library, sink, previews=self.options.get("previews", True) is True)
        job = _Job(context, slot, request, sink, token, steps)
        files = self._images(job) if request.operation == "generate_image" else self._videos(job)
        return Output(files, slot.known_version or hash_of(slot.path), steps.metrics, slot.name)

    def _log(self, level: int, text: str) -> None:
        # Only for the log of the server, because messages contain paths.
        if level >= self._library.LogLevel.WARN:
            _log.warning("stable-diffusion.cpp: %s", text.strip())
            self._failed_lora |= _FAILED_LORA.search(text) is not None

    def _images(self, job: _Job) -> list[Produced]:
        context, slot, request, sink, token, steps = job
        values = request.values
        image, mask = picture_of(request, "image"), picture_of(request, "mask")
        size = int(values["width"]), int(values["height"])
        if image is not None:
            check_size(image)
            size = image.size if mask is None else size
            image = stretched(image, size)
        mask = None if mask is None else grey(mask, size)
        drawn = self._drawn(slot, size)
        strength = 1.0 if image is None else float(values["prompt_strength"])
        if values.get("disable_safety_checker") is not True:
            sink.warn("images are not checked: this engine has no safety checker")
        mark = watermark(wanted=values.get("apply_watermark") is True, size=size, sink=sink)
        resizer = Resizer(self.options, sink, token)
        seed, count = seed_of(values, sink), int(values["num_outputs"])
        files = []
        for number in range(count):
            given = self._parameters(request, drawn, sink)
            given.seed, given.strength = (seed + number) % (1 << 63), strength
            if image is not None:
                given.set_init_image(self._own(stretched(image, drawn)))
            if mask is not None:
                given.set_mask_image(self._own(stretched(mask, drawn)))
            if image is not None and int(int(values["num_inference_steps"]) * strength) == 0:
                sink.warn(f"prompt_strength={strength:g}: too low, so the image is not changed")
                made = image
            else:
                with steps.of(number, count, drawn):
                    (made,) = self._made(context.generate_with_params, slot, given)
                if self._failed_lora:
                    raise _unfit_lora()
            is_cut = slot.native_size is None and image is None
            made = _cut(made, size) if is_cut else resizer.resized(made, size)
            if mask is not None and image is not None:
                made = composite(made, image, mask)
            token.check()
            words = parameters(values, slot.name, seed + number, made.size)
            metadata = {"parameters": words, "Software": "polymux"}
            files.append(png(mark(made), metadata, sink, f"picture-{number + 1}.png"))
        return files

    def _videos(self, job: _Job) -> list[Produced]:
        import numpy

        context, slot, request, sink, token, steps = job
        values = request.values
        size = int(values["width"]), int(values["height"])
        drawn = self._drawn(slot, size)
        resizer = Resizer(self.options, sink, token)
        frames, fps = int(values["num_frames"]), int(values["fps"])
        # Wan's decoder makes four frames of each latent frame but the first.
        worked = -(-(frames - 1) // 4) * 4 + 1
        seed, count = seed_of(values, sink), int(values["batch_size"])
        asked = int(values.get("num_inference_steps") or values["num_inferences_steps"])
        files = []
        for number in range(count):
            given = {
                "prompt": str(values["prompt"]),
                "negative_prompt": str(values.get("negative_prompt") or ""),
                "width": drawn[0],
                "height": drawn[1],
                "seed": (seed + number) % (1 << 63),
                "video_frames": worked,
                "sample_steps": asked,
                "cfg_scale": max(1.0, float(values["guidance_scale"])),
            }
            with steps.of(number, count, drawn, worked):
                made = self._made(context.generate_video, slot, **given)
            if slot.native_size is None:
                made = [_cut(one, size) for one in made]
            shown = (numpy.asarray(resizer.resized(one, size)) for one in made[:frames])
            name = f"video-{number + 1}.mp4"
            files.append(write_frames(shown, size, frames, fps, name, sink, token))
        return files

    def _drawn(self, slot: ModelSlot, size: Size) -> Size:
        """Return the size at which a model generates an image of a requested size."""
        drawn = drawn_at(slot.native_size, size)
        pixels = max(size[0] * size[1], drawn[0] * drawn[1])
        if pixels > self._max_pixels:
            raise status_error(
                errors.RequestTooLargeError,
                f"the output would be too large (got {pixels / 1e6:.1f} megapixels, allowed "
                f"{self._max_pixels / 1e6:.1f} megapixels). Use a smaller width or height",
            )
        return drawn

    def _parameters(self, request: Request, drawn: Size, sink: EngineSink) -> Any:
        library, values = self._library, request.values
        method, schedule = library.SampleMethod.COUNT, library.Scheduler.COUNT
        if "scheduler" in request.given:
            name = str(values["scheduler"])
            methods = _SCHEDULERS[name]
            method = getattr(library.SampleMethod, methods[0])
            schedule = getattr(library.Scheduler, methods[1])
            if name in _SIMILAR:
                sink.warn(f"scheduler={name}: using {methods[0]}, which is similar")
        made = library.SDImageGenParams(
            prompt=str(values["prompt"]),
            negative_prompt=str(values.get("negative_prompt") or ""),
            width=drawn[0],
            height=drawn[1],
            sample_steps=int(values["num_inference_steps"]),
            # 1 switches guidance off.
            cfg_scale=max(1.0, float(values["guidance_scale"])),
            sample_method=method,
            scheduler=schedule,
        )
        self._failed_lora = False
        file = values.get(_LORA + FILE)
        if file is not None:
            _check_lora(file.path)
            made.set_loras([{"path": str(file.path), "multiplier": float(values["lora_scale"])}])
            sink.log(f"using LoRA weights with lora_scale={values['lora_scale']:g}")
        if "taesd" not in self._parts[request_role(request)]:
            # The memory of a decoder grows with the pixels.
            made.vae_tiling_enabled = drawn[0] * drawn[1] > UNTILED_PIXELS
        return made

    def _own(self, picture: Image) -> Any:
        return self._library.SDImage.from_pil(picture)

    def _made(
        self, generate: Callable[..., Any], slot: ModelSlot, *given: Any, **named: Any
    ) -> list[Image]:
        """Run the library.

        Raises:
            InternalServerError: It failed (code ``engine_failed``).
        """
        try:
            return [one.to_pil().convert("RGB") for one in generate(*given, **named)]
        except (RuntimeError, ValueError) as error:
            _log.exception("stable-diffusion.cpp failed")
            raise engine_failed(f"stable-diffusion.cpp failed with model {slot.name}") from error

    def _context_of(self, slot: ModelSlot, operation: str) -> Any:
        """Load a model, unless it is loaded.

        Raises:
            NoBackendError: It cannot be loaded, or not be used for the operation.
        """
        parts = self._parts[slot.role]
        if self._loaded != (slot.path, parts):
            if self._context is not None:
                self._context.close()
            self._context = self._loaded = None
            self._context = self._load(slot, parts)
            self._loaded = slot.path, parts
        context = self._context
        is_video = operation == "generate_video"
        if not (
            context.supports_video_generation if is_video else context.supports_image_generation
        ):
            raise status_error(
                errors.NoBackendError,
                f"model {slot.name} cannot generate {'videos' if is_video else 'images'}",
            )
        return context

    def _load(self, slot: ModelSlot, parts: Mapping[str, str]) -> Any:
        library = self._library
        main = "model_path" if is_checkpoint(slot.path) else "diffusion_model_path"
        settings = library.SDContextParams(n_threads=threads(), vae_decode_only=False)
        setattr(settings, main, str(slot.path))
        for part in PARTS:
            if part in parts:
                setattr(settings, f"{part}_path", str(parts[part]))
        if self._weights:
            settings.wtype = getattr(library.SDType, self._weights)
        # torch draws the same noise on a CPU.
        settings.rng_type = settings.sampler_rng_type = library.RngType.CPU
        # Both need less time and memory on CPUs.
        settings.diffusion_flash_attn = settings.diffusion_conv_direct = True
        settings.vae_conv_direct = "taesd" not in parts
        settings.enable_mmap = True
        settings.free_params_immediately = False
        try:
            return library.SDContext(settings)
        except (OSError, ValueError, RuntimeError) as error:
            _log.exception("cannot load a model")
            raise status_error(
                errors.NoBackendError,
                f"model {slot.name} cannot be loaded by stable-diffusion.cpp (the log says why)",
            ) from error


def drawn_at(native: Size | None, size: Size) -> Size:
    """Return the size at which a model draws: near its native size, if it has one."""
    if native is not None:
        return drawn_size(native, size, _GRID_PX)
    width, height = (-(-side // _GRID_PX) * _GRID_PX for side in size)
    return width, height


def request_role(request: Request) -> str:
    return needed_roles(request.operation, request.variant, request.values)[0]


def _cut(picture: Image, size: Size) -> Image:
    """Cut the middle out of an image that was drawn larger."""
    left, top = (picture.width - size[0]) // 2, (picture.height - size[1]) // 2
    return picture.crop((left, top, left + size[0], top + size[1]))


def _check_lora(path: Path) -> None:
    """Check a file of the request before the library reads it.

    Raises:
        BadRequestError: It has no LoRA weights in safetensors format.
    """
    try:
        is_fit = is_lora(path)
    except (errors.InvalidRequestError, OSError):
        is_fit = False
    if not is_fit:
        raise _unfit_lora()


def _unfit_lora() -> errors.APIStatusError:
    return bad_request(
        f"{_LORA}: the file has no LoRA weights for this model in safetensors format", param=_LORA
    )


def _ignore(*_: object) -> None:
    """Do nothing."""


class _Steps:
    """Counts the steps of a request and their time, and sends progress and previews."""

    def __init__(self, library: Any, sink: EngineSink, *, previews: bool) -> None:
        self._library, self._sink, self._previews = library, sink, previews
        self._previewed_at = time.monotonic()
        self._done, self._took_s, self._megapixels = 0, 0.0, 0.0

    @property
    def metrics(self) -> dict[str, float]:
        """Also ``work``: megapixels times steps, where decoding counts as two steps."""
        return {
            "steps": float(self._done),
            "steps_per_s": self._done / max(1e-9, self._took_s),
            WORK: self._megapixels,
            WORK_S: self._took_s,
        }

    @contextmanager
    def of(self, number: int, count: int, size: Size, frames: int = 1) -> Iterator[None]:
        """Watch the library while it makes one of several outputs."""
        before = self._done

        def on_step(step: int, steps: int, _: float) -> None:
            if step >= 1:
                self._done += 1
                self._sink.report(_SHARE * (number + min(1.0, step / max(1, steps))) / count)

        library = self._library
        library.set_progress_callback(on_step)
        if self._previews:
            library.set_preview_callback(self._preview, mode=library.PreviewMode.PROJ)
        began = time.monotonic()
        try:
            yield
        finally:
            self._took_s += time.monotonic() - began
            library.set_progress_callback(_ignore)
            library.set_preview_callback(None)
        self._megapixels += size[0] * size[1] * frames / 1e6 * (self._done - before + 2)

    def _preview(self, _: int, frames: list[Any], is_noisy: bool) -> None:  # noqa: FBT001
        now = time.monotonic()
        if is_noisy or not frames or now - self._previewed_at < _PREVIEW_EVERY_S:
            return
        self._previewed_at = now
        # The library uses the memory of the frames again.
        picture = frames[len(frames) // 2].to_pil().convert("RGB")
        picture.thumbnail((_PREVIEW_PX, _PREVIEW_PX))
        buffer = io.BytesIO()
        picture.save(buffer, "JPEG", quality=75)
        self._sink.preview(buffer.getvalue(), "image/jpeg")
