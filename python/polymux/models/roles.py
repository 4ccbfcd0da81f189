"""What diffusion needs models for: each role has a model of the catalogue that belongs there."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Container, Mapping


class Role(NamedTuple):
    """A place for a model.

    Attributes:
        model: The model that belongs there, as the catalogue and the models folder call it.
        title: What it does, for people.
    """

    model: str
    title: str


#: Name of a role, as settings have it, to what belongs there.
ROLES: Mapping[str, Role] = {
    "picture:A": Role("sdxl-lightning-4step", "pictures in four steps"),
    "picture:B": Role("sdxl-base-1.0", "pictures, from texts and from pictures"),
    "picture:C": Role("playground-v2.5-1024px-aesthetic", "pictures that please"),
    "picture:refiner": Role("sdxl-refiner-1.0", "the refiner of pictures"),
    "picture:safety": Role("stable-diffusion-safety-checker", "the check of pictures"),
    "picture:decoder": Role("taesdxl", "a small and quick decoder of pictures"),
    "detail:juggernaut_reborn": Role("juggernaut-reborn", "detail"),
    "detail:epicrealism_naturalSinRC1VAE": Role("epicrealism-natural-sin-rc1", "detail"),
    "detail:flat2DAnimerge_v45Sharp": Role("flat2d-animerge-v4.5-sharp", "detail of drawings"),
    "detail:controlnet": Role("control-v11f1e-sd15-tile", "what keeps detail to its picture"),
    "video:xl": Role("zeroscope-v2-xl", "video of 1024 x 576"),
    "video:576w": Role("zeroscope-v2-576w", "video of 576 x 320"),
    "video:potat1": Role("potat1", "video of 1024 x 576"),
    "video:animov-512x": Role("animov-512x", "drawn video"),
    "music": Role("riffusion-model-v1", "music"),
}

#: Beside any model for detail.
_CONTROL = "detail:controlnet"
#: Operation and variant to the roles without which it cannot be done; `{}` is a field's choice.
_NEEDED = {
    ("generate_image", "A"): ("picture:A",),
    ("generate_image", "B"): ("picture:B",),
    ("generate_image", "C"): ("picture:C",),
    ("upscale_image", "A"): ("detail:{sd_model}", _CONTROL),
    ("generate_video", ""): ("video:{video_model}",),
    ("generate_music", ""): ("music",),
}


def needed_roles(operation: str, variant: str, values: Mapping[str, object]) -> tuple[str, ...]:
    """The roles without which a request cannot be done; empty for what is no generation.

    Example:
        >>> from polymux.models.roles import needed_roles
        >>> needed_roles("generate_video", "", {"video_model": "576w"})
        ('video:576w',)
    """
    wanted = _NEEDED.get((operation, variant if operation.endswith("_image") else ""), ())
    named = {name: _stem(str(value)) for name, value in values.items() if name.endswith("_model")}
    return tuple(one.format_map(named) for one in wanted)


def _stem(name: str) -> str:
    """Of a checkpoint's file, as requests name it: with its end and the first of its hash."""
    return name.partition(" ")[0].removesuffix(".safetensors")


def possible(roles: Container[str]) -> tuple[tuple[str, str], ...]:
    """Which operations and variants can be done, with at least one of their models.

    Args:
        roles: Those that are played.

    Example:
        >>> from polymux.models.roles import possible
        >>> possible({"picture:refiner", "music"})
        (('generate_music', ''),)
    """
    return tuple(
        key
        for key, needed in _NEEDED.items()
        if all(any(role in roles for role in _like(one)) for one in needed)
    )


def _like(form: str) -> list[str]:
    """The roles that a form stands for, whatever the request names."""
    start, brace, _ = form.partition("{")
    if not brace:
        return [form]
    return [one for one in ROLES if one.startswith(start) and one != _CONTROL]
