"""The engine of stable-diffusion.cpp, which runs in a child process.

The library cannot stop a request, so the supervisor ends the process of a canceled one. The next
process finds the weights in the page cache.
"""

from __future__ import annotations

import io
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Engine, Output, hash_of, missing_package, threads
from polymux.engines.diffusion.image_files import (
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
from polymux.models.roles import needed_roles
from polymux.service.errors import bad_request, engine_failed, status_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Produced, Request, Token

    Size = tuple[int, int]

#: Networks need sides that are multiples of this.
_GRID_PX = 64
_SMALLEST_PX = 64
#: Fraction of the progress for steps; the rest is decoding and writing.
_SHARE = 0.95
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


class SdcppEngine(Engine):
    """Diffusion on CPUs with quantized weights, one request and one model at a time."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read the options. Models are loaded when they are first needed.

        Args:
            options: ``models`` (role to facts, as for `polymux.engines.diffusion`, and ``parts``:
                files beside the main one), ``weights`` (format in memory, a key of `WEIGHTS`;
                default: that of the file), ``loras``, ``previews`` (default: True),
                ``max_pixels`` of an output (default: 2048 x 2048), ``upscaler`` and
                ``upscaler_factor``.

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
        self._slots = {role: _slot(role, one) for role, one in options["models"].items()}
        self._parts = {role: one.get("parts", {}) for role, one in options["models"].items()}
        self._context: Any = None
        self._loaded: Path | None = None
        # The library writes messages and progress to standard output otherwise.
        self._last_error = ""
        library.set_log_callback(self._log)
        library.set_progress_callback(_ignore)
        return {"weights": weights}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        role = needed_roles(request.operation, request.variant, request.values)[0]
        slot = self._slots.get(role)
        if slot is None:
            raise status_error(errors.NoBackendError, f"no model is assigned to the role {role}")
        slot.tell_of_substitute(sink)
        token.check()
        began = time.monotonic()
        steps = _Steps(self._library, sink, previews=self.options.get("previews", True) is True)
        if request.operation == "generate_image":
            files = self._images(slot, request, sink, token, steps)
        else:
            files = self._videos(slot, request, sink, token, steps)
        took_s = max(1e-9, time.monotonic() - began)
        metrics = {"steps": float(steps.done), "steps_per_s": steps.done / took_s}
        return Output(files, slot.known_version or hash_of(slot.path), metrics, slot.name)

    def _log(self, level: int, text: str) -> None:
        if level >= self._library.LogLevel.ERROR:
            self._last_error = text.strip()

    def _images(
        self, slot: ModelSlot, request: Request, sink: EngineSink, token: Token, steps: _Steps
    ) -> list[Produced]:
        values = request.values
        image, mask = picture_of(request, "image"), picture_of(request, "mask")
        size = int(values["width"]), int(values["height"])
        if image is not None:
            if min(image.size) < _SMALLEST_PX:
                raise bad_request(
                    f"image: too small (got {image.width} x {image.height} pixels, allowed at "
                    f"least {_SMALLEST_PX} on each side)",
                    param="image",
                )
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
            if image is not None and strength == 0:
                sink.warn("prompt_strength=0: too low, so the image is not changed")
                made = image
            else:
                with steps.of(number, count):
                    (made,) = self._made(slot, "generate_with_params", given)
            made = resizer.resized(made, size)
            if mask is not None and image is not None:
                made = composite(made, image, mask)
            token.check()
            words = parameters(values, slot.name, seed + number, made.size)
            metadata = {"parameters": words, "Software": "polymux"}
            files.append(png(mark(made), metadata, sink, f"picture-{number + 1}.png"))
        return files

    def _videos(
        self, slot: ModelSlot, request: Request, sink: EngineSink, token: Token, steps: _Steps
    ) -> list[Produced]:
        import numpy

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
            with steps.of(number, count):
                made = self._made(slot, "generate_video", **given)
            shown = (numpy.asarray(resizer.resized(one, size)) for one in made[:frames])
            name = f"video-{number + 1}.mp4"
            files.append(write_frames(shown, size, frames, fps, name, sink, token))
        return files

    def _drawn(self, slot: ModelSlot, size: Size) -> Size:
        """Return the size at which a model generates an image of a requested size."""
        if slot.native_size is not None:
            drawn = drawn_size(slot.native_size, size, _GRID_PX)
        else:
            width, height = (-(-side // _GRID_PX) * _GRID_PX for side in size)
            drawn = width, height
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
        file = values.get("replicate_weights" + FILE)
        if file is not None:
            made.set_loras([{"path": str(file.path), "multiplier": float(values["lora_scale"])}])
            sink.log(f"using LoRA weights with lora_scale={values['lora_scale']:g}")
        return made

    def _own(self, picture: Image) -> Any:
        return self._library.SDImage.from_pil(picture)

    def _made(self, slot: ModelSlot, method: str, *given: Any, **named: Any) -> list[Image]:
        """Run the library.

        Raises:
            InternalServerError: It failed (code ``engine_failed``).
            NoBackendError: The model cannot be loaded.
        """
        context = self._context_of(slot)
        self._last_error = ""
        try:
            made = getattr(context, method)(*given, **named)
            return [one.to_pil().convert("RGB") for one in made]
        except (RuntimeError, ValueError) as error:
            raise engine_failed(
                f"stable-diffusion.cpp failed with {slot.name}: {self._last_error or error}"
            ) from error

    def _context_of(self, slot: ModelSlot) -> Any:
        if self._loaded == slot.path:
            return self._context
        if self._context is not None:
            self._context.close()
            self._context = self._loaded = None
        library = self._library
        path, parts = slot.path, self._parts[slot.role]
        main = "model_path" if is_checkpoint(path) else "diffusion_model_path"
        settings = library.SDContextParams(n_threads=threads(), vae_decode_only=False)
        setattr(settings, main, str(path))
        for part in PARTS:
            if part in parts:
                setattr(settings, f"{part}_path", str(parts[part]))
        if self._weights:
            settings.wtype = getattr(library.SDType, self._weights)
        # torch draws the same noise on a CPU.
        settings.rng_type = settings.sampler_rng_type = library.RngType.CPU
        # Both need less time and memory on CPUs.
        settings.diffusion_flash_attn = settings.diffusion_conv_direct = True
        settings.enable_mmap = True
        settings.free_params_immediately = False
        try:
            self._context = library.SDContext(settings)
        except (OSError, ValueError, RuntimeError) as error:
            raise status_error(
                errors.NoBackendError,
                f"model {slot.name} cannot be loaded by stable-diffusion.cpp: "
                f"{self._last_error or error}",
            ) from error
        self._loaded = slot.path
        return self._context


def _slot(role: str, facts: Mapping[str, Any]) -> ModelSlot:
    size = facts.get("native_size")
    return ModelSlot(
        role,
        str(facts.get("name", "")),
        Path(facts["path"]),
        str(facts.get("instead_of", "")),
        str(facts.get("version", "")),
        facts.get("is_small") is True,
        tuple(size) if size else None,
        facts.get("vae_factor"),
    )


def _ignore(*_: object) -> None:
    """Do nothing."""


class _Steps:
    """Counts the steps of a request, and sends its progress and previews."""

    def __init__(self, library: Any, sink: EngineSink, *, previews: bool) -> None:
        self._library, self._sink, self._previews = library, sink, previews
        self._previewed_at = time.monotonic()
        self.done = 0

    @contextmanager
    def of(self, number: int, count: int) -> Iterator[None]:
        """Watch the library while it makes one of several outputs."""

        def on_step(step: int, steps: int, _: float) -> None:
            self.done += 1
            self._sink.report(_SHARE * (number + min(1.0, step / max(1, steps))) / count)

        library = self._library
        library.set_progress_callback(on_step)
        if self._previews:
            library.set_preview_callback(self._preview, mode=library.PreviewMode.PROJ)
        try:
            yield
        finally:
            library.set_progress_callback(_ignore)
            library.set_preview_callback(None)

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
