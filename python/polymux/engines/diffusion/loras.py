"""LoRA weights: laid over a model for one request, and taken off after it. Never made part of it.

Weights that are damaged, or too strong, come to numbers that are none. Pictures of those are black,
and music is silent: so they are looked for before there is a picture.

Hu et al., "LoRA: Low-Rank Adaptation of Large Language Models", 2021.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux.engines.base import missing_package
from polymux.service.errors import bad_request, engine_failed

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from polymux.engines.base import EngineSink
    from polymux.service.model import Upload

#: What peft and diffusers raise at weights of another kind, each place in its own way.
_UNFIT = (OSError, ValueError, KeyError, RuntimeError, TypeError, IndexError, AttributeError)
#: What was fetched from the address of a request's weights, beside the field's name.
FILE = "_file"
_REQUESTED = "replicate_weights"
#: Fields whose weights a request has brought itself.
_BROUGHT = (_REQUESTED, "lora_links", "custom_sd_model")
#: The two halves of a layer's weights, as each of the programs that write them calls them.
_HALF = re.compile(
    r"(?P<first>lora_A|lora_down|lora(?:_linear_layer)?\.down)"
    r"|(?P<second>lora_B|lora_up|lora(?:_linear_layer)?\.up)"
)


@contextmanager
def applied(pipeline: Any, values: Mapping[str, Any], sink: EngineSink) -> Iterator[None]:
    """While a request is worked on: its weights, by the weight ``lora_scale``."""
    file: Upload | None = values.get(_REQUESTED + FILE)
    if file is None:
        yield
        return
    with laid_over(pipeline, {"request": (file.path, float(values["lora_scale"]))}, _REQUESTED):
        sink.log(f"LoRA weights of {file.size_bytes} bytes at {values['lora_scale']:g}")
        yield


@contextmanager
def laid_over(
    pipeline: Any, weights: Mapping[str, tuple[Path, float]], param: str
) -> Iterator[None]:
    """While something is worked on: weights by their names, with how much of each.

    Args:
        weights: Name to file, safetensors, and scale.

    Raises:
        BadRequestError: A file is no LoRA, or one for another model.
        NoBackendError: The package that it takes is missing.
    """
    try:
        import peft  # noqa: F401 - diffusers needs it
    except ImportError:
        raise missing_package("LoRA", "peft", "diffusion") from None
    try:
        for name, (path, _) in weights.items():
            _lay(pipeline, name, path, param)
        if weights:
            pipeline.set_adapters(list(weights), [scale for _, scale in weights.values()])
        yield
    finally:
        if weights:
            pipeline.unload_lora_weights()


def _lay(pipeline: Any, name: str, path: Path, param: str) -> None:
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        state = load_file(path)
        _check(state, param)
        # Otherwise what a file lacks would be what lay in memory before.
        pipeline.load_lora_weights(state, adapter_name=name, low_cpu_mem_usage=False)
    except (SafetensorError, *_UNFIT) as error:
        raise bad_request(
            f"{param}: these are no LoRA weights for this model, as safetensors "
            f"({type(error).__name__})",
            param=param,
        ) from error
    if not any(name in known for known in pipeline.get_list_adapters().values()):
        raise bad_request(
            f"{param}: nothing in these weights fits the model",
            param=param,
        )


def _check(state: Mapping[str, Any], param: str) -> None:
    """Refuses what diffusers takes without a word: numbers that are none, layers by halves."""
    if not all(one.is_floating_point() and is_finite(one.float()) for one in state.values()):
        raise bad_request(
            f"{param}: these are no LoRA weights: some are infinite, or no fractions", param=param
        )
    halves: dict[str, set[str]] = {"first": set(), "second": set()}
    for name in state:
        found = _HALF.search(name)
        if found is not None and found.lastgroup is not None:
            halves[found.lastgroup].add(_HALF.sub("", name, count=1))
    lacking = halves["first"] ^ halves["second"]
    if lacking:
        raise bad_request(
            f"{param}: these are no LoRA weights: of some layers ({len(lacking)}) there is "
            "one half alone",
            param=param,
        )


def check_finite(made: Any, model: str, values: Mapping[str, Any]) -> None:
    """Refuses to make a picture of what a decoder gave.

    Args:
        made: A tensor, or an array of numpy.
        values: Of the request: what it brought may be the reason.

    Raises:
        BadRequestError: Some of it is no number, and weights that the request brought were at work.
        InternalServerError: Some of it is no number (code ``engine_failed``).
    """
    if is_finite(made):
        return
    for name in _BROUGHT:
        if values.get(name + FILE) is not None:
            raise bad_request(
                f"{name}: with these weights {model} comes to numbers beyond all bounds, and to no "
                "picture: they are damaged, or too strong",
                param=name,
            )
    raise engine_failed(
        f"{model} comes to numbers beyond all bounds, and to no picture: less guidance, or weaker "
        "LoRA weights, may help; else its weights are damaged ('polymux models info NAME --verify' "
        "tells), or too large for the option dtype"
    )


def is_finite(made: Any) -> bool:
    import numpy
    import torch

    if isinstance(made, torch.Tensor):
        return bool(torch.isfinite(made).all())
    return bool(numpy.isfinite(made).all())
