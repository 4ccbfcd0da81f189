"""What all upstreams have in common: a server, the operations that it is asked for, judged URLs."""

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
#: Fields of which a model takes several in one text, with commas between them (the schema of
#: philz1337x/clarity-upscaler). An address with a comma of its own has it as ``%2C``.
_LISTS = ("lora_links",)


class UpstreamBackend(Backend):
    """Does work at a server of somebody else.

    Args:
        policy: What may be fetched beyond the public Internet. Default: nothing.
    """

    is_upstream = True
    #: Of `polymux.runtime.upstream_settings.KINDS`.
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
        message = f"the upstream {self.name} has no model for {wanted}"
        return status_error(errors.NoBackendError, message, param="model")

    async def _judge(self, found: Iterable[tuple[str, str]], *, may_be_unknown: bool) -> None:
        """Refuses addresses that nobody may fetch from, whatever the upstream would do with them.

        Args:
            found: The request's field, and the address.
            may_be_unknown: Whether a name that is unknown here is left to the upstream.

        Raises:
            URLRefusedError: One leads where it may not.
            InternalServerError: The resolver is silent.
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
    """What would be fetched of a field's text.

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
    """What was measured there, but for the time of all, which is another here."""
    return {
        str(name): number
        for name, one in (metrics.items() if isinstance(metrics, dict) else ())
        if name != "total_time" and (number := finite(one)) is not None
    }
