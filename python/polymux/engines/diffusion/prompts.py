"""Prompts as AUTOMATIC1111's web page has them: weights in brackets, networks in angles, BREAK.

https://github.com/AUTOMATIC1111/stable-diffusion-webui/wiki/Features#attentionemphasis is the
description: ``(words)`` weigh 1.1 times as much, ``[words]`` 1.1 times less, ``(words:1.5)`` 1.5
times; brackets that are meant as such have a backslash. Words that change from step to step
(``[from:to:when]``, ``[one|other]``) are not known here: they are words with brackets.
"""

from __future__ import annotations

import math
import re
from typing import NamedTuple

#: Of a prompt; what lies beyond them is not read.
_MOST_CHARACTERS = 50_000
#: Brackets of a kind that may be open at once; further ones are words.
_MOST_OPEN = 16
#: Beyond it what comes of the words is no number any more.
_MOST_WEIGHT = 100.0
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
    if len(text) > _MOST_CHARACTERS:
        left_out.append(f"of a prompt the first {_MOST_CHARACTERS} characters are read")
        text = text[:_MOST_CHARACTERS]

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
    return min(max(weight, -_MOST_WEIGHT), _MOST_WEIGHT)


def _weighed(text: str) -> list[Words]:
    found: list[Words] = []
    # Where brackets that are still open began, by their kind.
    opened: dict[str, list[int]] = {"(": [], "[": []}

    def weigh(kind: str, weight: float) -> None:
        first = opened[kind].pop()
        found[first:] = [Words(one.text, _bounded(one.weight * weight)) for one in found[first:]]

    for match in _TOKEN.finditer(text):
        kind, said = match.lastgroup, match[0]
        if kind == "open" and len(opened[said]) < _MOST_OPEN:
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
