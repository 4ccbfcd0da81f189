"""Numbers that are none: what a network comes to whose weights are damaged, or too large for it.

Pictures of them are black, and silent ones: so they are looked for before there is a picture.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.engines.diffusion import loras
from polymux.service.errors import bad_request, engine_failed

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Fields whose weights a request has brought itself.
_BROUGHT = ("replicate_weights", "lora_links", "custom_sd_model")


def check(made: Any, model: str, values: Mapping[str, Any]) -> None:
    """Refuses to make a picture of what a decoder gave.

    Args:
        made: A tensor, or an array of numpy.
        model: Name of the model, for people.
        values: Of the request: what it brought may be the reason.

    Raises:
        BadRequestError: Some of it is no number, and weights that the request brought were at work.
        InternalServerError: Some of it is no number (code ``engine_failed``).
    """
    if is_finite(made):
        return
    for name in _BROUGHT:
        if values.get(name + loras.FILE) is not None:
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
    """Whether all of a tensor, or of an array, are numbers."""
    import numpy
    import torch

    if isinstance(made, torch.Tensor):
        return bool(torch.isfinite(made).all())
    return bool(numpy.isfinite(made).all())
