"""What a request for detail is painted by: models that are installed, its own, LoRA weights."""

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
#: What diffusers raises for files of another kind, each place in its own way.
_UNFIT = (OSError, ValueError, KeyError, TypeError, RuntimeError, AttributeError, IndexError)


def chosen(manager: PipelineManager, values: Mapping[str, Any], sink: EngineSink) -> ModelSlot:
    """The model that a request names.

    Raises:
        NoBackendError: It is not installed, or the tile ControlNet is not.
    """
    role, control = needed_roles("upscale_image", "A", values)
    for one in (role, control):
        if not manager.has(one):
            known = ROLES.get(one)
            what = f"'polymux models pull {known.model}'" if known else "a model of the contract"
            raise status_error(
                errors.NoBackendError,
                f"sd_model={shown(str(values['sd_model']))}: this server has no model for {one}; "
                f"it needs {what}",
                param="sd_model",
            )
    for slot in (manager.slot(role), manager.slot(control)):
        if slot.instead_of:
            sink.log(f"{slot.name} takes the place of {slot.instead_of}")
    return manager.slot(role)


@contextmanager
def pipeline(
    manager: PipelineManager,
    slot: ModelSlot,
    values: Mapping[str, Any],
    wanted: Sequence[tuple[str, float]],
    sink: EngineSink,
) -> Iterator[Any]:
    """The networks of a request on the device, with its LoRA weights, which are gone after it.

    Args:
        wanted: Names of LoRA weights and how much of each, as prompts say them.

    Raises:
        BadRequestError: What the request brought are no weights for such a model.
        NoBackendError: A model cannot be used.
    """
    parts = manager.parts(slot.role)
    others: dict[str, Any] = {"controlnet": manager.part(CONTROL, "ControlNetModel")}
    own: Upload | None = values.get(_CUSTOM + loras.FILE)
    if own is not None:
        others |= _own(own.path, slot.path, parts, manager.dtype)
        sink.log(f"{_CUSTOM}: {own.size_bytes} bytes of weights in the place of {slot.name}")
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
            sink.log(f"{_LINKS}: {brought.size_bytes} bytes of LoRA weights")
        yield made


def _named(
    manager: PipelineManager, wanted: Sequence[tuple[str, float]], sink: EngineSink
) -> dict[str, tuple[Path, float]]:
    there: Mapping[str, Any] = manager.options.get("loras", {})
    found: dict[str, tuple[Path, float]] = {}
    for name, weight in wanted:
        path = there.get(name)
        if path is None or not Path(str(path)).is_file():
            sink.log(f"<lora:{name}:{weight:g}>: this server has no weights of that name")
            continue
        # Names of adapters become those of modules, where dots are for what lies within.
        key = f"named_{list(there).index(name)}"
        before = found[key][1] if key in found else 0.0
        found[key] = (Path(str(path)), before + weight)
    return found


def _own(path: Path, folder: Path, parts: Mapping[str, Any], dtype: Any) -> dict[str, Any]:
    """The parts that paint, out of a single file as people share them.

    The decoder stays: it is the same for all models of this kind.
    """
    from diffusers import StableDiffusionPipeline
    from diffusers.loaders.single_file_utils import SingleFileComponentError

    _check(path)
    with tempfile.TemporaryDirectory() as temporary:
        # By the name's end it is decided what opens the file.
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
                raise _no_model("it has no network of that name: model.diffusion_model")
            for name in names:
                if not loras.is_finite(opened.get_tensor(name).float()):
                    raise _no_model("some of its weights are infinite")
    except (SafetensorError, OSError) as error:
        raise _no_model("it is no safetensors file; pickles are not opened") from error


def _no_model(why: str) -> errors.BadRequestError:
    return bad_request(
        f"{_CUSTOM}: this is no checkpoint of Stable Diffusion 1.5 as safetensors: {why}",
        param=_CUSTOM,
    )
