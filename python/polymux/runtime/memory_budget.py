"""Memory for models: what one will take, and whose is given back to make room for it."""

from __future__ import annotations

import struct
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.memory import machine_free_bytes, resident_bytes
from polymux.engines.base import context_tokens
from polymux.engines.chat.gguf import gguf_facts
from polymux.models.families import layout_of
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from polymux.engines.process.process import EngineProcess
    from polymux.engines.process.supervisor import EngineBackend

_MIB = 1 << 20
#: Beside its weights, measured with small models: libraries, and what they compute in.
_CHAT_BYTES = 200 * _MIB
_SPEECH_BYTES = 250 * _MIB
_UPSCALE_BYTES = 300 * _MIB
_RAPIDOCR_BYTES = 900 * _MIB
_TESSERACT_BYTES = 100 * _MIB
_DIFFUSION_BYTES = 800 * _MIB
_KEY_VALUE_BYTES = 2  # Of each number that llama.cpp keeps of a token: 16-bit floats.
_RETRY_AFTER_S = 30.0
#: Of a model's shape; the largest that there are have embeddings of some ten thousands.
_LARGEST_FACT = 1 << 20


def needed_bytes(family: str, options: Mapping[str, Any]) -> int | None:
    """What an engine will take once it is loaded, about; None where nobody knows."""
    model = Path(str(options.get("model", ""))).expanduser()
    with suppress(OSError, ValueError, struct.error, KeyError, errors.PolymuxError):
        if family == "chat":
            eyes = options.get("mmproj")
            files = [model.parent / one for one in layout_of(model, "chat").files]
            files += [Path(str(eyes)).expanduser()] if eyes else []
            tokens = context_tokens(options) * int(options.get("max_concurrency", 1))
            return sum(one.stat().st_size for one in files) + tokens * _kept(model) + _CHAT_BYTES
        if family == "speech":
            return 2 * (model / "model.bin").stat().st_size + _SPEECH_BYTES
        if family == "upscale":
            return 2 * model.with_suffix(".bin").stat().st_size + _UPSCALE_BYTES
        if family == "diffusion":
            return _diffusion_bytes(options)
    return {"rapidocr": _RAPIDOCR_BYTES, "tesseract": _TESSERACT_BYTES}.get(family)


def _kept(model: Path) -> int:
    """Bytes of each token; 0 where the model has no heads, or does not tell its shape.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no GGUF.
        struct.error: It ends too early.
        KeyError: It has values of an unknown type.
    """
    facts = gguf_facts(model)
    with suppress(ValueError, KeyError):
        return _bytes_per_token(facts)
    return 0


def _diffusion_bytes(options: Mapping[str, Any]) -> int:
    """Of the largest model and what works with it; models that rest are given up for it."""
    from polymux.models.torch_device import number_bytes
    from polymux.models.weights import weight_bytes

    each = number_bytes(str(options.get("device", "auto")), str(options.get("dtype", "auto")))
    sizes = {
        role: weight_bytes(Path(one["path"]), each)
        for role, one in dict(options.get("models") or {}).items()
    }
    beside = sizes.pop("detail:controlnet", 0)
    needed = [size + (beside if role.startswith("detail:") else 0) for role, size in sizes.items()]
    return max(needed, default=beside) + _DIFFUSION_BYTES


class MemoryBudget:
    """The memory that all engines share.

    Args:
        limit_bytes: Most that they may take together; None for what the machine has.
        free: Tells what the machine has left, in bytes. Default: as Linux tells it.
    """

    def __init__(
        self, limit_bytes: int | None = None, free: Callable[[], int | None] | None = None
    ) -> None:
        """No engine is known."""
        self._limit_bytes = limit_bytes
        self._free = free or machine_free_bytes
        self._engines: list[EngineBackend] = []
        #: That were told that there is room, and may be loading still.
        self._promised: set[EngineBackend] = set()

    def add(self, engine: EngineBackend) -> None:
        """One that may be asked to give its memory back."""
        self._engines.append(engine)

    async def make_room(self, engine: EngineBackend) -> None:
        """Ends idle engines, the longest unused first, until this one can be loaded.

        The room is its own from then on: what others load at the same time has to fit beside it.

        Raises:
            OverloadedError: The others are at work (code ``overloaded``).
            NoBackendError: It would not fit alone.
        """
        needed = engine.needed_bytes
        if needed is None:
            return
        self._promised.discard(engine)
        for other in sorted(self._engines, key=lambda one: one.rested_at):
            if self._left() >= needed:
                break
            if other is not engine and other.process is not None:
                await other.unload()
        left = self._left()
        if left >= needed:
            self._promised.add(engine)
            return
        words = (
            f"{engine.name} needs about {needed // _MIB} MiB of memory, and {left // _MIB} MiB "
            "are free for it"
        )
        others = (one for one in self._engines if one is not engine)
        if any(one.process is not None or one in self._promised for one in others):
            raise status_error(
                errors.OverloadedError,
                f"{words} while others work: ask again later",
                retry_after_s=_RETRY_AFTER_S,
            )
        raise status_error(
            errors.NoBackendError,
            f"{words}: choose a smaller model, a shorter context, or raise "
            "limits.engines_memory_bytes",
        )

    def _left(self) -> int:
        """What nobody has, and nobody was promised."""
        self._promised = {one for one in self._promised if one.loading is not None}
        coming = sum(
            max(0, (one.needed_bytes or 0) - _resident_bytes(one.loading)) for one in self._promised
        )
        found = self._free()
        left = found if found is not None else 1 << 62
        if self._limit_bytes is not None:
            processes = [one for each in self._engines for one in (each.process, each.loading)]
            left = min(left, self._limit_bytes - sum(map(_resident_bytes, processes)))
        return max(0, left - coming)


def _resident_bytes(process: EngineProcess | None) -> int:
    return 0 if process is None or process.pid is None else resident_bytes(process.pid)


def context_bytes_per_token(path: Path) -> int:
    """What llama.cpp keeps of a token of the conversation, by the model's shape.

    Raises:
        OSError: The file cannot be read.
        ValueError: It is no GGUF, or none of a model's shape.
        KeyError: It does not tell its shape.
    """
    return _bytes_per_token(gguf_facts(path))


def _bytes_per_token(facts: Mapping[str, Any]) -> int:
    family = facts["general.architecture"]

    def fact(name: str) -> int:
        found = facts[f"{family}.{name}"]
        each = found if isinstance(found, list) else [found]  # Of each layer.
        # Somebody's file may say anything, and a server looks at all that lie in its folder.
        if not all(type(one) is int and 0 <= one <= _LARGEST_FACT for one in each) or not any(each):
            raise ValueError(name)
        return int(max(each))

    heads = fact("attention.head_count")
    # GGUF's default: as many as there are heads.
    is_told = f"{family}.attention.head_count_kv" in facts
    own_heads = fact("attention.head_count_kv") if is_told else heads
    told = f"{family}.attention.key_length" in facts
    length = fact("attention.key_length") if told else fact("embedding_length") // heads
    return fact("block_count") * own_heads * length * 2 * _KEY_VALUE_BYTES
