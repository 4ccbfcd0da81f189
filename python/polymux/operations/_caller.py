"""What the generated methods stand on."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping


class Caller(ABC):
    """Does what a method asks for."""

    @abstractmethod
    def _call(
        self,
        operation: str,
        values: dict[str, Any],
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
    ) -> Any:
        """Runs an operation.

        Args:
            operation: Its name in the contract.
            values: Wire name to value; None where the caller gave none.
            model: The model selector, where the operation has one.
            extra_body: Fields that the contract does not have.

        Returns:
            What the operation's contract says.
        """


class AsyncCaller(ABC):
    """Does what a coroutine method asks for."""

    @abstractmethod
    async def _call(
        self,
        operation: str,
        values: dict[str, Any],
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
    ) -> Any:
        """Runs an operation; the arguments are those of `Caller._call`."""
