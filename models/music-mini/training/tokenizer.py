"""Trains CLIP's byte-pair code on captions of `compose.py`.

    tokenizer.py OUT

OUT gets vocab.json, merges.txt and the configuration.
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import re
from pathlib import Path

import numpy as np
from tokenizers import pre_tokenizers

from compose import compose

SIZE = 1500
CAPTIONS = 40_000
SEED = 77
#: Words of usual prompts that captions lack, so that they are not spelled byte by byte.
OTHERS = (
    "a song about the ocean at night, synthesizer and guitar solo, epic dreamy psychedelic soul pop"
)
BEGIN, END = "<|startoftext|>", "<|endoftext|>"

Word = tuple[str, ...]


def counted_words() -> dict[Word, int]:
    """Return the words of the captions as letters, with their counts."""
    captions = [compose(np.random.default_rng((SEED, index))).caption for index in range(CAPTIONS)]
    captions += [OTHERS] * 30
    counts = collections.Counter(
        word for text in captions for word in re.findall(r"[a-z]+|[0-9]|[^\s\w]+", text.lower())
    )
    return {(*word[:-1], word[-1] + "</w>"): count for word, count in counts.items()}


def merged(word: Word, pair: tuple[str, str]) -> Word:
    out: list[str] = []
    at = 0
    while at < len(word):
        if word[at : at + 2] == pair:
            out.append(pair[0] + pair[1])
            at += 2
        else:
            out.append(word[at])
            at += 1
    return tuple(out)


def trained(words: dict[Word, int], count: int) -> list[tuple[str, str]]:
    """Return the most frequent pairs of tokens, one after the other."""
    merges: list[tuple[str, str]] = []
    while len(merges) < count:
        pairs: collections.Counter[tuple[str, str]] = collections.Counter()
        for word, number in words.items():
            for pair in itertools.pairwise(word):
                pairs[pair] += number
        if not pairs:
            break
        best = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append(best)
        joined: collections.Counter[Word] = collections.Counter()
        for word, number in words.items():
            joined[merged(word, best)] += number
        words = dict(joined)
    return merges


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("out", type=Path)
    out = parser.parse_args().out
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = alphabet + [letter + "</w>" for letter in alphabet]
    merges = trained(counted_words(), SIZE - len(tokens) - 2)
    tokens += [token for token in dict.fromkeys(a + b for a, b in merges) if token not in tokens]
    tokens += [BEGIN, END]
    special = {"bos_token": BEGIN, "eos_token": END, "pad_token": END, "unk_token": END}
    about = {
        "tokenizer_class": "CLIPTokenizer", "model_max_length": 77, "do_lower_case": True,
        "add_prefix_space": False, "errors": "replace", **special,
    }  # fmt: skip
    out.mkdir(parents=True, exist_ok=True)
    numbers = {token: number for number, token in enumerate(tokens)}
    (out / "vocab.json").write_text(json.dumps(numbers, ensure_ascii=False) + "\n")
    lines = [f"{a} {b}\n" for a, b in merges]
    (out / "merges.txt").write_text("#version: 0.2\n" + "".join(lines))
    (out / "tokenizer_config.json").write_text(json.dumps(about, indent=2) + "\n")
    (out / "special_tokens_map.json").write_text(json.dumps(special, indent=2) + "\n")
    print(f"{len(tokens)} tokens, {len(merges)} merges")


if __name__ == "__main__":
    main()
