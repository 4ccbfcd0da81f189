"""The `--limit` option that commands on media share."""

from __future__ import annotations

import argparse
from dataclasses import fields
from typing import Any

from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.media.options import Limits


def add_argument(command: argparse.ArgumentParser) -> None:
    """Adds `--limit NAME=NUMBER`, which may be repeated."""
    command.add_argument(
        "--limit",
        action="append",
        default=[],
        metavar="NAME=NUMBER",
        type=_pair,
        help="what an input may cost: probe_bytes, streams, duration_s, sample_rate_hz, channels, "
        "tag_bytes or chapters, as in polymux.Limits; may be repeated",
    )


def _pair(text: str) -> tuple[str, str]:
    name, found, number = text.partition("=")
    if not found or not name:
        raise argparse.ArgumentTypeError(f"{shown(text)} is not of the form NAME=NUMBER")
    return name, number


def from_arguments(options: argparse.Namespace) -> Limits | None:
    """The limits that were asked for; None for the defaults.

    Raises:
        InvalidRequestError: There is no such limit, or the value is not a number.
    """
    if not options.limit:
        return None
    known = {item.name for item in fields(Limits)}
    values: dict[str, Any] = {}
    for name, text in options.limit:
        if name not in known:
            raise InvalidRequestError(
                f"there is no limit {shown(name)}; there are {', '.join(sorted(known))}"
            )
        try:
            values[name] = float(text) if name == "duration_s" else int(text)
        except ValueError:
            raise InvalidRequestError(f"--limit {name} is a number, not {shown(text)}") from None
    return Limits(**values)
