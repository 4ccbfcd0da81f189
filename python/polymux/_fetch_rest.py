"""What goes on with a body that broke off: `polymux.fetch` has both names, and `fetch_rest`."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class FetchStart(NamedTuple):
    """An answer whose body comes next, and what it takes to ask for its rest should it break off.

    Attributes:
        status: HTTP's status code.
        offset: Where the body begins, in bytes: behind what was there, or at 0.
        whole_bytes: The length of all, with what was there; None where the answer does not say.
        etag: Its strong entity tag; empty where it has none.
        is_encoded: Whether the server has encoded it: then what is written is not what a server
            counts bytes of, and no rest of it can be asked for.
    """

    status: int
    offset: int
    whole_bytes: int | None
    etag: str
    is_encoded: bool


class Unfinished(Protocol):
    """A file that keeps what has come of a body, for `fetch_rest` to go on with."""

    @property
    def descriptor(self) -> int:
        """Open for writing. The body is written where it stands, and it stays open."""

    @property
    def have_bytes(self) -> int:
        """What has come, from the beginning; 0 for nothing."""

    @property
    def whole_bytes(self) -> int | None:
        """The length of all; None where nobody knows it."""

    @property
    def etag(self) -> str:
        """The entity tag of what has come; empty where it has none, or is not to be sent."""

    def begins(self, start: FetchStart) -> None:
        """Called before the first byte of the body: with an offset of 0 what was there is to go.

        What it raises ends the fetch and comes out unchanged.
        """
