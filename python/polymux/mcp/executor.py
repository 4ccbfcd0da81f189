"""Where calls are done: what all such places have in common."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from polymux.mcp.answers import MadeFile, Outcome
    from polymux.mcp.arguments import Arguments
    from polymux.mcp.files import Input
    from polymux.service.model import Caller


@dataclass(frozen=True, slots=True)
class Call:
    """A call that may be made.

    Attributes:
        arguments: What was given.
        files: Name to file.
        caller: Who asks.
        request_id: Names the call in logs.
        longest_json_bytes: Of all that is no file.
        tell: Told how much is done, from 0 to 1, and what is being done.
    """

    arguments: Arguments
    files: Mapping[str, Input]
    caller: Caller
    request_id: str
    longest_json_bytes: int
    tell: Callable[[float, str | None], Awaitable[None]]


class Desk(Protocol):
    """Does calls, and has the files that they have made."""

    async def call(self, call: Call) -> Outcome:
        """Does one. To cancel it ends the work.

        Raises:
            PolymuxError: It does not keep the contract, is refused, or failed.
        """
        ...

    async def made(
        self, caller: Caller, cursor: str | None
    ) -> tuple[Sequence[MadeFile], str | None]:
        """Some of the caller's files, and where the next page begins; None where there is none.

        Raises:
            BadRequestError: The cursor is none.
        """
        ...

    async def find(self, caller: Caller, uri: str) -> MadeFile | None:
        """The caller's file of that address; None where there is none."""
        ...
