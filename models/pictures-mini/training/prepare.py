"""Writes what `train.py` reads: plans of images, token IDs of their captions, and the tokenizer.

    prepare.py SPRITES WORDS OUT [--pictures 300000] [--seed 1] [--tokenizer MODEL/tokenizer]

SPRITES is the folder that `sprites.py` made; WORDS is a list of English words, one per line
(Debian's `wamerican`). Training that starts from a model needs that model's tokenizer; without
`--tokenizer`, a new one is trained.
"""

from __future__ import annotations

import argparse
import json
import random
from pathlib import Path

import numpy as np
from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, trainers
from transformers import CLIPTokenizer

from compose import Composer, packed, read_bank

LENGTH = 32
VOCABULARY = 5000
PIECES = r"'s|'t|'re|'ve|'m|'ll|'d|[\p{L}]+|[\p{N}]|[^\s\p{L}\p{N}]+"


def train_tokenizer(texts: list[str], out: Path) -> CLIPTokenizer:
    """Train byte-pair encoding in CLIP's format.

    A word's last token ends with </w>. The vocabulary has each byte with and without it.
    """
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = Tokenizer(models.BPE(end_of_word_suffix="</w>", unk_token="<|endoftext|>"))
    tokenizer.normalizer = normalizers.Lowercase()
    split = pre_tokenizers.Split(Regex(PIECES), "removed", invert=True)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [split, pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)]
    )
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY,
        special_tokens=["<|startoftext|>", "<|endoftext|>"],
        end_of_word_suffix="</w>",
        initial_alphabet=alphabet,
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    tokenizer.model.save(str(out))
    vocabulary = json.loads((out / "vocab.json").read_text())
    for byte in sorted(alphabet):
        for piece in (byte, byte + "</w>"):
            vocabulary.setdefault(piece, len(vocabulary))
    (out / "vocab.json").write_text(json.dumps(vocabulary))
    files = (str(out / "vocab.json"), str(out / "merges.txt"))
    made = CLIPTokenizer(*files, model_max_length=LENGTH, pad_token="<|endoftext|>")
    made.save_pretrained(out)
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("sprites", type=Path)
    parser.add_argument("words", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--pictures", type=int, default=300_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--tokenizer", type=Path, metavar="FOLDER", help="use this tokenizer")
    options = parser.parse_args()
    bank, sprites = read_bank(options.sprites, options.words)
    composer, rng = Composer(sprites), random.Random(options.seed)
    plans = [composer.plan(rng) for _ in range(options.pictures)]
    captions = [plan.caption for plan in plans]
    options.out.mkdir(parents=True, exist_ok=True)
    if options.tokenizer:
        tokenizer = CLIPTokenizer.from_pretrained(options.tokenizer)
    else:
        names = [word for sprite in sprites for word in (sprite.name, *sprite.keys)]
        tokenizer = train_tokenizer(captions[:100_000] + 4 * names, options.out / "tokenizer")

    def encoded(texts: str | list[str]) -> np.ndarray:
        tokens = tokenizer(texts, padding="max_length", max_length=LENGTH, truncation=True)
        return np.array(tokens.input_ids, np.int16)

    ids = [encoded(captions[i : i + 4096]) for i in range(0, len(captions), 4096)]
    empty = encoded("")
    ends = tokenizer.eos_token_id
    longest = max(int((row != ends).sum()) for rows in ids for row in rows) + 1
    np.savez_compressed(
        options.out / "plans.npz", ids=np.concatenate(ids), empty=empty, **packed(plans)
    )
    (options.out / "sprites.json").write_text(
        json.dumps([[s.name, list(s.keys), s.source] for s in sprites])
    )
    (options.out / "captions.json").write_text(json.dumps(captions[:2000]))
    print(
        f"{len(bank)} sprites, {len(plans)} plans, {len(tokenizer.get_vocab())} tokens,",
        f"longest caption {longest} of {LENGTH}",
    )


if __name__ == "__main__":
    main()
