"""What the generated methods stand on."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypedDict, Unpack, overload

    from polymux.client.options import Timeout
    from polymux.client.responses import Prediction

    class CallArguments(TypedDict, total=False):
        """How an operation is called, beside its fields; see `Caller.request` for each."""

        model: str | None
        extra_body: Mapping[str, Any] | None
        timeout: float | Timeout | None
        on_upload: Callable[[int, int | None], object] | None
        on_progress: Callable[[Prediction], object] | None
        wait: bool

else:

    def overload(function: object) -> object:
        """As `typing.overload`, which costs more to load than a client."""
        return function


__all__ = ["AsyncCaller", "Caller", "overload"]


def _named(operation: str) -> str:
    if not isinstance(operation, str):
        raise TypeError(f"operation is a str, not {type(operation).__name__}")
    return operation


class Caller:
    """Does what a method asks for."""

    def request(
        self,
        operation: str,
        fields: Mapping[str, Any] | None = None,
        *,
        model: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
        **more_fields: Any,
    ) -> Any:
        """Any operation by its name, with its fields as the interface calls them.

        Args:
            operation: A method's name, a command, a path or its last segment.
            fields: Name to value.
            model: The model selector, of operations that have one.
            extra_body: Fields that the contract does not have.
            timeout: As for the methods.
            on_upload: As for the methods.
            on_progress: As for the methods.
            wait: False gives the job of an operation that makes one, at once.
            more_fields: Fields by keyword; those whose names stand above go into `fields`.

        Returns:
            What the method of that operation gives.

        Raises:
            InvalidRequestError: There is no such operation, or its fields are wrong.
            TypeError: The operation is no text.

        Example:
            >>> import polymux
            >>> client = polymux.Client("http://127.0.0.1:8000")
            >>> client.request("musicsearch", song="Blue Danube")[0].title  # doctest: +SKIP
            'The Blue Danube'
        """
        return self._call(
            _named(operation),
            {**(fields or {}), **more_fields},
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            on_progress=on_progress,
            wait=wait,
        )

    def _call(
        self, operation: str, values: dict[str, Any], **arguments: Unpack[CallArguments]
    ) -> Any:
        """Runs an operation.

        Args:
            operation: Its name in the contract.
            values: Wire name to value; None where the caller gave none.
            arguments: Those of `request`, beside the fields.

        Returns:
            What the operation's contract says.
        """
        raise NotImplementedError


class AsyncCaller:
    """Does what a coroutine method asks for."""

    async def request(
        self,
        operation: str,
        fields: Mapping[str, Any] | None = None,
        *,
        model: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
        **more_fields: Any,
    ) -> Any:
        """Any operation by its name, with its fields as the interface calls them.

        The arguments are those of `Caller.request`.
        """
        return await self._call(
            _named(operation),
            {**(fields or {}), **more_fields},
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            on_progress=on_progress,
            wait=wait,
        )

    async def _call(
        self, operation: str, values: dict[str, Any], **arguments: Unpack[CallArguments]
    ) -> Any:
        """Runs an operation; the arguments are those of `Caller._call`."""
        raise NotImplementedError
