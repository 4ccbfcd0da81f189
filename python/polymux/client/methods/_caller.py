"""Base classes of the generated methods."""

from __future__ import annotations

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, TypedDict, Unpack, overload

    from polymux.client.options import Timeout
    from polymux.client.responses import Prediction

    class CallArguments(TypedDict, total=False):
        """Arguments of an operation other than its fields; see `Caller.request`."""

        model: str | None
        extra_body: Mapping[str, Any] | None
        timeout: float | Timeout | None
        on_upload: Callable[[int, int | None], object] | None
        on_progress: Callable[[Prediction], object] | None
        wait: bool

else:

    def overload(function: object) -> object:
        """Replace `typing.overload`, which takes longer to import than a client."""
        return function


__all__ = ["AsyncCaller", "Caller", "overload"]


def _named(operation: str) -> str:
    if not isinstance(operation, str):
        raise TypeError(f"operation: invalid type (got {type(operation).__name__}, allowed str)")
    return operation


class Caller:
    """Base of the synchronous methods."""

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
        """Call any operation by its name.

        Args:
            operation: A method's name, a command, a path or its last segment.
            fields: Values by field name.
            model: Model of an operation with several models.
            extra_body: Additional fields, sent without validation.
            timeout: See the operation's method.
            on_upload: See the operation's method.
            on_progress: See the operation's method.
            wait: If False, return the job of an operation that has one at once.
            more_fields: Fields as keyword arguments. Use `fields` for names that are parameters
                of this method.

        Returns:
            The result of the operation's method.

        Raises:
            InvalidRequestError: The operation is unknown, or its fields are invalid.
            TypeError: `operation` is not a str.

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
        """Call an operation.

        Args:
            operation: The operation's name in the contract.
            values: Values by field name; None if not given.
            arguments: The arguments of `request` other than fields.

        Returns:
            The result type of the contract.
        """
        raise NotImplementedError


class AsyncCaller:
    """Base of the coroutine methods."""

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
        """Call any operation by its name. See `Caller.request` for the arguments."""
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
        """Call an operation. See `Caller._call` for the arguments."""
        raise NotImplementedError
