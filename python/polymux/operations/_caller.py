"""What the generated methods stand on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, overload

    from polymux.call_options import Timeout
    from polymux.responses import Prediction
else:

    def overload(function: object) -> object:
        """As `typing.overload`, which costs more to load than a client."""
        return function


__all__ = ["AsyncCaller", "Caller", "overload"]


class Caller:
    """Does what a method asks for."""

    def _call(
        self,
        operation: str,
        values: dict[str, Any],
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Any:
        """Runs an operation.

        Args:
            operation: Its name in the contract.
            values: Wire name to value; None where the caller gave none.
            model: The model selector, where the operation has one.
            extra_body: Fields that the contract does not have.
            timeout: Seconds that everything may take, or all deadlines.
            on_upload: Told how much of the body was sent, and its length.
            on_progress: Told of a job that goes on.
            wait: False: a job comes back as it is.

        Returns:
            What the operation's contract says.
        """
        raise NotImplementedError


class AsyncCaller:
    """Does what a coroutine method asks for."""

    async def _call(
        self,
        operation: str,
        values: dict[str, Any],
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Any:
        """Runs an operation; the arguments are those of `Caller._call`."""
        raise NotImplementedError
