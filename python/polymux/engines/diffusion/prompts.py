"""Prompts as AUTOMATIC1111's web page has them: weights in brackets, networks in angles, BREAK.

https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features#attentionemphasis is the
description: ``(words)`` weigh 1.1 times as much, ``[words]`` 1.1 times less, ``(words:1.5)`` 1.5
times; brackets that are meant as such have a backslash. Words that change from step to step
(``[from:to:when]``, ``[one|other]``) are not known here: they are words with brackets.
"""

from __future__ import annotations

import math
import re
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from polymux.engines.base import EngineSink

    #: Numbers of tokens and their weights.
    Chunk = tuple[list[int], list[float]]

#: Of a prompt; what lies beyond them is not read.
_MAX_CHARACTERS = 50_000
#: Brackets of a kind that may be open at once; further ones are words.
_MAX_OPEN = 16
#: Beyond it what comes of the words is no number any more.
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
#: Words that were trained for one model each, and are files of their own.
_EMBEDDINGS = (
    "JuggernautNegative-neg", "verybadimagenegative_v1.3", "FastNegativeV2", "UnrealisticDream",
    "ng_deepnegative_v1_75t", "EasyNegative", "bad-hands-5", "badhandv4", "BadDream",
)  # fmt: skip
_EMBEDDING = re.compile(
    r"(?<![\w-])(?:" + "|".join(map(re.escape, _EMBEDDINGS)) + r")(?![\w-])", re.IGNORECASE
)


class Words(NamedTuple):
    """Words of one weight.

    Attributes:
        text: As the model is to read them.
        weight: How much they count, from -100 to 100; 1 is usual.
    """

    text: str
    weight: float


class Prompt(NamedTuple):
    """What a prompt says.

    Attributes:
        parts: What lies between BREAKs: each is read by itself. At least one; each may be empty.
        loras: Names of LoRA weights with how much of each, in order.
        left_out: What is not done, for people.
    """

    parts: tuple[tuple[Words, ...], ...]
    loras: tuple[tuple[str, float], ...]
    left_out: tuple[str, ...]


def parsed(text: str) -> Prompt:
    """Reads a prompt. None is wrong: what has no meaning is words.

    Of a longer one the first 50,000 characters are read.

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
        left_out.append(f"of a prompt the first {_MAX_CHARACTERS} characters are read")
        text = text[:_MAX_CHARACTERS]

    def network(match: re.Match[str]) -> str:
        kind, name, numbers = match.groups()
        if kind.lower() not in ("lora", "lyco"):
            left_out.append(f"{match[0]}: only LoRA weights are known")
            return ""
        loras.append((name.strip(), _number(numbers)))
        return ""

    def embedding(match: re.Match[str]) -> str:
        left_out.append(f"{match[0]}: a trained word, which nothing here has")
        return ""

    plain = _EMBEDDING.sub(embedding, _NETWORK.sub(network, text))
    return Prompt(_parts(_weighed(plain)), tuple(loras), tuple(left_out))


def _number(numbers: str) -> float:
    """The first of them; they follow colons."""
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
    # Where brackets that are still open began, by their kind.
    opened: dict[str, list[int]] = {"(": [], "[": []}

    def weigh(kind: str, weight: float) -> None:
        first = opened[kind].pop()
        found[first:] = [Words(one.text, _bounded(one.weight * weight)) for one in found[first:]]

    for match in _TOKEN.finditer(text):
        kind, said = match.lastgroup, match[0]
        if kind == "open" and len(opened[said]) < _MAX_OPEN:
            opened[said].append(len(found))
        elif kind == "weight" and opened["("]:
            weigh("(", _bounded(float(match["weight"])))
        elif kind == "close" and opened["(" if said == ")" else "["]:
            weigh(*(("(", _MORE) if said == ")" else ("[", _LESS)))
        else:
            found.append(Words(match["escaped"] or said, 1.0))
    # What is never closed counts to the end.
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
            # Of the spaces those beside BREAK alone are its own.
            inner = text.lstrip() if number == len(others) else text.strip()
            parts.append([Words(inner, one.weight)])
    return tuple(tuple(one for one in part if one.text) for part in parts)


def tell_of_length(
    parts: Mapping[str, Any], values: Mapping[str, Any], names: Sequence[str], sink: EngineSink
) -> None:
    """Says so where words are more than the model reads."""
    tokenizer: Any = parts.get("tokenizer") or parts.get("tokenizer_2")
    # What stands for the beginning and the end.
    around = len(tokenizer("").input_ids)
    most = tokenizer.model_max_length - around
    for name in names:
        count = len(tokenizer(str(values.get(name) or "")).input_ids) - around
        if count > most:
            sink.log(f"{name}: of its {count} tokens the model reads the first {most}")


#: Of a prompt; what lies beyond them is not read.
MAX_CHUNKS = 20
#: Below it an average is none to go by.
_TINY = 1e-6


def encoded(
    prompts: Sequence[Prompt],
    tokenizer: Any,
    encoder: Any,
    device: Any,
    tell: Callable[[str], object] | None = None,
) -> Any:
    """What the network is told of some prompts.

    Args:
        tell: Told of prompts that are longer than what is read. Default: nobody is.

    Returns:
        A tensor of prompts, tokens (77 for each chunk; as many for all), width.
    """
    import torch

    chunked = [_chunks(one, tokenizer) for one in prompts]
    if tell is not None and any(len(one) > MAX_CHUNKS for one in chunked):
        room = tokenizer.model_max_length - 2
        tell(f"a prompt is longer than {MAX_CHUNKS} chunks of {room} tokens: the rest is not read")
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
    """Those of a prompt: one more than are read, at least, where there are more."""
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
    """Begin and end around it, and so many paddings that all are of a length."""
    missing = tokenizer.model_max_length - 2 - len(numbers)
    padding = tokenizer.pad_token_id
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    return (
        [begin, *numbers, end, *[padding] * missing],
        [1.0, *weights, 1.0, *[1.0] * missing],
    )
