"""Docstrings of the generated methods."""

from __future__ import annotations

import re
import textwrap
from itertools import takewhile
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from contract.model import Field, Operation

WIDTH = 100
#: Begins the last sentence of a field's description if its default is not a fixed value.
DEFAULT = " Default: "
RESULTS = {
    "ChatCompletion": "The complete answer; with `stream`, an iterator over its chunks.",
    "TextResponse": "The generated text.",
    "OcrText": "The recognized text, with line breaks.",
    "Prediction": "The finished job with its output.",
    "Song": "The identified song.",
    "SongList": "Matching songs, best match first.",
    "MediaFile": "The URL of the output file.",
}
ERRORS = {
    "InvalidRequestError": "The request is invalid; `problems` lists all problems.",
    "PredictionFailedError": "The job failed, was canceled or timed out.",
    "NoMatchError": "No song matches the recording.",
    "StreamInterruptedError": "The stream ended before the answer was complete.",
}
#: Errors of every operation.
COMMON_ERRORS = {
    "APIStatusError": "The server returned an error; the subclass depends on the status.",
    "TransportError": "The connection failed or was lost.",
    "RequestTimeoutError": "A timeout elapsed; `limit` names it.",
}
COMMON = {
    "timeout": "Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.",
    "on_upload": "Called with the number of bytes sent and the body's length (None if unknown), "
    "at most every 50 ms and at the end. If it raises an exception, the request is aborted.",
    "on_progress": "Called with the job after each change that the server reports. If it raises an "
    "exception, this method raises it, and the job continues.",
    "wait": "Wait for the end of the job. If False, return the running job, for which "
    "`client.predictions.wait` can wait later. Default: True.",
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
            lines += _wrapped(f"model: {model(operation)}", 12, 16)
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


def model(operation: Operation) -> str:
    """Describe the parameter `model`."""
    if len(operation.variants) == 1:
        default = operation.variants[0].model
        return f"Model to use; the name of an installed model is allowed. Default: ``{default}``."
    chosen = [
        f"variant {variant.id} with {' or '.join(f'`{name}`' for name in variant.chosen_by)}"
        for variant in operation.variants
        if variant.chosen_by
    ]
    otherwise = f"variant {operation.variants[0].id}"
    return (
        "Model to use; it selects the variant. The name of an installed model is allowed. Default: "
        f"{', '.join(chosen)}, else {otherwise}."
    )


def _argument(operation: Operation, one: Field) -> list[str]:
    return _wrapped(f"{one.python_name}: {description(operation, one)}", 12, 16)


def description(operation: Operation, one: Field) -> str:
    """Describe a field: its purpose, the variants that have it, its bounds and its default."""
    holders = [
        (variant.id, field)
        for variant in operation.variants
        for field in variant.fields
        if field.name == one.name
    ]
    purpose = common_purpose([field.doc for _, field in holders])
    parts = [purpose]
    if len(holders) < len(operation.variants):
        several = "s" if len(holders) > 1 else ""
        parts.append(f"Variant{several} {' and '.join(id_ for id_, _ in holders)} only.")
    of_variants: dict[tuple[str, ...], list[str]] = {}
    for id_, field in holders:
        of_variants.setdefault(tuple(_facts(field, purpose)), []).append(id_)
    for facts, ids in of_variants.items():
        text = " ".join(facts)
        if text and len(of_variants) > 1:
            text = re.sub("^default:", "default", text[:1].lower() + text[1:])
            text = f"Variant{'s' if len(ids) > 1 else ''} {' and '.join(ids)}: {text}"
        parts.append(text)
    if one.deprecated:
        parts.append(f"Deprecated: use `{one.deprecated}`.")
    return " ".join(filter(None, parts))


def common_purpose(docs: list[str]) -> str:
    """Return the first sentences of a field's descriptions that are the same in all variants."""
    split = [re.split(r"(?<=\.) ", doc.partition(DEFAULT)[0]) for doc in docs]
    same = takewhile(lambda ones: len(set(ones)) == 1, zip(*split, strict=False))
    return " ".join(ones[0] for ones in same)


def _facts(one: Field, purpose: str) -> Iterator[str]:
    """Yield sentences: the bounds, the default, and what applies only to this variant."""
    doc, _, default = one.doc.partition(DEFAULT)
    has_default = one.has_default and one.default != ""
    limits = ", ".join(bounds(one))
    if limits and has_default:
        yield f"{_raised(limits)} (default: ``{one.default!r}``)."
    elif limits:
        yield f"{_raised(limits)}."
    elif has_default:
        yield f"Default: ``{one.default!r}``."
    if note := doc.removeprefix(purpose).strip():
        yield note
    if default:
        yield f"Default: {default}"


def bounds(one: Field) -> list[str]:
    """Describe the allowed numbers, and the allowed number of items."""
    found = []
    low = one.above if one.above is not None else one.minimum
    high = one.below if one.below is not None else one.maximum
    unit = f" {one.unit}" if one.unit else ""
    if low is not None and high is not None and one.above is None and one.below is None:
        found.append(f"{low} to {high}{unit}")
    elif low is not None or high is not None:
        above = f"{'above' if one.above is not None else 'at least'} {low}"
        below = f"{'below' if one.below is not None else 'at most'} {high}"
        ends = [text for text, end in ((above, low), (below, high)) if end is not None]
        found.append(f"{' and '.join(ends)}{unit}")
    if one.multiple_of:
        found.append(f"a multiple of {one.multiple_of}")
    if one.max_items:
        found.append(f"at most {one.max_items} items")
    return found


def _raised(text: str) -> str:
    return text[:1].upper() + text[1:]


def _wrapped(text: str, first: int, rest: int) -> list[str]:
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=" " * first,
        subsequent_indent=" " * rest,
        break_long_words=False,
        break_on_hyphens=False,
    )
