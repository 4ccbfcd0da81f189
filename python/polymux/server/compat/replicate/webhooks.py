"""Webhooks of predictions: signed messages to untrusted URLs."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import hmac
import logging
import os
import secrets
import shutil
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from polymux import errors
from polymux._native import core
from polymux._native.version import __version__
from polymux._util.atomic_file import remove_private_drafts, write_private
from polymux._util.redaction import register_secret
from polymux._util.text import display_name
from polymux.client import event_loop
from polymux.client.options import Retry, Timeout, native_options
from polymux.downloads.proxy import GuardedProxy
from polymux.fetch.fetcher import FetchLimits, ajudged
from polymux.server.compat.replicate.errors import ReplicateEndpoint, invalid_input
from polymux.server.compat.replicate.predictions import prediction_of
from polymux.server.http.responses import to_json
from polymux.service.job_table import STARTING
from polymux.service.temporary_files import reported

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux._native import _core
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

_log = logging.getLogger("polymux.server")
_LOOK_UP = FetchLimits(connect_ms=5_000, total_ms=5_000)
_DEADLINES = Timeout(10, connect=5, write=5, first_byte=10, idle=5, event=10)
_ONCE = Retry(0)
#: No total limit for the proxy's lifetime; responses are ignored.
_NO_LIMIT = 1 << 62


class Delivery:
    """Posts messages through an SSRF-checking proxy. Belongs to one event loop.

    Does not follow redirects and sends no API key of this server.

    Args:
        policy: Allowed hosts beyond the public Internet.
    """

    def __init__(self, policy: FetchPolicy) -> None:
        self._policy = policy
        self._opening = asyncio.Lock()
        self._proxy: GuardedProxy | None = None
        self._session: _core.Session | None = None
        self._folder: Path | None = None

    async def post(self, url: str, body: bytes, lines: Sequence[str]) -> int:
        """Post JSON; returns the response status.

        Raises:
            URLRefusedError: The URL is not allowed.
            PolymuxError: No response within 10 s.
        """
        # The proxy checks the connection too, but cannot report a rejection as such.
        await ajudged(url, policy=self._policy, limits=_LOOK_UP)
        session = await self._opened()
        fields = ["Content-Type: application/json", *lines]
        options = native_options(_DEADLINES, _ONCE)
        exchange = session.start(event_loop.port(), "POST", url, fields, body, options, "buffered")
        status, *_ = await event_loop.outcome(exchange, body, None)
        return status

    async def _opened(self) -> _core.Session:
        async with self._opening:
            if self._session is None:
                self._folder = Path(await asyncio.to_thread(tempfile.mkdtemp, prefix="polymux-"))
                self._proxy = GuardedProxy(self._policy, _NO_LIMIT)
                await self._proxy.start(self._folder / "proxy")
                bundle = self._policy.certificate_bundle
                self._session = core.Session(
                    headers=[f"User-Agent: polymux/{__version__}"],
                    proxy=self._proxy.url,
                    no_proxy="",
                    certificates="" if bundle is None else os.fsdecode(bundle),
                    verify=True,
                    http2=False,
                    # An idle connection would occupy one of the proxy's connection slots.
                    reuse=False,
                )
            return self._session

    async def close(self) -> None:
        if self._session is not None:
            await asyncio.to_thread(self._session.close)
        if self._proxy is not None:
            await self._proxy.close()
        if self._folder is not None:
            await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)


_SECRET_BYTES = 32
_PREFIX = "whsec_"


class SigningSecret:
    """The server's webhook secret, in a file of mode 0600; derives a secret per API key."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._secret: bytes | None = None

    def of(self, owner: str) -> str:
        """Return the secret of an API key, as ``whsec_`` and base64. Blocks; runs on any thread.

        Raises:
            InternalServerError: The disk is full (code ``storage_full``).
            StoreError: The file cannot be written.
        """
        with self._lock:
            if self._secret is None:
                self._secret = self._read() or self._made()
                register_secret(self._secret.hex())
        own = hmac.new(self._secret, f"webhooks of {owner}".encode(), hashlib.sha256).digest()
        return _PREFIX + base64.b64encode(own).decode()

    def _read(self) -> bytes | None:
        try:
            found = bytes.fromhex(self._path.read_text("ascii").strip())
        except (FileNotFoundError, ValueError):
            return None
        return found if len(found) == _SECRET_BYTES else None

    def _made(self) -> bytes:
        made = secrets.token_bytes(_SECRET_BYTES)
        name = display_name(self._path.as_posix())
        with reported(f"cannot store the webhook secret in {name}"):
            remove_private_drafts(self._path)
            write_private(self._path, f"{made.hex()}\n")
        return made


def new_message_id() -> str:
    """Create the id of a message; retries of a message keep its id."""
    return f"msg_{secrets.token_hex(12)}"


def signed(secret: str, message: str, body: bytes, now: float | None = None) -> list[str]:
    """Return the header lines of a signed message.

    Example:
        >>> signed("whsec_c2VjcmV0", "msg_1", b"{}", 1700000000)[2]
        'webhook-signature: v1,A5oIrJxXPB/PkULSoVu0e4khvPiqpF9vljmhkSKg0FI='
    """
    moment = str(int(time.time() if now is None else now))
    key = base64.b64decode(secret.removeprefix(_PREFIX))
    digest = hmac.new(key, f"{message}.{moment}.".encode() + body, hashlib.sha256).digest()
    return [
        f"webhook-id: {message}",
        f"webhook-timestamp: {moment}",
        f"webhook-signature: v1,{base64.b64encode(digest).decode()}",
    ]


#: Minimum time between two messages about output and logs, in seconds.
EVERY_S = 0.5
#: Pauses before retries of the final message, in seconds.
PAUSES_S = (1.0, 5.0, 25.0, 120.0)
#: Maximum number of concurrent messages: of all API keys, and of one key.
_AT_ONCE, _AT_ONCE_OF_ONE = 16, 4
#: Maximum number of predictions with active webhooks; further ones send no messages.
_MAX_WATCHED_PREDICTIONS = 2000


class Webhooks:
    """Sends the webhooks of a server's predictions.

    Webhooks never delay a job. When the server stops, pending messages are dropped.
    """

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._secret = SigningSecret(state.settings.store.folder / "webhook-secret")
        self._places = asyncio.Semaphore(_AT_ONCE)
        self._places_of: dict[str, asyncio.Semaphore] = {}
        self._watching: set[asyncio.Task[None]] = set()
        self._delivery: Delivery | None = None

    async def secret_of(self, owner: str) -> str:
        """Return the signing secret of an API key, as ``whsec_`` and base64."""
        return await asyncio.to_thread(self._secret.of, owner)

    async def check(self, url: str) -> None:
        """Check a URL before the prediction starts; each message checks it again."""
        policy = self._state.settings.fetch
        named: tuple[str, ...] = ()
        try:
            found = await ajudged(url, policy=policy, limits=_LOOK_UP)
        except errors.URLRefusedError as refused:
            raise invalid_input(f"webhook: {refused}", "webhook") from None
        except errors.TransportError:
            pass  # DNS may resolve the name later.
        else:
            host = f"[{found.host}]" if ":" in found.host else found.host
            named = (host, f"{host}:{found.port}")
        allowed = {one.lower() for one in policy.allowed_hosts}
        if url[:8].lower() != "https://" and allowed.isdisjoint(named):
            raise invalid_input(
                "webhook: must be an https URL (http is allowed only for hosts in the server "
                "setting fetch.allowed_hosts)",
                "webhook",
            )

    def watch(self, job: Job) -> None:
        """Send messages about a new job, if its request contains a webhook."""
        asked = job.asked or {}
        if not asked.get("webhook") or not asked.get("webhook_events_filter"):
            return
        if len(self._watching) >= _MAX_WATCHED_PREDICTIONS:
            _log.warning(
                "no webhooks are sent for prediction %s: too many predictions with webhooks are "
                "running (limit %d)",
                job.id,
                _MAX_WATCHED_PREDICTIONS,
            )
            return
        if self._delivery is None:
            self._delivery = Delivery(self._state.settings.fetch)
            self._state.at_stop(self._close)
        task = asyncio.create_task(self._send_all(job), name=f"webhook of {job.id}")
        self._watching.add(task)
        task.add_done_callback(self._watching.discard)

    async def _send_all(self, job: Job) -> None:
        try:
            await self._send_updates(job, frozenset((job.asked or {})["webhook_events_filter"]))
        except errors.PolymuxError as error:
            _log.warning("no more webhooks are sent for prediction %s: %s", job.id, error)
        except Exception:
            _log.exception("sending webhooks for prediction %s failed unexpectedly", job.id)

    async def _send_updates(self, job: Job, wanted: frozenset[str]) -> None:
        jobs = self._state.service.jobs
        sent = (0, 0)
        async for current in jobs.events(job, 0):
            if current.status != STARTING:
                if "start" in wanted and not current.ended:
                    # Before sending: the job may progress during it.
                    sent = _news(current, wanted)
                    await self._send(current)
                break
        async for current in jobs.events(job, EVERY_S):
            if current.ended:
                break
            news = _news(current, wanted)
            if news != sent:
                sent = news
                await self._send(current)
        if "completed" in wanted:
            await self._send_end(current)
        elif _news(current, wanted) != sent:
            await asyncio.sleep(EVERY_S)
            await self._send(current)

    async def _send_end(self, job: Job) -> None:
        message = new_message_id()
        for pause_s in (*PAUSES_S, None):
            if await self._send(job, message):
                return
            if pause_s is None:
                _log.warning(
                    "webhook of prediction %s: the final message was not delivered in %d attempts",
                    job.id,
                    len(PAUSES_S) + 1,
                )
                return
            await asyncio.sleep(pause_s)

    async def _send(self, job: Job, message: str | None = None) -> bool:
        """Send one message without retries; returns whether the receiver accepted it."""
        assert self._delivery is not None  # noqa: S101 - made before anything is watched
        url: str = (job.asked or {})["webhook"]
        body = to_json(prediction_of(self._state, job))
        secret = await self.secret_of(job.owner)
        # Slow receivers delay only messages of the same API key.
        own = self._places_of.setdefault(job.owner, asyncio.Semaphore(_AT_ONCE_OF_ONE))
        async with own, self._places:
            lines = signed(secret, message or new_message_id(), body)
            try:
                status = await self._delivery.post(url, body, lines)
            except errors.URLRefusedError:
                raise  # DNS changed to a forbidden address: send nothing more.
            except errors.PolymuxError as error:
                # The error's text could contain the URL.
                _log.info(
                    "webhook of prediction %s: sending failed (%s)", job.id, type(error).__name__
                )
                return False
        if not 200 <= status < 300:
            _log.info("webhook of prediction %s: the receiver returned status %d", job.id, status)
        return 200 <= status < 300

    async def _close(self) -> None:
        watching = list(self._watching)
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
        delivery, self._delivery = self._delivery, None
        if delivery is not None:
            with suppress(OSError):
                await delivery.close()


def _news(job: Job, wanted: frozenset[str]) -> tuple[int, int]:
    """Return the amount of logs and output, to detect changes."""
    output = job.output if "output" in wanted else None
    count = len(output) if isinstance(output, list) else int(output is not None)
    return (len(job.logs) if "logs" in wanted else 0), count


class WebhookSecret(ReplicateEndpoint):
    """``GET webhooks/default/secret``."""

    name = "predictions"
    every_key = False

    def __init__(self, state: ServerState, webhooks: Webhooks) -> None:
        super().__init__(state)
        self._webhooks = webhooks

    async def handle(self, asked: RequestContext) -> None:
        """Return the API key's own secret, which cannot sign messages of other keys."""
        key = await self._webhooks.secret_of(asked.access.caller.id)
        fields = [(b"cache-control", b"no-store")]
        await asked.send_json(200, {"key": key}, fields)
