"""The base of both clients: settings and connections."""

from __future__ import annotations

from polymux._util.deprecation import renamed_arguments
from polymux.client.connection import Connection
from polymux.client.settings import Settings

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    import os
    from collections.abc import Mapping
    from typing import Any, NoReturn, Self

    from polymux.client.call import Plan
    from polymux.client.options import Retry, Timeout


class ClientBase:
    """Settings and connections of a client. Subclasses implement the waiting."""

    @renamed_arguments(longest_event_bytes="max_event_bytes")
    def __init__(
        self,
        base_url: str | None = None,
        api_key: str | None = None,
        *,
        timeout: float | Timeout | None = None,
        retry: int | Retry | None = None,
        chat_model: str | None = None,
        headers: Mapping[str, str] | None = None,
        paths: Mapping[str, str] | None = None,
        proxy: str | None = None,
        trust_env: bool = False,
        verify: bool | str | os.PathLike[str] = True,
        client_certificate: str | os.PathLike[str] | None = None,
        http2: bool = True,
        max_event_bytes: int | None = None,
    ) -> None:
        self._settings = Settings(
            chat_model=chat_model, headers=headers, paths=paths, retry=retry, timeout=timeout,
            max_event_bytes=max_event_bytes,
        )  # fmt: skip
        transport = {
            "proxy": proxy,
            "trust_env": trust_env,
            "verify": verify,
            "client_certificate": client_certificate,
            "http2": http2,
        }
        self._connection = Connection(base_url, api_key, transport)
        self._plans: dict[Any, Plan] = {}

    @renamed_arguments(longest_event_bytes="max_event_bytes")
    def with_options(
        self,
        *,
        timeout: float | Timeout | None = None,
        retry: int | Retry | None = None,
        chat_model: str | None = None,
        headers: Mapping[str, str] | None = None,
        paths: Mapping[str, str] | None = None,
        max_event_bytes: int | None = None,
    ) -> Self:
        """Return a client with other options that shares the connections of this one.

        Closing either client closes both. Omitted options keep their values. `headers` are added
        to the existing ones.

        Example:
            >>> import polymux
            >>> client = polymux.Client("http://127.0.0.1:8000")
            >>> patient = client.with_options(timeout=3600, retry=5)
        """
        made = object.__new__(type(self))
        made._connection = self._connection
        made._settings = self._settings.changed(
            timeout=timeout, retry=retry, chat_model=chat_model, headers=headers, paths=paths,
            max_event_bytes=max_event_bytes,
        )  # fmt: skip
        made._plans = {}
        return made

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._connection.base_url!r})"

    def __copy__(self) -> Self:
        return self.with_options()

    def __deepcopy__(self, memo: object) -> Self:
        return self.with_options()

    def __reduce__(self) -> NoReturn:
        raise TypeError("client: cannot be pickled, because it holds an API key. Create a new one")
