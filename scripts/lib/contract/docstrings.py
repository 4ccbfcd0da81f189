"""Docstrings of the generated methods."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contract.model import Field, Operation, Variant

WIDTH = 100
RESULTS = {
    "ChatCompletion": "The whole answer; with `stream` an iterator over its chunks.",
    "TextResponse": "The text.",
    "OcrText": "The text, line by line.",
    "Prediction": "The finished job with what came of it.",
    "Song": "The song.",
    "SongList": "Songs that were found, best first.",
    "MediaFile": "Where the finished file lies.",
}
ERRORS = {
    "InvalidRequestError": "The request does not keep the contract; `problems` holds everything "
    "that is wrong with it.",
    "PredictionFailedError": "The model failed.",
    "NoMatchError": "No song was recognised.",
    "StreamInterruptedError": "A stream ended before the answer did.",
}
#: Of every operation: what the way to a server adds.
COMMON_ERRORS = {
    "APIStatusError": "The server refused or failed; its subclasses go by the status.",
    "TransportError": "There is no connection, or it broke off.",
    "RequestTimeoutError": "A deadline passed; `limit` says which.",
}
COMMON = {
    "timeout": "Seconds that everything may take, or a `polymux.Timeout`. Default: the client's.",
    "on_upload": "Called with the bytes of the body sent so far and its length, None when not "
    "known; at most every 50 ms, and at the end. What it raises ends the request.",
    "on_progress": "Called with the job whenever the server tells something new of it. What it "
    "raises is raised here; the job goes on.",
    "wait": "Wait for the end of the job; else it comes back as it is, and "
    "`client.predictions.wait` waits for it. Default True.",
}


def of_method(operation: Operation, arguments: Iterable[str]) -> str:
    """The docstring, indented for a method's body; `arguments` are those that are not sent."""
    lines = [f'        """{operation.summary}', ""]
    for variant in operation.variants:
        if len(operation.variants) > 1:
            lines += _wrapped(f"Variant {variant.id}, {variant.model}: {variant.summary}", 8, 12)
    if len(operation.variants) > 1:
        lines.append("")
    lines.append("        Args:")
    fields = sorted(operation.all_fields(), key=lambda one: one.name != operation.first)
    for one in fields:
        lines += _argument(operation, one)
        if one.name == operation.first and operation.selects_model:
            lines += _wrapped(f"model: {_model(operation)}", 12, 16)
    lines += _wrapped(
        "extra_body: Fields that the contract does not have, sent as they are. Default: none.",
        12, 16,
    )  # fmt: skip
    for name in arguments:
        lines += _wrapped(f"{name}: {COMMON[name]}", 12, 16)
    lines += [
        "",
        "        Returns:",
        *_wrapped(RESULTS[operation.result], 12, 12),
        "",
        "        Raises:",
    ]
    for name in operation.errors:
        lines += _wrapped(f"{name}: {ERRORS[name]}", 12, 16)
    for name, meaning in COMMON_ERRORS.items():
        lines += _wrapped(f"{name}: {meaning}", 12, 16)
    return "\n".join([*lines, '        """', ""])


def of_asynchronous_method(operation: Operation) -> str:
    """The docstring of a method whose synchronous twin has the whole text."""
    return (
        f'        """{operation.summary}\n\n'
        f"        See `Client.{operation.name}` for the arguments, the result and the errors.\n"
        '        """\n'
    )


def _model(operation: Operation) -> str:
    if len(operation.variants) == 1:
        return f"Which model works. Default: ``{operation.variants[0].model}``."
    chosen = [
        f"with {' or '.join(f'`{name}`' for name in variant.chosen_by)} variant {variant.id}"
        for variant in operation.variants
        if variant.chosen_by
    ]
    return f"Which variant. Default: {', '.join(chosen)}, else variant {operation.variants[0].id}."


def _argument(operation: Operation, one: Field) -> list[str]:
    return _wrapped(f"{one.python_name}: {description(operation, one)}", 12, 16)


def description(operation: Operation, one: Field) -> str:
    """What a field is, and for which variants which bounds hold."""
    text = one.doc
    holders = [v for v in operation.variants if any(f.name == one.name for f in v.fields)]
    if len(holders) < len(operation.variants):
        text += f" Variant {' and '.join(variant.id for variant in holders)} only."
    text += _all_facts(holders, one)
    if one.deprecated:
        text += f" Deprecated: use `{one.deprecated}`."
    return text


def _all_facts(holders: list[Variant], one: Field) -> str:
    """What holds for all variants once, else what holds for which."""
    of_variant: dict[tuple[str, ...], list[str]] = {}
    for variant in holders:
        same = next(field for field in variant.fields if field.name == one.name)
        of_variant.setdefault(tuple(_facts(same)), []).append(variant.id)
    text = ""
    for facts, names in of_variant.items():
        if facts:
            whose = f"{' and '.join(names)}: " if len(of_variant) > 1 else ""
            first = facts[0] if whose else facts[0][:1].upper() + facts[0][1:]
            text += f" {whose}{'; '.join((first, *facts[1:]))}."
    return text


def _facts(one: Field) -> Iterator[str]:
    low = one.above if one.above is not None else one.minimum
    high = one.below if one.below is not None else one.maximum
    unit = f" {one.unit}" if one.unit else ""
    if low is not None and high is not None:
        below = "below " if one.below is not None else ""
        above = "above " if one.above is not None else ""
        yield f"{above}{low} to {below}{high}{unit}"
    elif low is not None:
        yield f"at least {low}{unit}"
    elif unit:
        yield f"in{unit}"
    if one.multiple_of:
        yield f"a multiple of {one.multiple_of}"
    if one.max_items:
        yield f"at most {one.max_items}"
    if one.has_default and one.default != "":
        yield f"default ``{one.default!r}``"


def _wrapped(text: str, first: int, rest: int) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
