"""Models with random weights for stable-diffusion.cpp: the smallest networks that it knows."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, BinaryIO

import numpy

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Shapes = Mapping[str, tuple[int, ...]]

_F32, _F16, _Q4_0 = 0, 1, 2
_ALIGNMENT = 32
#: Numbers of a block in the format Q4_0.
_BLOCK = 32
_WORDS, _TIME = 768, 1280


def write(folder: Path, seed: int = 7) -> Path:
    """Write Stable Diffusion 1 without its middle block: 580 MB. Its decoder is TAESD."""
    folder.mkdir(parents=True, exist_ok=True)
    rng = numpy.random.default_rng(seed)
    shapes = {f"unet.{name}": one for name, one in _network().items()}
    shapes |= {f"te.text_model.{name}": one for name, one in _text_encoder().items()}
    write_gguf(folder / "model.gguf", shapes, rng)
    write_gguf(folder / "taesd.gguf", _tiny_autoencoder(), rng)
    return folder


def _linear(name: str, *shape: int) -> Shapes:
    """A linear layer or, with a kernel, a convolution."""
    return {f"{name}.weight": shape, f"{name}.bias": shape[:1]}


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _resnet(name: str, before: int, after: int) -> Shapes:
    shortcut = _linear(f"{name}.conv_shortcut", after, before, 1, 1) if before != after else {}
    return {
        **_norm(f"{name}.norm1", before),
        **_linear(f"{name}.conv1", after, before, 3, 3),
        **_linear(f"{name}.time_emb_proj", after, _TIME),
        **_norm(f"{name}.norm2", after),
        **_linear(f"{name}.conv2", after, after, 3, 3),
        **shortcut,
    }


def _attention(name: str, width: int) -> Shapes:
    block = f"{name}.transformer_blocks.0"
    found = {
        **_norm(f"{name}.norm", width),
        **_linear(f"{name}.proj_in", width, width, 1, 1),
        **_linear(f"{name}.proj_out", width, width, 1, 1),
        **_linear(f"{block}.ff.net.0.proj", 8 * width, width),
        **_linear(f"{block}.ff.net.2", width, 4 * width),
    }
    for number in (1, 2, 3):
        found |= _norm(f"{block}.norm{number}", width)
    for part, other in (("attn1", width), ("attn2", _WORDS)):
        found[f"{block}.{part}.to_q.weight"] = (width, width)
        found[f"{block}.{part}.to_k.weight"] = (width, other)
        found[f"{block}.{part}.to_v.weight"] = (width, other)
        found |= _linear(f"{block}.{part}.to_out.0", width, width)
    return found


def _network() -> Shapes:
    """Names and shapes as in diffusers."""
    found = {
        **_linear("conv_in", 320, 4, 3, 3),
        **_linear("time_embedding.linear_1", _TIME, 320),
        **_linear("time_embedding.linear_2", _TIME, _TIME),
        **_norm("conv_norm_out", 320),
        **_linear("conv_out", 4, 320, 3, 3),
    }
    width, skipped = 320, [320]
    for number, after in enumerate((320, 640, 1280)):
        place = f"down_blocks.{number}"
        found |= _resnet(f"{place}.resnets.0", width, after)
        found |= _attention(f"{place}.attentions.0", after)
        width = after
        skipped.append(width)
        if number < 2:
            found |= _linear(f"{place}.downsamplers.0.conv", width, width, 3, 3)
            skipped.append(width)
    for number, after in enumerate((1280, 640, 320)):
        place = f"up_blocks.{number}"
        for layer in range(2):
            found |= _resnet(f"{place}.resnets.{layer}", width + skipped.pop(), after)
            found |= _attention(f"{place}.attentions.{layer}", after)
            width = after
        if number < 2:
            found |= _linear(f"{place}.upsamplers.0.conv", width, width, 3, 3)
    return found


def _text_encoder() -> Shapes:
    found: dict[str, tuple[int, ...]] = {
        "embeddings.token_embedding.weight": (49408, _WORDS),
        "embeddings.position_embedding.weight": (77, _WORDS),
        **_norm("final_layer_norm", _WORDS),
    }
    for number in range(12):
        place = f"encoder.layers.{number}"
        for part in ("q_proj", "k_proj", "v_proj", "out_proj"):
            found |= _linear(f"{place}.self_attn.{part}", _WORDS, _WORDS)
        found |= _linear(f"{place}.mlp.fc1", 4 * _WORDS, _WORDS)
        found |= _linear(f"{place}.mlp.fc2", _WORDS, 4 * _WORDS)
        for part in ("layer_norm1", "layer_norm2"):
            found |= _norm(f"{place}.{part}", _WORDS)
    return found


def _tiny_autoencoder() -> Shapes:
    """TAESD, https://github.com/madebyollin/taesd."""
    found = {
        **_linear("encoder.layers.0", 64, 3, 3, 3),
        **_linear("encoder.layers.14", 4, 64, 3, 3),
        **_linear("decoder.layers.0", 64, 4, 3, 3),
        **_linear("decoder.layers.18", 3, 64, 3, 3),
    }
    blocks = {
        "encoder": (1, 3, 4, 5, 7, 8, 9, 11, 12, 13),
        "decoder": (2, 3, 4, 7, 8, 9, 12, 13, 14, 17),
    }
    for part, places in blocks.items():
        for place in places:
            for layer in (0, 2, 4):
                found |= _linear(f"{part}.layers.{place}.conv.{layer}", 64, 64, 3, 3)
    for name in ("encoder.layers.2", "encoder.layers.6", "encoder.layers.10",
                 "decoder.layers.6", "decoder.layers.11", "decoder.layers.16"):  # fmt: skip
        found[f"{name}.weight"] = (64, 64, 3, 3)
    return found


def write_gguf(path: Path, shapes: Shapes, rng: numpy.random.Generator) -> None:
    """Write random weights of the given shapes.

    https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
    """
    data, head, offset = [], b"", 0
    for name, shape in shapes.items():
        kind, raw = _weights(name, shape, rng)
        encoded = name.encode()
        head += struct.pack("<Q", len(encoded)) + encoded
        head += struct.pack(f"<I{len(shape)}QIQ", len(shape), *reversed(shape), kind, offset)
        data.append(raw)
        offset += len(raw) + -len(raw) % _ALIGNMENT
    with path.open("wb") as file:
        file.write(struct.pack("<4sIQQ", b"GGUF", 3, len(shapes), 0) + head)
        _pad(file)
        for raw in data:
            file.write(raw)
            _pad(file)


def _pad(file: BinaryIO) -> None:
    file.write(bytes(-file.tell() % _ALIGNMENT))


def _weights(name: str, shape: tuple[int, ...], rng: numpy.random.Generator) -> tuple[int, bytes]:
    count = math.prod(shape)
    if len(shape) == 1:
        value = 1.0 if name.endswith("weight") else 0.0
        return _F32, numpy.full(count, value, numpy.float32).tobytes()
    deviation = 1 / math.sqrt(math.prod(shape[1:]))
    if len(shape) != 2 or shape[1] % _BLOCK or "embedding" in name:
        # Repeated, because drawing takes long.
        values = rng.standard_normal(min(count, 1 << 20), numpy.float32) * deviation
        return _F16, numpy.resize(values.astype(numpy.float16), count).tobytes()
    # A scale, then 32 numbers from -8 to 7.
    blocks = numpy.empty((count // _BLOCK, 18), numpy.uint8)
    blocks[:, 2:] = rng.integers(0, 256, (len(blocks), 16), numpy.uint8)
    scale = numpy.float16(deviation / 4.6)
    blocks[:, :2] = numpy.frombuffer(scale.tobytes(), numpy.uint8)
    return _Q4_0, blocks.tobytes()
