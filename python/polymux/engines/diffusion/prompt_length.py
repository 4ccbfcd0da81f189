"""Prompts that are longer than what a model reads: its pipelines cut them without a word."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polymux.engines.base import EngineSink


def tell_of_length(
    parts: Mapping[str, Any], values: Mapping[str, Any], names: Sequence[str], sink: EngineSink
) -> None:
    """Says so where words are more than the model reads.

    Args:
        parts: Of the model.
        values: Of the request.
        names: Its fields with words.
        sink: Where it is said.
    """
    tokenizer: Any = parts.get("tokenizer") or parts.get("tokenizer_2")
    # What stands for the beginning and the end.
    around = len(tokenizer("").input_ids)
    most = tokenizer.model_max_length - around
    for name in names:
        count = len(tokenizer(str(values.get(name) or "")).input_ids) - around
        if count > most:
            sink.log(f"{name}: of its {count} tokens the model reads the first {most}")
