"""Upstreams with a Replicate-compatible API: predictions of hosted models."""

from __future__ import annotations

import asyncio
import math
import re
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.client.options import SLOW
from polymux.engines.media.backend import refuse_addresses
from polymux.service.model import OperationResult, Upload
from polymux.upstreams.backend import UpstreamBackend, numbers_of, variant_of
from polymux.upstreams.error_mapping import late
from polymux.upstreams.files import refuse_files
from polymux.upstreams.replicate.models import (
    addresses_in,
    input_of,
    operations_of,
    targets_of,
)
from polymux.upstreams.replicate.outputs import Outputs
from polymux.upstreams.replicate.predictions import predicted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.upstreams.replicate.client import ReplicateServer
    from polymux.upstreams.replicate.models import Target

#: How long `close` waits for the cleanup requests of canceled work.
_LAST_WORDS_S = 2.0
_MIN_CANCEL_AFTER_S = 5
_MAX_CANCEL_AFTER_S = 86_400
_VERSION = re.compile(r"[0-9a-f]{64}", re.ASCII)
_METRIC = re.compile(r"[a-z][a-z_]{0,40}", re.ASCII)


class ReplicateUpstream(UpstreamBackend):
    """Runs operations on a Replicate-compatible server.

    Streams input files to it and deletes them there after the work, downloads results into this
    server's store, and forwards progress and logs. Cancellation here cancels the prediction there.

    Args:
        server: The server.
        operations: Operations to run there: ``"generate_image"``, ``"upscale_image"``,
            ``"transcribe"``, ``"generate_video"`` and ``"generate_music"``. Default: those with a
            model.
        models: Model selector to ``"owner/name"`` of an official model, or to
            ``"owner/name:version"``. Default: the models on which the polymux API is based, each
            in the same version.
        max_concurrency: Maximum number of concurrent requests. Default: 16.
        policy: Allowed hosts for downloads, beyond the public Internet and the server's own host.
            Default: none.

    Raises:
        InvalidRequestError: An operation is not supported or has no model, or a model name is
            invalid.

    Example:
        >>> from polymux.upstreams.replicate.backend import ReplicateUpstream
        >>> from polymux.upstreams.replicate.client import ReplicateServer
        >>> server = ReplicateServer("replicate", "https://api.replicate.example/v1", "r8-secret")
        >>> sorted(ReplicateUpstream(server).operations)[:3]
        ['generate_image', 'generate_music', 'generate_video']
    """

    kind = "replicate"
    _server: ReplicateServer

    def __init__(
        self,
        server: ReplicateServer,
        operations: Sequence[str] = (),
        models: Mapping[str, str] | None = None,
        *,
        max_concurrency: int = 16,
        policy: FetchPolicy | None = None,
    ) -> None:
        self._targets = targets_of(models or {})
        able = operations_of(models or {})
        super().__init__(server, operations or able, max_concurrency, policy)
        self._outputs = Outputs(server, self._policy)
        self._working: set[asyncio.Task[Any]] = set()
        lacking = sorted(self.operations.difference(able))
        if lacking:
            known = operations_of({})
            what = (
                f"has no model for {lacking[0]}. Add one to its `models`"
                if lacking[0] in known
                else f"does not support {lacking[0]} (supported: {', '.join(known)})"
            )
            raise errors.InvalidRequestError(f"the upstream {self.name} {what}")

    def refuse(self, work: OperationRequest) -> None:
        """Reject requests without a configured model, and URLs of recordings.

        Raises:
            NoBackendError: No model is configured, or the recording is a URL.
        """
        if self._target(work) is None:
            raise self._without_model(work.model)
        if work.operation == "transcribe":
            refuse_addresses(work, "audio")

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Run a prediction and store its output."""
        limit_s = self._server.total_s(SLOW)
        files: list[str] = []
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - this is a coroutine
        self._working.add(task)
        try:
            async with asyncio.timeout(limit_s):
                return await self._predicted(work, sink, limit_s, files)
        except TimeoutError:
            raise late(self.name) from None
        finally:
            self._working.discard(task)
            await self._server.forget(files)

    def _target(self, work: OperationRequest) -> Target | None:
        return self._targets.get(variant_of(work).model or "")

    async def _predicted(
        self, work: OperationRequest, sink: ProgressSink, limit_s: float, files: list[str]
    ) -> OperationResult:
        target = self._targets[variant_of(work).model or ""]
        given = input_of(work, sink)
        await refuse_files(work)
        await self._judge(addresses_in(work), may_be_unknown=False)
        path, version = f"/models/{target.model}/predictions", ""
        body: dict[str, Any] = {}
        if target.version:
            version = await self._server.version(work.operation, target)
            path, body = "/predictions", {"version": version}
        body["input"] = {
            name: await self._server.upload(work.operation, one, files)
            if isinstance(one, Upload)
            else one
            for name, one in given.items()
        }
        ended = await predicted(
            self._server, work.operation, path, body, sink, _deadline_fields(limit_s)
        )
        output = await self._outputs.shaped(work, ended.get("output"), sink)
        used_version = ended.get("version")
        if isinstance(used_version, str) and _VERSION.fullmatch(used_version):
            version = used_version
        metrics = _numbers(ended.get("metrics"))
        return OperationResult(output, version or "hidden", metrics, target.model)

    async def close(self) -> None:
        """Close the connections after the cleanup requests of canceled work."""
        if self._working:
            await asyncio.wait(self._working, timeout=_LAST_WORDS_S)
        await self._server.wait_for_cleanup()
        await super().close()


def _deadline_fields(limit_s: float) -> list[str]:
    """Return a header field that ends the prediction if this server cannot cancel it."""
    if math.isinf(limit_s):
        return []
    seconds = min(_MAX_CANCEL_AFTER_S, max(_MIN_CANCEL_AFTER_S, math.ceil(limit_s)))
    return [f"Cancel-After: {seconds}s"]


def _numbers(metrics: object) -> dict[str, float]:
    return {name: one for name, one in numbers_of(metrics).items() if _METRIC.fullmatch(name)}
