"""Map model names of this server to those of an upstream."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from polymux import contract

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.service.model import OperationRequest

#: Model names of free_chat (`contracts.md` 2).
FREE_NAMES = ("gpt-4o", "gpt-3.5-turbo", "gpt-4")
CHATS = ("chat", "free_chat")
#: Operations that an OpenAI-compatible server supports.
OPENAI_OPERATIONS = (*CHATS, "transcribe", "generate_image")
#: Model name of clients that select no model (`contracts.md` G.2.5).
_FIRST = "default"


class ModelNames:
    """Maps our model names to the upstream's names.

    Chat models may have any name; other operations use the model selectors of the polymux API, such
    as ``"turian/insanely-fast-whisper-with-video"``.

    Args:
        names: Our name to the upstream's; ``default`` means the first. Empty: chats may use any
            model name of the upstream.

    Example:
        >>> from polymux.upstreams.model_names import ModelNames
        >>> names = ModelNames({"fast": "llama-3.1-8b-instant", "gpt-4o": "llama-3.3-70b"})
        >>> names.of_chat("fast"), names.of_chat("default"), names.of_chat("other")
        ('llama-3.1-8b-instant', 'llama-3.1-8b-instant', None)
        >>> names.of_free_chat("gpt-4o"), names.of_free_chat("gpt-4")
        ('llama-3.3-70b', None)
    """

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = dict(names)
        own = selectors()
        self._chats = {name: their for name, their in self._names.items() if name not in own}

    @property
    def of_chats(self) -> tuple[str, ...] | None:
        """Model names for chats; None for any name."""
        return tuple(self._chats) if self._names else None

    def of(self, work: OperationRequest) -> str | None:
        """Return the upstream's model name for a request; None if not configured."""
        if work.operation == "chat":
            return self.of_chat(str(work.values.get("model")))
        if work.operation == "free_chat":
            return self.of_free_chat(str(work.values.get("model")))
        return self.of_selector(work.model)

    def of_chat(self, name: str) -> str | None:
        """Return the upstream's name of a chat model; ``default`` is the first."""
        if not self._names:
            return None if name == _FIRST else name
        return next(iter(self._chats.values()), None) if name == _FIRST else self._chats.get(name)

    def of_free_chat(self, name: str) -> str | None:
        """Return the model for one of the free_chat names; the first if no such name is mapped."""
        if not self._names or any(one in self._chats for one in FREE_NAMES):
            return self._chats.get(name) if self._names else name
        return next(iter(self._chats.values()), None)

    def of_selector(self, model: str) -> str | None:
        """Return the model for a model selector; a single configured name serves all selectors."""
        if len(self._names) == 1:
            return next(iter(self._names.values()))
        return self._names.get(model.partition(":")[0])

    def lacking(self, operations: frozenset[str]) -> list[str]:
        """Return the operations for which no model is configured."""
        found = []
        for name in sorted(operations):
            if name in CHATS:
                there = not self._names or bool(self._chats)
            else:
                known = {one.model for one in contract.operation(name).variants}
                there = len(self._names) == 1 or not known.isdisjoint(self._names)
            if not there:
                found.append(name)
        return found


@cache
def selectors() -> frozenset[str]:
    return frozenset(
        variant.model
        for operation in contract.operations()
        for variant in operation.variants
        if variant.model
    )
