"""Docstrings of the generated methods."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contract.model import Field, Operation, Variant

WIDTH = 100
RESULTS = {
    "ChatCompletion": "The complete answer; with `stream`, an iterator over its chunks.",
    "TextResponse": "The text.",
    "OcrText": "The text, with line breaks.",
    "Prediction": "The finished job with its output.",
    "Song": "The song.",
    "SongList": "Songs that match, best match first.",
    "MediaFile": "The URL of the output file.",
}
ERRORS = {
    "InvalidRequestError": "The request is invalid; `problems` lists all problems.",
    "PredictionFailedError": "The model failed.",
    "NoMatchError": "No song matches.",
    "StreamInterruptedError": "The stream ended before the answer was complete.",
}
#: Errors of every operation.
COMMON_ERRORS = {
    "APIStatusError": "The server returned an error; the subclass depends on the status.",
    "TransportError": "The connection failed or was lost.",
    "RequestTimeoutError": "The request timed out; `limit` names the timeout.",
}
COMMON = {
    "timeout": "Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.",
    "on_upload": "Called with the number of bytes sent and the body's length (None if unknown), "
    "at most every 50 ms and at the end. An exception from it aborts the request.",
    "on_progress": "Called with the job after each change that the server reports. An exception "
    "from it is raised here; the job continues.",
    "wait": "Wait until the job ends. If False, return the running job; "
    "`client.predictions.wait` waits for it. Default: True.",
}


def of_method(operation: Operation, arguments: Iterable[str]) -> str:
    """Return the docstring, indented for a method's body.

    `arguments` are the parameters that are not sent to the server.
    """
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
        "extra_body: Additional fields, sent without validation. Default: none.",
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
    """Return a docstring that refers to the synchronous method."""
    return (
        f'        """{operation.summary}\n\n'
        f"        See `Client.{operation.name}` for the arguments, the result and the errors.\n"
        '        """\n'
    )


def _model(operation: Operation) -> str:
    if len(operation.variants) == 1:
        return f"Model to use. Default: ``{operation.variants[0].model}``."
    chosen = [
        f"variant {variant.id} with {' or '.join(f'`{name}`' for name in variant.chosen_by)}"
        for variant in operation.variants
        if variant.chosen_by
    ]
    otherwise = f"variant {operation.variants[0].id}"
    return f"Model of the variant. Default: {', '.join(chosen)}, else {otherwise}."


def _argument(operation: Operation, one: Field) -> list[str]:
    return _wrapped(f"{one.python_name}: {description(operation, one)}", 12, 16)


def description(operation: Operation, one: Field) -> str:
    """Describe a field, its variants and its bounds."""
    text = one.doc
    holders = [v for v in operation.variants if any(f.name == one.name for f in v.fields)]
    if len(holders) < len(operation.variants):
        several = "s" if len(holders) > 1 else ""
        text += f" Variant{several} {' and '.join(variant.id for variant in holders)} only."
    text += _all_facts(holders, one)
    if one.deprecated:
        text += f" Deprecated: use `{one.deprecated}`."
    return text


def _all_facts(holders: list[Variant], one: Field) -> str:
    """Describe the bounds and the default, for each variant if they differ."""
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
