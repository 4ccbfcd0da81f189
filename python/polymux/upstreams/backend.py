"""Common base of upstream backends, and SSRF checks of URLs that an upstream would fetch."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from polymux import contract, errors
from polymux._native.json_numbers import finite
from polymux.downloads.url_inputs import failure_of
from polymux.fetch.fetcher import FetchLimits, FetchPolicy, ajudged
from polymux.service.backend import Backend, Health
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polymux.contract import Variant
    from polymux.service.model import OperationRequest
    from polymux.upstreams.client import UpstreamServer

_LOOK_UP = FetchLimits(connect_ms=10_000, total_ms=10_000)
#: Fields whose model accepts several URLs in one text, separated by commas (the schema of
#: philz1337x/clarity-upscaler). A comma within a URL must be written as ``%2C``.
_LISTS = ("lora_links",)


class UpstreamBackend(Backend):
    """Runs operations on another server.

    Args:
        policy: Allowed hosts beyond the public Internet. Default: none.
    """

    is_upstream = True
    #: One of `polymux.runtime.upstream_settings.KINDS`.
    kind: ClassVar[str]

    def __init__(
        self,
        server: UpstreamServer,
        operations: Iterable[str],
        max_concurrency: int,
        policy: FetchPolicy | None,
    ) -> None:
        self.name = server.name
        self.operations = frozenset(operations)
        self.max_concurrency = max_concurrency
        self._server = server
        self._policy = policy or FetchPolicy()

    def health(self) -> Health:
        return self._server.health(self.kind)

    async def close(self) -> None:
        self._server.close()

    def _without_model(self, wanted: object) -> errors.NoBackendError:
        message = (
            f"model={wanted}: not configured for the upstream {self.name}. Choose another model, "
            "or add this one to the upstream's `models`"
        )
        return status_error(errors.NoBackendError, message, param="model")

    async def _judge(self, found: Iterable[tuple[str, str]], *, may_be_unknown: bool) -> None:
        """Reject URLs that SSRF protection forbids, even if the upstream would fetch them.

        Args:
            found: Request field and URL.
            may_be_unknown: Accept host names that cannot be resolved here.

        Raises:
            URLRefusedError: A URL is not allowed.
            InternalServerError: DNS does not respond.
        """
        for name, address in found:
            try:
                await ajudged(address, policy=self._policy, limits=_LOOK_UP)
            except errors.PolymuxError as error:
                if may_be_unknown and isinstance(error, errors.ConnectError):
                    continue
                failure = failure_of(error)
                if isinstance(failure, errors.APIStatusError):
                    failure.param = name
                raise failure from None


def addresses_of(field: str, text: str) -> list[str]:
    """Return the URLs in the value of a field.

    Args:
        field: Name of a field of the contract's kind ``url``.

    Example:
        >>> from polymux.upstreams.backend import addresses_of
        >>> addresses_of("lora_links", "https://a.example/1,http://b.example/2")
        ['https://a.example/1', 'http://b.example/2']
        >>> addresses_of("image", "https://a.example/1,2")
        ['https://a.example/1,2']
    """
    return [one.strip() for one in text.split(",")] if field in _LISTS else [text]


def variant_of(work: OperationRequest) -> Variant:
    variants = contract.operation(work.operation).variants
    return next(one for one in variants if one.id == work.variant)


def numbers_of(metrics: object) -> dict[str, float]:
    """Return the numbers in an upstream's metrics; this server measures ``total_time`` itself."""
    return {
        str(name): number
        for name, one in (metrics.items() if isinstance(metrics, dict) else ())
        if name != "total_time" and (number := finite(one)) is not None
    }
