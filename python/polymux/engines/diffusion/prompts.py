"""Prompts in the syntax of AUTOMATIC1111's web UI: weights, LoRA networks, and BREAK.

See https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features#attentionemphasis.
``(words)`` multiplies the weight by 1.1, ``[words]`` divides it by 1.1, ``(words:1.5)`` multiplies
it by 1.5. A backslash escapes a literal bracket. Prompt editing (``[from:to:when]``,
``[one|other]``) is not supported and is read as text in brackets.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from polymux.engines.base import EngineSink

    #: Token IDs and their weights.
    Chunk = tuple[list[int], list[float]]

#: Maximum length of a prompt; the rest is ignored.
_MAX_CHARACTERS = 50_000
#: Maximum nesting of each kind of bracket; deeper brackets are text.
_MAX_OPEN = 16
#: Larger weights overflow.
_MAX_WEIGHT = 100.0
_MORE, _LESS = 1.1, 1 / 1.1
_NETWORK = re.compile(r"<(\w+):([^:<>]+)((?::[^:<>]*)*)>")
_TOKEN = re.compile(
    r"""\\(?P<escaped>[\\()\[\]])
    |(?P<open>[(\[])
    |:\s*(?P<weight>[+-]?(?:\d+(?:\.\d*)?|\.\d+))\s*\)
    |(?P<close>[)\]])
    |(?P<text>\\|:|[^\\()\[\]:]+)""",
    re.VERBOSE,
)
_BREAK = re.compile(r"\bBREAK\b")
#: Names of textual inversion embeddings, which would need separate files for each model.
_EMBEDDINGS = (
    "JuggernautNegative-neg", "verybadimagenegative_v1.3", "FastNegativeV2", "UnrealisticDream",
    "ng_deepnegative_v1_75t", "EasyNegative", "bad-hands-5", "badhandv4", "BadDream",
)  # fmt: skip
_EMBEDDING = re.compile(
    r"(?<![\w-])(?:" + "|".join(map(re.escape, _EMBEDDINGS)) + r")(?![\w-])", re.IGNORECASE
)


class Words(NamedTuple):
    """Text with one weight.

    Attributes:
        text: The text for the model.
        weight: From -100 to 100; 1 is normal.
    """

    text: str
    weight: float


class Prompt(NamedTuple):
    """A parsed prompt.

    Attributes:
        parts: The sections between BREAKs, which are encoded separately. There is at least one;
            sections may be empty.
        loras: Names of LoRA weights with their scales, in order.
        left_out: Messages about ignored parts, for users.
    """

    parts: tuple[tuple[Words, ...], ...]
    loras: tuple[tuple[str, float], ...]
    left_out: tuple[str, ...]


def parsed(text: str) -> Prompt:
    """Parse a prompt. Any text is valid: invalid syntax is read as text.

    Only the first 50,000 characters are read.

    Example:
        >>> from polymux.engines.diffusion.prompts import parsed
        >>> prompt = parsed("a (red:1.5) barn <lora:more_details:0.5>")
        >>> [(one.text, one.weight) for one in prompt.parts[0]]
        [('a ', 1.0), ('red', 1.5), (' barn ', 1.0)]
        >>> prompt.loras
        (('more_details', 0.5),)
    """
    loras: list[tuple[str, float]] = []
    left_out: list[str] = []
    if len(text) > _MAX_CHARACTERS:
        left_out.append(f"prompt too long: only the first {_MAX_CHARACTERS} characters are used")
        text = text[:_MAX_CHARACTERS]

    def network(match: re.Match[str]) -> str:
        kind, name, numbers = match.groups()
        if kind.lower() not in ("lora", "lyco"):
            left_out.append(f"{match[0]}: ignored, because only LoRA weights are supported")
            return ""
        loras.append((name.strip(), _number(numbers)))
        return ""

    def embedding(match: re.Match[str]) -> str:
        left_out.append(
            f"{match[0]}: ignored, because textual inversion embeddings are not supported"
        )
        return ""

    plain = _EMBEDDING.sub(embedding, _NETWORK.sub(network, text))
    return Prompt(_parts(_weighed(plain)), tuple(loras), tuple(left_out))


def _number(numbers: str) -> float:
    """Parse the first of several numbers, each after a colon."""
    first = numbers.removeprefix(":").partition(":")[0]
    try:
        found = float(first)
    except ValueError:
        return 1.0
    return _bounded(found) if math.isfinite(found) else 1.0


def _bounded(weight: float) -> float:
    return min(max(weight, -_MAX_WEIGHT), _MAX_WEIGHT)


def _weighed(text: str) -> list[Words]:
    found: list[Words] = []
    # Start positions of the open brackets by kind.
    opened: dict[str, list[int]] = {"(": [], "[": []}

    def weigh(kind: str, weight: float) -> None:
        first = opened[kind].pop()
        found[first:] = [Words(one.text, _bounded(one.weight * weight)) for one in found[first:]]

    for match in _TOKEN.finditer(text):
        kind, matched = match.lastgroup, match[0]
        if kind == "open" and len(opened[matched]) < _MAX_OPEN:
            opened[matched].append(len(found))
        elif kind == "weight" and opened["("]:
            weigh("(", _bounded(float(match["weight"])))
        elif kind == "close" and opened["(" if matched == ")" else "["]:
            weigh(*(("(", _MORE) if matched == ")" else ("[", _LESS)))
        else:
            found.append(Words(match["escaped"] or matched, 1.0))
    # Unclosed brackets extend to the end.
    for kind, weight in (("(", _MORE), ("[", _LESS)):
        while opened[kind]:
            weigh(kind, weight)
    return _merged(found)


def _merged(words: list[Words]) -> list[Words]:
    merged: list[Words] = []
    for one in words:
        if merged and merged[-1].weight == one.weight:
            merged[-1] = Words(merged[-1].text + one.text, one.weight)
        else:
            merged.append(one)
    return merged


def _parts(words: list[Words]) -> tuple[tuple[Words, ...], ...]:
    parts: list[list[Words]] = [[]]
    for one in words:
        first, *others = _BREAK.split(one.text)
        parts[-1].append(Words(first.rstrip() if others else first, one.weight))
        for number, text in enumerate(others, 1):
            # Only the spaces next to BREAK belong to it.
            inner = text.lstrip() if number == len(others) else text.strip()
            parts.append([Words(inner, one.weight)])
    return tuple(tuple(one for one in part if one.text) for part in parts)


def tell_of_length(
    parts: Mapping[str, Any], values: Mapping[str, Any], names: Sequence[str], sink: EngineSink
) -> None:
    """Log a message if a prompt is longer than the model reads."""
    tokenizer: Any = parts.get("tokenizer") or parts.get("tokenizer_2")
    # Tokens for the beginning and the end.
    around = len(tokenizer("").input_ids)
    most = tokenizer.model_max_length - around
    for name in names:
        count = len(tokenizer(str(values.get(name) or "")).input_ids) - around
        if count > most:
            sink.warn(
                f"{name}: too long (got {count} tokens): the model reads only the first {most}"
            )


#: Maximum chunks of a prompt; the rest is ignored.
MAX_CHUNKS = 20
#: A mean closer to zero is not used for scaling.
_TINY = 1e-6


def encoded(
    prompts: Sequence[Prompt],
    tokenizer: Any,
    encoder: Any,
    device: Any,
    tell: Callable[[str], object] | None = None,
) -> Any:
    """Encode prompts with weights for the network.

    Args:
        prompts: The prompts.
        tokenizer: The model's tokenizer.
        encoder: The model's text encoder.
        device: The device.
        tell: Called with a message if a prompt is too long. Default: None.

    Returns:
        A tensor of shape (prompts, tokens, width), with 77 tokens per chunk and the same number of
            chunks for all prompts.
    """
    import torch

    chunked = [_chunks(one, tokenizer) for one in prompts]
    if tell is not None and any(len(one) > MAX_CHUNKS for one in chunked):
        room = tokenizer.model_max_length - 2
        tell(f"prompt too long: only the first {MAX_CHUNKS} chunks of {room} tokens are used")
    chunked = [one[:MAX_CHUNKS] for one in chunked]
    most = max(map(len, chunked))
    empty = _chunk([], [], tokenizer)
    with torch.inference_mode():
        return torch.cat(
            [_read([*one, *[empty] * (most - len(one))], encoder, device) for one in chunked]
        )


def _read(chunks: Sequence[Chunk], encoder: Any, device: Any) -> Any:
    import torch

    ids = torch.tensor([numbers for numbers, _ in chunks], device=device)
    weights = torch.tensor([one for _, one in chunks], device=device)
    plain = encoder(ids)[0]
    width = plain.shape[-1]
    if bool((weights == 1).all()):
        return plain.reshape(1, -1, width)
    weighed = plain.float() * weights[:, :, None]
    before, after = plain.float().mean(), weighed.mean()
    if abs(float(after)) > _TINY:
        weighed = weighed * (before / after)
    return weighed.to(plain.dtype).reshape(1, -1, width)


def _chunks(prompt: Prompt, tokenizer: Any) -> list[Chunk]:
    """Split a prompt into chunks. At least one too many is returned if the prompt is too long."""
    found: list[Chunk] = []
    room = tokenizer.model_max_length - 2
    for part in prompt.parts[: MAX_CHUNKS + 1]:
        numbers: list[int] = []
        weights: list[float] = []
        for words in part:
            if len(numbers) > MAX_CHUNKS * room:
                break
            tokens = tokenizer(words.text, add_special_tokens=False, verbose=False).input_ids
            numbers += tokens
            weights += [words.weight] * len(tokens)
        for first in range(0, max(1, len(numbers)), room):
            end = first + room
            found.append(_chunk(numbers[first:end], weights[first:end], tokenizer))
    return found


def _chunk(numbers: list[int], weights: list[float], tokenizer: Any) -> Chunk:
    """Add begin and end tokens, and pad to the full length."""
    missing = tokenizer.model_max_length - 2 - len(numbers)
    padding = tokenizer.pad_token_id
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    return (
        [begin, *numbers, end, *[padding] * missing],
        [1.0, *weights, 1.0, *[1.0] * missing],
    )
