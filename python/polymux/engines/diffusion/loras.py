"""LoRA weights, applied to a model for one request and removed afterwards. They are never merged.

Damaged or too strong weights produce NaN or infinite values. Such images would be black, and such
music silent, so the values are checked before the output is created.

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

#: Exceptions of peft and diffusers for weights of another kind.
_UNFIT = (OSError, ValueError, KeyError, RuntimeError, TypeError, IndexError, AttributeError)
#: Suffix of a field name: the file downloaded from the field's URL.
FILE = "_file"
_REQUESTED = "replicate_weights"
#: Fields with weights that the request provides.
_BROUGHT = (_REQUESTED, "lora_links", "custom_sd_model")
#: Names of the two halves of a layer's weights, as written by different programs.
_HALF = re.compile(
    r"(?P<first>lora_A|lora_down|lora(?:_linear_layer)?\.down)"
    r"|(?P<second>lora_B|lora_up|lora(?:_linear_layer)?\.up)"
)


@contextmanager
def applied(pipeline: Any, values: Mapping[str, Any], sink: EngineSink) -> Iterator[None]:
    """Apply the request's LoRA weights with the weight ``lora_scale`` inside the block."""
    file: Upload | None = values.get(_REQUESTED + FILE)
    if file is None:
        yield
        return
    with laid_over(pipeline, {"request": (file.path, float(values["lora_scale"]))}, _REQUESTED):
        sink.log(
            f"using LoRA weights of {file.size_bytes} bytes with "
            f"lora_scale={values['lora_scale']:g}"
        )
        yield


@contextmanager
def laid_over(
    pipeline: Any, weights: Mapping[str, tuple[Path, float]], param: str
) -> Iterator[None]:
    """Apply LoRA weights inside the block.

    Args:
        pipeline: The pipeline.
        weights: Name to safetensors file and scale.
        param: Request field for errors.

    Raises:
        BadRequestError: A file is not a LoRA, or does not fit the model.
        NoBackendError: The package peft is missing.
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
        # low_cpu_mem_usage would leave uninitialized memory where the file has no weights.
        pipeline.load_lora_weights(state, adapter_name=name, low_cpu_mem_usage=False)
    except (SafetensorError, *_UNFIT) as error:
        raise bad_request(
            f"{param}: the file has no LoRA weights for this model in safetensors format "
            f"({type(error).__name__})",
            param=param,
        ) from error
    if not any(name in known for known in pipeline.get_list_adapters().values()):
        raise bad_request(
            f"{param}: the LoRA weights do not fit this model",
            param=param,
        )


def _check(state: Mapping[str, Any], param: str) -> None:
    """Reject weights that diffusers would silently accept: NaN, integers, incomplete layers."""
    if not all(one.is_floating_point() and is_finite(one.float()) for one in state.values()):
        raise bad_request(
            f"{param}: the LoRA weights contain NaN, infinite or integer values", param=param
        )
    halves: dict[str, set[str]] = {"first": set(), "second": set()}
    for name in state:
        found = _HALF.search(name)
        if found is not None and found.lastgroup is not None:
            halves[found.lastgroup].add(_HALF.sub("", name, count=1))
    lacking = halves["first"] ^ halves["second"]
    if lacking:
        raise bad_request(
            f"{param}: the LoRA weights are incomplete in {len(lacking)} layers",
            param=param,
        )


def check_finite(made: Any, model: str, values: Mapping[str, Any]) -> None:
    """Reject a decoder output with NaN or infinite values.

    Args:
        made: A torch tensor or NumPy array.
        model: Name of the model.
        values: Request fields, because weights from the request may be the cause.

    Raises:
        BadRequestError: Values are not finite, and weights from the request were used.
        InternalServerError: Values are not finite (code ``engine_failed``).
    """
    if is_finite(made):
        return
    for name in _BROUGHT:
        if values.get(name + FILE) is not None:
            raise bad_request(
                f"{name}: with these weights, {model} produced NaN or infinite values; nothing was "
                "generated. Use other weights, because these are damaged or too strong",
                param=name,
            )
    raise engine_failed(
        f"{model} produced NaN or infinite values; nothing was generated. Try lower guidance or "
        "weaker LoRA weights. If that fails, the model is damaged (check it with "
        "'polymux models info NAME --verify') or does not support the configured dtype"
    )


def is_finite(made: Any) -> bool:
    import numpy
    import torch

    if isinstance(made, torch.Tensor):
        return bool(torch.isfinite(made).all())
    return bool(numpy.isfinite(made).all())
