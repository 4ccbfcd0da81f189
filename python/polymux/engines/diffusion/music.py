"""Music generation with Riffusion's method: a spectrogram image is generated and played.

``denoising`` sets how much the seed image changes. The result is interpolated between two prompts:
their embeddings linearly, the noise of two seeds spherically. S. Forsgren and H. Martiros,
"Riffusion: Stable diffusion for real-time music generation", 2022, https://www.riffusion.com/about;
image to image follows C. Meng et al., "SDEdit", 2022.

Longer music is one wide image. At each step the model predicts overlapping windows as wide as the
seed image, whose weighted mean is used, so neighbors agree on the tempo: O. Bar-Tal et al.,
"MultiDiffusion", 2023. The same windows are decoded.
"""

from __future__ import annotations

import io
import wave
from functools import partial
from typing import TYPE_CHECKING, Any

from polymux._native import media
from polymux.engines.base import Output
from polymux.engines.diffusion import folders
from polymux.engines.diffusion.image_files import written
from polymux.engines.diffusion.loras import check_finite
from polymux.engines.diffusion.pipelines import seed_of
from polymux.engines.diffusion.prompts import tell_of_length
from polymux.engines.diffusion.seed_spectrograms import FOLDER, seed_image
from polymux.engines.diffusion.steps import Steps
from polymux.engines.diffusion.windows import (
    mean_of_windows,
    music_cells,
    music_columns,
    window_starts,
)
from polymux.media.conversion import convert_to_mp3

if TYPE_CHECKING:
    from collections.abc import Mapping

    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Produced, Request, Token
    from polymux.engines.diffusion.pipelines import PipelineManager

ROLE = "music"
_KIND = "StableDiffusionImg2ImgPipeline"
#: Guidance of models whose manifest names none.
_GUIDANCE = 7.0
_MP3_BPS = 192_000
#: Noise with a higher cosine is mixed linearly, because the spherical formula loses precision.
_ALIKE = 0.9995
#: Progress when the image is generated; the rest is its conversion to sound.
_PAINTED = 0.95
_JPEG_QUALITY = 92


def make(manager: PipelineManager, request: Request, sink: EngineSink, token: Token) -> Output:
    """Generate the music of a request.

    Args:
        manager: Has a model with the architecture of Stable Diffusion 1.5 in the role ``music``.
        request: The request.
        sink: Receives progress.
        token: Checked at each step, and ten times a second while sound is computed and encoded.

    Returns:
        ``audio``, a file in the requested format (16 bits, mono, 44.1 kHz, 10 ms per column of the
            image), and ``spectrogram``, the image as JPEG.

    Raises:
        BadRequestError: The seed image is unknown.
        NoBackendError: The model is missing or has another architecture.
    """
    values = request.values
    slot = manager.slot(ROLE)
    slot.tell_of_substitute(sink)
    folders.kind_in_role(slot.path, slot.name, ROLE)
    name = str(values["seed_image_id"])
    begun, is_stand_in = seed_image(name, slot.path)
    if is_stand_in:
        sink.warn(
            f"seed_image_id={name}: using a generated image, because the model's directory has no "
            f"{FOLDER}/{name}.png"
        )
    seed = seed_of(values, sink)
    picture, metrics = _painted(manager, begun, values, seed, sink, token)
    sink.report(_PAINTED)
    files = {
        "audio": _played(picture, seed, str(values.get("output_format") or "wav"), sink, token),
        "spectrogram": _jpeg(picture, sink),
    }
    return Output(files, slot.version, metrics, slot.name)


def _alpha(values: Mapping[str, Any]) -> float:
    """Return the weight of the second prompt; 0 if it is empty."""
    return float(values["alpha"]) if str(values.get("prompt_b") or "").strip() else 0.0


def _wanted_steps(values: Mapping[str, Any], scheduler: Any) -> int:
    """Return how many of the requested steps run, counted like Riffusion."""
    asked, denoising = int(values["num_inference_steps"]), float(values["denoising"])
    if denoising == 0:
        return 0
    return min(int(asked * denoising) + int(scheduler.config.get("steps_offset", 0)), asked)


def _painted(
    manager: PipelineManager,
    begun: Image,
    values: Mapping[str, Any],
    seed: int,
    sink: EngineSink,
    token: Token,
) -> tuple[Image, dict[str, float]]:
    import torch

    shipped = manager.parts(ROLE)["scheduler"]
    scheduler = type(shipped).from_config(shipped.config)
    asked = int(values["num_inference_steps"])
    wanted = _wanted_steps(values, scheduler)
    columns = music_columns(values.get("duration_s"), begun.width)
    if wanted == 0:
        sink.warn(
            f"denoising={values['denoising']:g}: too low, so the seed image is converted to audio "
            "unchanged"
        )
        return _repeated(begun, columns), Steps(sink, token, 0).metrics
    scheduler.set_timesteps(asked, device=manager.device)
    first = (asked - wanted) * scheduler.order
    timesteps = scheduler.timesteps[first:]
    if hasattr(scheduler, "set_begin_index"):
        scheduler.set_begin_index(first)
    steps = Steps(sink, token, len(timesteps))
    tell_of_length(manager.parts(ROLE), values, ("prompt_a", "prompt_b"), sink)
    with manager.pipeline(_KIND, ROLE, scheduler) as pipeline, torch.inference_mode():
        manager.prepare_decoder(pipeline.vae, begun.size)
        with steps.watching(pipeline, previews=manager.shows_previews):
            latents, window = _begun(
                manager, pipeline, begun, columns, timesteps, _alpha(values), seed
            )
            words = _words(manager, pipeline, values)
            guidance = float(values.get("guidance_scale", _GUIDANCE))
            latents = _denoised(pipeline, latents, window, words, guidance, timesteps, steps)
            made = _decoded(pipeline, latents, window)
        check_finite(made, manager.slot(ROLE).name, values)
        picture: Image = pipeline.image_processor.postprocess(made, output_type="pil")[0]
    # Latent cells are wider than a column.
    return picture.crop((0, 0, columns, picture.height)), steps.metrics


def _repeated(picture: Image, columns: int) -> Image:
    """Return an image of the given width that repeats another, or its beginning."""
    from PIL import Image

    wide = Image.new(picture.mode, (columns, picture.height))
    for left in range(0, columns, picture.width):
        wide.paste(picture, (left, 0))
    return wide


def _words(manager: PipelineManager, pipeline: Any, values: Mapping[str, Any]) -> Any:
    """Return the text embeddings: the empty prompt, and the mixed prompts."""
    import torch

    alpha = _alpha(values)

    def embedded(prompt: str) -> tuple[Any, Any]:
        embeddings: tuple[Any, Any] = pipeline.encode_prompt(prompt, manager.device, 1, True)  # noqa: FBT003
        return embeddings

    mixed, empty = embedded(str(values["prompt_a"]))
    if alpha > 0:
        mixed = torch.lerp(mixed, embedded(str(values["prompt_b"]))[0], alpha)
    return torch.cat([empty, mixed])


def _begun(
    manager: PipelineManager,
    pipeline: Any,
    begun: Image,
    columns: int,
    timesteps: Any,
    alpha: float,
    seed: int,
) -> tuple[Any, int]:
    """Return latents with the noise of the first step, and the width of the seed image's.

    The latents of the seed image repeat up to the wanted number of columns.
    """
    import torch

    pixels = pipeline.image_processor.preprocess(begun).to(manager.device, pipeline.vae.dtype)
    source = manager.generator(seed)
    coded = pipeline.vae.encode(pixels).latent_dist
    window = coded.mean.shape[-1]
    cells = music_cells(columns, begun.width, window)
    places = torch.arange(cells, device=coded.mean.device) % window
    mean, deviation = coded.mean[..., places], coded.std[..., places]
    # Drawn on the CPU, because devices have different generators.
    spread = torch.randn(mean.shape, generator=source).to(mean)
    latents = (mean + deviation * spread) * pipeline.vae.config.scaling_factor
    noises = [
        torch.randn(latents.shape, generator=one) for one in (source, manager.generator(seed + 1))
    ]
    noise = spherical(noises[0], noises[1], alpha).to(latents)
    return pipeline.scheduler.add_noise(latents, noise, timesteps[:1]), window


def spherical(one: Any, other: Any, alpha: float) -> Any:
    """Interpolate two noise tensors on the great circle through them.

    Linear interpolation would give weaker noise than the network was trained with. K. Shoemake,
    "Animating rotation with quaternion curves", SIGGRAPH 1985.

    Args:
        one: Noise for alpha 0.
        other: Noise for alpha 1.
        alpha: Position between them, from 0 to 1.

    Example:
        >>> import torch
        >>> from polymux.engines.diffusion.music import spherical
        >>> middle = spherical(torch.tensor([1.0, 0.0]), torch.tensor([0.0, 1.0]), 0.5)
        >>> [round(float(value), 4) for value in middle]
        [0.7071, 0.7071]
    """
    import torch

    cosine = (one * other).sum() / (one.norm() * other.norm())
    if abs(cosine) > _ALIKE:
        return torch.lerp(one, other, alpha)
    angle = torch.arccos(cosine)
    return (torch.sin((1 - alpha) * angle) * one + torch.sin(alpha * angle) * other) / torch.sin(
        angle
    )


def _denoised(
    pipeline: Any,
    latents: Any,
    window: int,
    words: Any,
    guidance: float,
    timesteps: Any,
    steps: Steps,
) -> Any:
    import torch

    scheduler = pipeline.scheduler
    words = words.to(pipeline.unet.dtype)
    starts = window_starts(latents.shape[-1], window)

    def predicted(timestep: Any, part: Any) -> Any:
        doubled = torch.cat([part, part]).to(words.dtype)
        prediction = pipeline.unet(
            doubled, timestep, encoder_hidden_states=words, return_dict=False
        )[0]
        plain, guided = prediction.to(latents.dtype).chunk(2)
        return plain + guidance * (guided - plain)

    for timestep in timesteps:
        scaled = scheduler.scale_model_input(latents, timestep)
        wanted = mean_of_windows(scaled, window, starts, partial(predicted, timestep))
        latents = scheduler.step(wanted, timestep, latents, return_dict=False)[0]
        steps.step(latents)
    return latents


def _decoded(pipeline: Any, latents: Any, window: int) -> Any:
    """Return the image. Tiles would be cut in height too, and have visible borders."""
    vae = pipeline.vae

    def decoded(part: Any) -> Any:
        return vae.decode(part.to(vae.dtype), return_dict=False)[0]

    starts = window_starts(latents.shape[-1], window)
    scaled = latents / vae.config.scaling_factor
    return mean_of_windows(scaled, window, starts, decoded, pipeline.vae_scale_factor)


def _played(
    picture: Image, seed: int, output_format: str, sink: EngineSink, token: Token
) -> Produced:
    def on_progress(done: float) -> None:
        token.check()
        sink.report(_PAINTED + (1 - _PAINTED) * done)

    grey = picture.convert("L").tobytes()
    width, height = picture.size
    sound = media.play_picture(grey, width, height, 1, seed % (1 << 64), None, on_progress)
    channels, rate_hz = sound["channels"], sound["sample_rate_hz"]
    samples = media.finish_sound(sound["samples"], channels, rate_hz)
    name = f"music.{output_format}"
    if output_format == "flac":
        return written(media.encode_flac(samples, channels, rate_hz), "audio/flac", name, sink)
    data = _wav(samples, channels, rate_hz)
    if output_format == "mp3":
        made = convert_to_mp3(
            data, bitrate=_MP3_BPS, threads=1, on_progress=lambda _: token.check()
        )
        return written(made.read(), "audio/mpeg", name, sink)
    return written(data, "audio/wav", name, sink)


def _wav(samples: bytes, channels: int, rate_hz: int) -> bytes:
    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        file.writeframes(samples)
    return buffer.getvalue()


def _jpeg(picture: Image, sink: EngineSink) -> Produced:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=_JPEG_QUALITY)
    return written(buffer.getvalue(), "image/jpeg", "spectrogram.jpg", sink)
