"""Reading of metadata from GGUF files.

https://github.com/ggml-org/ggml/blob/master/docs/gguf.md
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Container, Sequence
    from pathlib import Path

#: Value types of fixed size: type number to `struct` format.
_PLAIN = dict(zip((0, 1, 2, 3, 4, 5, 6, 7, 10, 11, 12), "BbHhIif?Qqd", strict=True))
_TEXT, _ARRAY = 8, 9
_MAX_METADATA_ENTRIES = 10_000
_MAX_TEXT_BYTES = 64 << 20
_MAX_ITEMS = 10_000_000
_TOKENS, _KINDS = "tokenizer.ggml.tokens", "tokenizer.ggml.token_type"
_CONTROL = 3
#: The lists that `control_tokens` needs.
TOKENS = frozenset((_TOKENS,))
#: As written by https://github.com/city96/ComfyUI-GGUF.
_IMAGE_ARCHITECTURES = (
    "sd1", "sdxl", "sd3", "flux", "aura", "hidream", "lumina2", "qwen_image", "z_image",
    "ltxv", "hyvid", "wan", "cosmos", "chroma", "flux2", "ovis", "hunyuan_video",
)  # fmt: skip
_TEMPLATES = "tokenizer.chat_template"


def gguf_facts(path: Path, lists: Container[str] = ()) -> dict[str, Any]:
    """Read the metadata of a model's file.

    Args:
        path: The file; of a split model, the first file.
        lists: Names of text lists to read. Other text lists, which can be long, are returned empty.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a GGUF file.
        struct.error: It is truncated.
        KeyError: It has values of an unknown type.
    """
    with path.open("rb") as file:
        return _metadata(file, lists)[0]


def gguf_tensors(path: Path) -> list[str]:
    """Return the names of the tensors in a file.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is not a GGUF file.
        struct.error: It is truncated.
        KeyError: It has values of an unknown type.
    """
    with path.open("rb") as file:
        _, count = _metadata(file, ())
        names = []
        for _ in range(min(count, _MAX_ITEMS)):
            names.append(_text(file))
            (dimensions,) = _unpacked(file, "<I")
            file.seek(8 * dimensions + 12, 1)
        return names


def _metadata(file: BinaryIO, lists: Container[str]) -> tuple[dict[str, Any], int]:
    """Read the metadata, and the number of tensors."""
    magic, version, tensors, count = _unpacked(file, "<4sIQQ")
    if magic != b"GGUF" or version not in (2, 3) or count > _MAX_METADATA_ENTRIES:
        raise ValueError(magic)
    found: dict[str, Any] = {}
    for _ in range(count):
        name = _text(file)
        found[name] = _value(file, *_unpacked(file, "<I"), wanted=name in lists)
    return found, tensors


def holds_images(facts: dict[str, Any]) -> bool:
    """Whether a file has weights of a model for images or videos, by its metadata.

    Files that stable-diffusion.cpp writes have none.
    """
    return not facts or facts.get("general.architecture") in _IMAGE_ARCHITECTURES


def control_tokens(facts: dict[str, Any]) -> list[str]:
    """Return the control tokens, which tell a model where messages begin and end.

    Args:
        facts: Metadata from `gguf_facts` with `TOKENS` in its lists.
    """
    kinds = facts.get(_KINDS) or ()
    named = zip(facts.get(_TOKENS) or (), kinds, strict=False)
    return [text for text, kind in named if kind == _CONTROL and text]


def knows_tools(facts: dict[str, Any]) -> bool:
    templates = (one for name, one in facts.items() if name.startswith(_TEMPLATES))
    return any("tools" in one for one in templates if isinstance(one, str))


def _unpacked(file: BinaryIO, shape: str) -> Sequence[Any]:
    return struct.unpack(shape, file.read(struct.calcsize(shape)))


def _text(file: BinaryIO) -> str:
    (length,) = _unpacked(file, "<Q")
    if length > _MAX_TEXT_BYTES:
        raise ValueError(length)
    return file.read(length).decode("utf-8", "replace")


def _value(file: BinaryIO, kind: int, *, wanted: bool = False) -> Any:
    if kind == _TEXT:
        return _text(file)
    if kind == _ARRAY:
        inner, count = _unpacked(file, "<IQ")
        if count > _MAX_ITEMS or inner == _ARRAY:
            raise ValueError(count)
        if inner == _TEXT:
            kept = []
            for _ in range(count):
                text = _text(file)
                if wanted:
                    kept.append(text)
            return kept
        return list(_unpacked(file, f"<{count}{_PLAIN[inner]}"))
    return _unpacked(file, f"<{_PLAIN[kind]}")[0]
