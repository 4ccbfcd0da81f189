"""What a server and the replicas of its engines tell each other."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: What goes from machine to machine at once.
PIECE_BYTES = 4 << 20


class Plan(NamedTuple):
    """An engine as a replica makes it.

    Attributes:
        name: As configuration and logs call it.
        family: As `polymux.engines.registry` knows it.
        operations: What it can do.
        options: What its `load` gets.
        max_concurrency: How much of it at once.
        supervision: How its process is looked after, by the names of `Supervision`.
    """

    name: str
    family: str
    operations: tuple[str, ...]
    options: Mapping[str, Any]
    max_concurrency: int
    supervision: Mapping[str, Any]


class Sent(NamedTuple):
    """A file of a request.

    Attributes:
        pieces: Its content; pieces of a large file are references into Ray's store.
        file_name: As `Upload` has it.
        content_type: The same.
        size_bytes: The same.
    """

    pieces: Sequence[Any]
    file_name: str
    content_type: str
    size_bytes: int


class Told(NamedTuple):
    """A method of a `ProgressSink` that was called, and with what."""

    method: str
    arguments: tuple[Any, ...]


class Piece(NamedTuple):
    """A piece of a file that was made."""

    number: int
    data: bytes


class MadeFile(NamedTuple):
    """A file that was made, in the place of it in an output; its pieces came before."""

    number: int
    content_type: str
    file_name: str


class Done(NamedTuple):
    """What came of work, with `MadeFile` in the place of files."""

    output: Any
    version: str
    metrics: dict[str, float]


class Refused(NamedTuple):
    """Why it failed, as `described` tells it."""

    told: Mapping[str, Any]


#: A dict is a piece of a streamed answer.
Event = Told | Piece | dict[str, Any] | Done | Refused
