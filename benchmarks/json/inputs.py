"""Inputs to write and to validate. Each call gets new objects, so cached copies do not help."""

import json
import random
from collections.abc import Callable
from typing import Any

MEGABYTE = 1 << 20
WORDS = (
    "the river runs past old stone houses where people have kept boats since anybody can remember",
    "and in summer evenings they sit outside talking about weather prices and children far away",
)


def prose(characters: int, seed: int = 1) -> str:
    """Return English-like text with sentences, quotation marks and line ends."""
    source = random.Random(seed)
    pieces: list[str] = []
    size = 0
    while size < characters:
        words = source.choices(" ".join(WORDS).split(), k=source.randint(6, 18))
        sentence = " ".join(words).capitalize() + source.choice(
            (". ", ". ", ".\n", "! ", '" said he. "')
        )
        pieces.append(sentence)
        size += len(sentence)
    return "".join(pieces)[:characters]


def sprinkled(text: str, extra: str, every: int, seed: int = 2) -> str:
    """Return the text with about one in `every` characters replaced by one of `extra`."""
    source = random.Random(seed)
    return "".join(source.choice(extra) if source.randrange(every) == 0 else c for c in text)


def chat() -> dict[str, Any]:
    """Return a chat request of 8 KB with twenty messages and two tools."""
    messages: list[dict[str, Any]] = [{"role": "system", "content": prose(400, 3)}]
    for turn in range(9):
        messages.append({"role": "user", "content": prose(150 + 25 * turn, 10 + turn)})
        messages.append({"role": "assistant", "content": prose(300 + 30 * turn, 30 + turn)})
    call = {"name": "weather", "arguments": json.dumps({"place": "Basel", "days": 3})}
    messages.append(
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [{"id": "call_1", "type": "function", "function": call}],
        }
    )
    properties = {
        "place": {"type": "string", "description": "Name of a town."},
        "days": {"type": "integer", "minimum": 1, "maximum": 14},
        "units": {"type": "string", "enum": ["metric", "imperial"]},
    }
    parameters = {"type": "object", "properties": properties, "required": ["place"]}
    tools = [
        {
            "type": "function",
            "function": {"name": name, "description": prose(120, 60), "parameters": parameters},
        }
        for name in ("weather", "tides")
    ]
    return {
        "model": "default",
        "messages": messages,
        "tools": tools,
        "tool_choice": "auto",
        "temperature": 0.7,
        "top_p": 0.95,
        "max_completion_tokens": 1024,
        "stream": True,
        "seed": 20261121,
    }


def texts() -> dict[str, str]:
    """Return texts of one megabyte of each kind."""
    plain = prose(MEGABYTE)
    chinese = random.Random(4).choices(
        [chr(code) for code in range(0x4E00, 0x9FA5)], k=MEGABYTE // 3
    )
    return {
        "1 MiB English prose": plain,
        "1 MiB dense escapes": sprinkled(plain, '"\\\n\t', 5),
        "1 MiB prose with emoji (UCS4)": sprinkled(plain, "😀🎉🚀", 40),
        "1 MiB Latin-1": sprinkled(plain, "éèàüöß", 12),
        "1 MiB Chinese": "".join(chinese),
    }


def makers() -> dict[str, tuple[Callable[[], Any], int]]:
    """Return for each case a function that creates new objects, and the number of calls per
    round."""
    body = json.dumps(chat())

    def text_maker(text: str) -> Callable[[], Any]:
        head, tail = text[:1], text[1:]
        return lambda: {"prompt": head + tail}

    cases: dict[str, tuple[Callable[[], Any], int]] = {
        "chat of 20 messages with tools": (lambda: json.loads(body), 200)
    }
    cases.update({name: (text_maker(text), 8) for name, text in texts().items()})
    return cases
