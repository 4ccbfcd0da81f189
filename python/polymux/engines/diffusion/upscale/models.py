"""Models for adding detail: installed models, the request's own checkpoint, and LoRA weights."""

from __future__ import annotations

import tempfile
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import shown
from polymux.engines.diffusion import loras
from polymux.models.roles import ROLES, needed_roles
from polymux.service.errors import bad_request, status_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from polymux.engines.base import EngineSink
    from polymux.engines.diffusion.pipelines import ModelSlot, PipelineManager
    from polymux.service.model import Upload

CONTROL = "detail:controlnet"
_KIND = "StableDiffusionControlNetImg2ImgPipeline"
_CUSTOM, _LINKS = "custom_sd_model", "lora_links"
#: Exceptions of diffusers for files of another kind.
_UNFIT = (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError, IndexError)


def chosen(manager: PipelineManager, values: Mapping[str, Any], sink: EngineSink) -> ModelSlot:
    """Return the model that a request names.

    Raises:
        NoBackendError: The model or the tile ControlNet is not installed.
    """
    role, control = needed_roles("upscale_image", "A", values)
    for one in (role, control):
        if not manager.has(one):
            known = ROLES.get(one)
            what = (
                f"Install one with 'polymux models pull {known.model}'"
                if known
                else "Assign one in the engine's option `models`"
            )
            raise status_error(
                errors.NoBackendError,
                f"sd_model={shown(str(values['sd_model']))}: no model is assigned to the role "
                f"{one}. {what}",
                param="sd_model",
            )
    for slot in (manager.slot(role), manager.slot(control)):
        slot.tell_of_substitute(sink)
    return manager.slot(role)


@contextmanager
def pipeline(
    manager: PipelineManager,
    slot: ModelSlot,
    values: Mapping[str, Any],
    wanted: Sequence[tuple[str, float]],
    sink: EngineSink,
) -> Iterator[Any]:
    """Provide the request's pipeline with its LoRA weights inside the block.

    Args:
        manager: The models.
        slot: The main model.
        values: Request fields.
        wanted: Names and scales of LoRA weights in the prompts.
        sink: Receives log lines.

    Raises:
        BadRequestError: Weights from the request do not fit the model.
        NoBackendError: A model cannot be used.
    """
    parts = manager.parts(slot.role)
    others: dict[str, Any] = {"controlnet": manager.part(CONTROL, "ControlNetModel")}
    own: Upload | None = values.get(_CUSTOM + loras.FILE)
    if own is not None:
        others |= _own(own.path, slot.path, parts, manager.dtype)
        sink.log(f"{_CUSTOM}: using weights of {own.size_bytes} bytes instead of {slot.name}")
    named = _named(manager, wanted, sink)
    brought: Upload | None = values.get(_LINKS + loras.FILE)
    links = {"brought": (brought.path, 1.0)} if brought is not None else {}
    weights = named | links
    param = _LINKS if links else "prompt"
    with (
        manager.pipeline(_KIND, slot.role, parts["scheduler"], **others) as made,
        loras.laid_over(made, weights, param) if weights else nullcontext(),
    ):
        if brought is not None:
            sink.log(f"{_LINKS}: using LoRA weights of {brought.size_bytes} bytes")
        yield made


def _named(
    manager: PipelineManager, wanted: Sequence[tuple[str, float]], sink: EngineSink
) -> dict[str, tuple[Path, float]]:
    there: Mapping[str, Any] = manager.options.get("loras", {})
    found: dict[str, tuple[Path, float]] = {}
    for name, weight in wanted:
        path = there.get(name)
        if path is None or not Path(str(path)).is_file():
            sink.warn(
                f"<lora:{name}:{weight:g}>: ignored, because these LoRA weights are not installed"
            )
            continue
        # Adapter names become module names, in which dots separate levels.
        key = f"named_{list(there).index(name)}"
        before = found[key][1] if key in found else 0.0
        found[key] = (Path(str(path)), before + weight)
    return found


def _own(path: Path, folder: Path, parts: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """Load the network and text encoder from a single-file checkpoint.

    The decoder is not loaded, because it is the same for all models of this kind.
    """
    from diffusers import StableDiffusionPipeline
    from diffusers.loaders.single_file_utils import SingleFileComponentError

    _check(path)
    with tempfile.TemporaryDirectory() as temporary:
        # The loader detects the file type by its extension.
        link = Path(temporary) / "model.safetensors"
        link.symlink_to(path.resolve())
        try:
            made = StableDiffusionPipeline.from_single_file(
                str(link),
                config=str(folder),
                local_files_only=True,
                torch_dtype=dtype,
                vae=parts["vae"],
                tokenizer=parts["tokenizer"],
                scheduler=parts["scheduler"],
                safety_checker=None,
                feature_extractor=None,
                image_encoder=None,
            )
        except (*_UNFIT, SingleFileComponentError) as error:
            raise _no_model(type(error).__name__) from error
    own = {"unet": made.unet, "text_encoder": made.text_encoder}
    for one in own.values():
        one.eval()
        one.requires_grad_(requires_grad=False)
    return own


def _check(path: Path) -> None:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, "pt") as opened:
            names = list(opened.keys())
            if not any(name.startswith("model.diffusion_model.") for name in names):
                raise _no_model("no tensor name starts with 'model.diffusion_model.'")
            for name in names:
                if not loras.is_finite(opened.get_tensor(name).float()):
                    raise _no_model("it has NaN or infinite weights")
    except (SafetensorError, OSError) as error:
        raise _no_model("it is not a safetensors file, and pickles are not supported") from error


def _no_model(why: str) -> errors.BadRequestError:
    return bad_request(
        f"{_CUSTOM}: not a safetensors checkpoint of Stable Diffusion 1.5: {why}",
        param=_CUSTOM,
    )
