"""Prompts as Stable Diffusion's network takes them: of any length, with weights.

CLIP reads 77 tokens at once. Longer prompts are read in chunks, and what comes of them follows one
another: attention minds no length, though it takes its time. Weights multiply what comes of a
token; what all of it is on average stays the same, so that the network still knows its kind.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from polymux.engines.diffusion.prompts import Prompt

    #: Numbers of tokens and their weights.
    Chunk = tuple[list[int], list[float]]

#: Of a prompt; what lies beyond them is not read.
MOST_CHUNKS = 20
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
        prompts: At least one.
        tokenizer: CLIP's.
        encoder: CLIP's.
        device: Where it is told.
        tell: Told of prompts that are longer than what is read. Default: nobody is.

    Returns:
        A tensor of prompts, tokens (77 for each chunk; as many for all), width.
    """
    import torch

    chunked = [_chunks(one, tokenizer) for one in prompts]
    if tell is not None and any(len(one) > MOST_CHUNKS for one in chunked):
        room = tokenizer.model_max_length - 2
        tell(f"a prompt is longer than {MOST_CHUNKS} chunks of {room} tokens: the rest is not read")
    chunked = [one[:MOST_CHUNKS] for one in chunked]
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
    for part in prompt.parts[: MOST_CHUNKS + 1]:
        numbers: list[int] = []
        weights: list[float] = []
        for words in part:
            if len(numbers) > MOST_CHUNKS * room:
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
