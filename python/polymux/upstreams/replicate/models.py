"""Replicate's models, versions and fields for the model selectors of the polymux API."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import shown
from polymux.media.languages import name_of
from polymux.upstreams.backend import addresses_of, variant_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.contract import Field
    from polymux.service.model import OperationRequest, ProgressSink

_NAME = r"[A-Za-z0-9][\w.-]{0,99}"
_TARGET = re.compile(rf"({_NAME}/{_NAME})(?::([0-9a-f]{{8,64}}))?", re.ASCII)
#: Values for automatic language detection.
_NO_LANGUAGE = ("", "none", "auto")


@dataclass(frozen=True, slots=True)
class Model:
    """A model at Replicate on which a variant of the polymux API is based.

    Attributes:
        version: Beginning of the id of the version that has these fields.
        fields: API field to the model's field.
        unknown: API fields that the model does not support.
        brought: API fields already handled, such as a URL that was downloaded.
        always_sent: Extensions to send even if not given, because the model's default differs.
    """

    version: str
    fields: Mapping[str, str]
    unknown: tuple[str, ...] = ()
    brought: tuple[str, ...] = ()
    always_sent: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Target:
    """A model to run at Replicate.

    Attributes:
        model: ``owner/name``.
        version: Id of the version, 64 hexadecimal digits, or its beginning; empty for official
            models, which have no version.
    """

    model: str
    version: str = ""

    @classmethod
    def of(cls, text: str) -> Target:
        """Parse ``owner/name`` or ``owner/name:version``.

        Raises:
            InvalidRequestError: The text has another form.

        Example:
            >>> from polymux.upstreams.replicate.models import Target
            >>> Target.of("nightmareai/real-esrgan:350d32041630")
            Target(model='nightmareai/real-esrgan', version='350d32041630')
        """
        match = _TARGET.fullmatch(text)
        if match is None:
            raise errors.InvalidRequestError(
                f"{shown(text)}: invalid Replicate model (allowed: owner/name, or "
                "owner/name:version with the first 8 to 64 hexadecimal digits of the version ID)"
            )
        return cls(match[1], match[2] or "")


def _same(names: str, **others: str) -> dict[str, str]:
    """Map fields with equal names, and `others` with different names."""
    return {name: name for name in names.split()} | others


_PICTURE = (
    "prompt negative_prompt width height num_outputs scheduler num_inference_steps guidance_scale "
    "seed disable_safety_checker"
)
#: Model selector to model; `contracts.md` 0.2 and 4 to 9.
MODELS: Mapping[str, Model] = {
    "bytedance/sdxl-lightning-4step": Model("5f24084160c9", _same(_PICTURE)),
    "lorenzomarines/astra": Model(
        "6ce68112bcae",
        _same(
            f"{_PICTURE} image mask prompt_strength lora_scale apply_watermark refine "
            "high_noise_frac refine_steps replicate_weights"
        ),
    ),
    "playgroundai/playground-v2.5-1024px-aesthetic": Model(
        "a45f82a1382b",
        _same(f"{_PICTURE} image mask prompt_strength apply_watermark"),
        unknown=("lora_scale",),
        always_sent=("apply_watermark",),
    ),
    "philz1337x/clarity-upscaler": Model(
        "f11a4727f8f9",
        _same(
            "image prompt negative_prompt scale_factor dynamic creativity resemblance tiling_width "
            "tiling_height sd_model scheduler num_inference_steps downscaling "
            "downscaling_resolution sharpen output_format seed multistep_factor lora_links "
            "custom_sd_model mask handfix pattern"
        ),
    ),
    "nightmareai/real-esrgan": Model("350d32041630", _same("image scale face_enhance")),
    "turian/insanely-fast-whisper-with-video": Model(
        "4f41e90243af",
        _same("audio task batch_size timestamp language"),
        brought=("url",),
    ),
    "anotherjesse/zeroscope-v2-xl": Model(
        "9f747673945c",
        _same(
            "prompt negative_prompt init_video init_weight num_frames width height guidance_scale "
            "fps batch_size remove_watermark seed",
            num_inferences_steps="num_inference_steps",
            video_model="model",
        ),
    ),
    "riffusion/riffusion": Model(
        "8cf61ea6c56a",
        _same("prompt_a denoising prompt_b alpha num_inference_steps seed_image_id"),
        unknown=("seed", "duration_s", "output_format"),
    ),
}


def targets_of(models: Mapping[str, str]) -> dict[str, Target]:
    """Return the model to run for each model selector.

    Args:
        models: Selector to Replicate's model. A selector mapped to itself uses the version on which
            the polymux API is based. Empty: all selectors are mapped to themselves.

    Raises:
        InvalidRequestError: A selector is unknown, or a model name is invalid.

    Example:
        >>> from polymux.upstreams.replicate.models import targets_of
        >>> targets_of({"riffusion/riffusion": "riffusion/riffusion"})
        {'riffusion/riffusion': Target(model='riffusion/riffusion', version='8cf61ea6c56a')}
    """
    found = {}
    for name, theirs in (models or {name: name for name in MODELS}).items():
        if name not in MODELS:
            raise errors.InvalidRequestError(
                f"{shown(name)}: unknown model selector (known: {', '.join(MODELS)})"
            )
        found[name] = Target(name, MODELS[name].version) if theirs == name else Target.of(theirs)
    return found


@cache
def _operations() -> tuple[tuple[str, frozenset[str]], ...]:
    found = {
        one.name: frozenset(each.model or "" for each in one.variants) & MODELS.keys()
        for one in contract.operations()
    }
    return tuple((name, known) for name, known in found.items() if known)


def operations_of(models: Mapping[str, str]) -> tuple[str, ...]:
    """Return the operations that these models support; all if empty.

    Example:
        >>> from polymux.upstreams.replicate.models import operations_of
        >>> operations_of({"nightmareai/real-esrgan": "me/enlarger"})
        ('upscale_image',)
    """
    named = models or MODELS
    return tuple(name for name, known in _operations() if not known.isdisjoint(named))


def addresses_in(work: OperationRequest) -> list[tuple[str, str]]:
    """Return the URLs that the model would fetch, each with the API field."""
    variant = variant_of(work)
    brought = MODELS[variant.model or ""].brought
    return [
        (one.name, address)
        for one in variant.fields
        if one.kind == "url" and one.name not in brought and work.values.get(one.name) is not None
        for address in addresses_of(one.name, str(work.values[one.name]))
    ]


def input_of(work: OperationRequest, sink: ProgressSink) -> dict[str, Any]:
    """Convert a request to the model's input; files are still `Upload`.

    Always sends fields with a default in the API, because the model's default may differ. Sends
    extensions only if given.
    """
    variant = variant_of(work)
    model = MODELS[variant.model or ""]
    found = {}
    for field in variant.fields:
        value = _value(field, work, model)
        if value is None or field.name in model.brought:
            continue
        if field.name in model.unknown:
            if field.name in work.given:
                sink.warn(f"{field.name}: ignored, not supported by the model")
            continue
        found[model.fields[field.name]] = value
    return found


def _value(field: Field, work: OperationRequest, model: Model) -> Any:
    """Return the value to send, or None."""
    wanted = field.name in work.given or not field.extension or field.name in model.always_sent
    if "upstream_default" in field.raw:
        wanted = field.name in work.given  # The model has its own default.
    value = work.values.get(field.name) if wanted else None
    if field.name == "language" and value is not None:
        return None if str(value).lower() in _NO_LANGUAGE else name_of(str(value))
    return value
