"""Addresses in requests that upstreams would fetch from: each of them is for the guard to judge."""

from __future__ import annotations

#: Fields of which a model takes several in one text, with commas between them (the schema of
#: philz1337x/clarity-upscaler). An address with a comma of its own has it as ``%2C``.
_LISTS = ("lora_links",)


def addresses_of(field: str, text: str) -> list[str]:
    """What would be fetched of a field's text.

    Args:
        field: Name of a field of the contract's kind ``url``.
        text: What was given.

    Example:
        >>> from polymux.upstreams.addresses import addresses_of
        >>> addresses_of("lora_links", "https://a.example/1,http://b.example/2")
        ['https://a.example/1', 'http://b.example/2']
        >>> addresses_of("image", "https://a.example/1,2")
        ['https://a.example/1,2']
    """
    return [one.strip() for one in text.split(",")] if field in _LISTS else [text]
