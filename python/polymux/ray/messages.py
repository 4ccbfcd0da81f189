"""Messages between a server and the replicas of its engines."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

#: Maximum bytes of one chunk that is sent between machines.
PIECE_BYTES = 4 << 20


class Plan(NamedTuple):
    """The description from which a replica creates its engine.

    Attributes:
        name: Name of the engine in settings and logs.
        family: Name of the engine family in `polymux.engines.registry`.
        operations: Operations that the engine supports.
        options: Options for its `load`.
        max_concurrency: Maximum concurrent operations.
        supervision: Options for its process: the fields of `Supervision`.
    """

    name: str
    family: str
    operations: tuple[str, ...]
    options: Mapping[str, Any]
    max_concurrency: int
    supervision: Mapping[str, Any]


class Sent(NamedTuple):
    """An input file of a request.

    Attributes:
        pieces: The content. Chunks of a large file are references to Ray's object store.
        file_name: The same as in `Upload`.
        content_type: The same as in `Upload`.
        size_bytes: The same as in `Upload`.
    """

    pieces: Sequence[Any]
    file_name: str
    content_type: str
    size_bytes: int


class SinkCall(NamedTuple):
    """A call of a `ProgressSink` method with its arguments."""

    method: str
    arguments: tuple[Any, ...]


class Piece(NamedTuple):
    """A chunk of an output file."""

    number: int
    data: bytes


class MadeFile(NamedTuple):
    """A placeholder for a file in an output. The chunks of the file were sent before."""

    number: int
    content_type: str
    file_name: str


class Done(NamedTuple):
    """The result of a request; `MadeFile` replaces its files."""

    output: Any
    version: str
    metrics: dict[str, float]
    engine_model: str


class Refused(NamedTuple):
    """The error of a request, as returned by `described`."""

    error: Mapping[str, Any]


#: A dict is a chunk of a streamed response.
Event = SinkCall | Piece | dict[str, Any] | Done | Refused
