"""Estimates of engines' memory from the model files and the model's architecture.

If the files are invalid, these functions may raise OSError, ValueError, KeyError, struct.error or a
PolymuxError.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.base import context_tokens
from polymux.engines.chat.gguf import gguf_facts
from polymux.models.families import layout_of

if TYPE_CHECKING:
    from collections.abc import Mapping

_MIB = 1 << 20
#: Memory for libraries and computation, without weights; measured with small models.
_CHAT_BYTES = 200 * _MIB
_SPEECH_BYTES = 250 * _MIB
_UPSCALE_BYTES = 300 * _MIB
#: With the images, for the largest network.
_UPSCALED_BYTES = 1100 * _MIB
_RAPIDOCR_BYTES = 900 * _MIB
_DIFFUSION_BYTES = 800 * _MIB
_SDCPP_BYTES = 1500 * _MIB
#: Memory of stable-diffusion.cpp per pixel in computations, as it reports it: its network with
#: flash attention, a VAE with direct convolutions, and TAESD.
_NETWORK_PIXEL_BYTES, _VAE_PIXEL_BYTES, _TAESD_PIXEL_BYTES = 400, 2816, 1920
#: Wan's network works on groups of so many frames.
_GROUPED_FRAMES = 4
_KEY_VALUE_BYTES = 2  # llama.cpp keeps 16-bit floats.
#: Maximum of plausible values in a model's metadata. Large models have embeddings of some 10,000.
_LARGEST_FACT = 1 << 20


def expected_bytes(family: str, file_bytes: int, number_bytes: int, *, on_gpu: bool) -> int:
    """Estimate the memory of a model that is not installed, from the size of its files.

    Args:
        family: The engine that would run it.
        file_bytes: Size of the files.
        number_bytes: Bytes per weight in the files of `diffusion`.
        on_gpu: Whether `diffusion` computes in half precision, as on GPUs, or in single precision.
    """
    libraries = {
        "chat": _CHAT_BYTES, "speech": _SPEECH_BYTES, "upscale": _UPSCALED_BYTES,
        "diffusion": _DIFFUSION_BYTES, "sdcpp": _SDCPP_BYTES,
    }[family]  # fmt: skip
    if family == "diffusion":
        return file_bytes * (2 if on_gpu else 4) // number_bytes + libraries
    return file_bytes * (2 if family == "speech" else 1) + libraries


def chat_bytes(options: Mapping[str, Any]) -> int:
    model = _model_of(options)
    eyes = options.get("mmproj")
    files = [model.parent / one for one in layout_of(model, "chat").files]
    files += [Path(str(eyes)).expanduser()] if eyes else []
    tokens = context_tokens(options) * int(options.get("max_concurrency", 1))
    return sum(one.stat().st_size for one in files) + tokens * _kept(model) + _CHAT_BYTES


def speech_bytes(options: Mapping[str, Any]) -> int:
    return 2 * (_model_of(options) / "model.bin").stat().st_size + _SPEECH_BYTES


def rapidocr_bytes(options: Mapping[str, Any]) -> int:
    return int(options.get("max_concurrency", 1)) * _RAPIDOCR_BYTES


def upscale_bytes(options: Mapping[str, Any]) -> int:
    return 2 * _model_of(options).with_suffix(".bin").stat().st_size + _UPSCALE_BYTES


def diffusion_bytes(options: Mapping[str, Any]) -> int:
    """The largest model with its companions. Unused models are unloaded for it."""
    from polymux.models.diffusion_folders import weight_bytes
    from polymux.models.torch_device import number_bytes

    each = number_bytes(str(options.get("device", "auto")), str(options.get("dtype", "auto")))
    sizes = {
        role: weight_bytes(Path(one["path"]), each)
        for role, one in dict(options.get("models") or {}).items()
    }
    beside = sizes.pop("detail:controlnet", 0)
    needed = [size + (beside if role.startswith("detail:") else 0) for role, size in sizes.items()]
    return max(needed, default=beside) + _DIFFUSION_BYTES


def sdcpp_bytes(options: Mapping[str, Any]) -> int:
    """The largest model with its parts, in the format of its files."""
    sizes = map(_sdcpp_weights, dict(options.get("models") or {}).values())
    return max(sizes, default=0) + _SDCPP_BYTES


def _sdcpp_weights(model: Mapping[str, Any]) -> int:
    files = (model["path"], *model.get("parts", {}).values())
    return sum(Path(one).stat().st_size for one in files)


def sdcpp_request_bytes(
    model: Mapping[str, Any], pixels: int, frames: int, max_decoded_pixels: int
) -> int:
    """Return the memory of a request: the weights, and the larger of its computations.

    Args:
        model: ``path`` of the main file, and ``parts`` (option to path) if there are others.
        pixels: Pixels at which the model generates an image or a frame.
        frames: Number of frames. All are denoised together, and decoded one after another.
        max_decoded_pixels: Larger images are decoded in tiles, unless TAESD decodes them.
    """
    groups = -(-frames // _GROUPED_FRAMES)
    if "taesd" in model.get("parts", {}):
        decoding = pixels * _TAESD_PIXEL_BYTES
    else:
        decoding = min(pixels, max_decoded_pixels) * _VAE_PIXEL_BYTES
    return _sdcpp_weights(model) + max(pixels * groups * _NETWORK_PIXEL_BYTES, decoding)


def _model_of(options: Mapping[str, Any]) -> Path:
    return Path(str(options.get("model", ""))).expanduser()


def _kept(model: Path) -> int:
    """Return the bytes per token of context; 0 if the metadata is missing or invalid.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a GGUF file.
        struct.error: It is truncated.
        KeyError: It has values of an unknown type.
    """
    facts = gguf_facts(model)
    with suppress(ValueError, KeyError):
        return context_bytes_per_token(facts)
    return 0


def context_bytes_per_token(facts: Mapping[str, Any]) -> int:
    """Return the bytes that llama.cpp keeps per token of context, from the model's metadata.

    Raises:
        ValueError: A value is implausible.
        KeyError: A value is missing.
    """
    family = facts["general.architecture"]

    def fact(name: str) -> int:
        found = facts[f"{family}.{name}"]
        each = found if isinstance(found, list) else [found]  # One per layer.
        # Untrusted files may have any value, and a server reads all files in its models directory.
        if not all(type(one) is int and 0 <= one <= _LARGEST_FACT for one in each) or not any(each):
            raise ValueError(name)
        return int(max(each))

    heads = fact("attention.head_count")
    # GGUF's default is the number of heads.
    has_kv_heads = f"{family}.attention.head_count_kv" in facts
    kv_heads = fact("attention.head_count_kv") if has_kv_heads else heads
    has_key_length = f"{family}.attention.key_length" in facts
    length = fact("attention.key_length") if has_key_length else fact("embedding_length") // heads
    return fact("block_count") * kv_heads * length * 2 * _KEY_VALUE_BYTES
