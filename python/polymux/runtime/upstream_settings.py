"""The tables ``[upstreams.NAME]`` of a server's settings."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import rule
from polymux._util.text import display_name, shown
from polymux.client.options import Timeout
from polymux.config import checked_key, checked_url
from polymux.downloads.url_inputs import addressed
from polymux.errors import InvalidRequestError
from polymux.upstreams.client import UpstreamServer
from polymux.upstreams.model_names import CHATS, OPENAI_OPERATIONS, ModelNames
from polymux.upstreams.openai.backend import OpenAIUpstream
from polymux.upstreams.openai.transcriptions import FORMS, TIMED
from polymux.upstreams.polymux import PolymuxUpstream
from polymux.upstreams.replicate.backend import ReplicateUpstream
from polymux.upstreams.replicate.client import ReplicateServer
from polymux.upstreams.replicate.models import operations_of, targets_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from polymux.downloads.url_inputs import UrlFetcher
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.backend import Backend

KINDS = ("openai", "polymux", "replicate")
_KEYS = ("key", "api_key", "token", "authorization", "password", "secret")
_MAX_KEY_BYTES = 10_000
_TIME = rule(max=float("inf"))


def _url(value: str) -> str:
    try:
        return checked_url(value)
    except InvalidRequestError:  # Its text quotes the URL, which may contain a key.
        raise ValueError from None


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(one, str) and one for one in value):
        raise ValueError
    return tuple(value)


def _models(value: Any) -> dict[str, str]:
    if isinstance(value, dict):
        return dict(zip(_texts(list(value)), _texts(list(value.values())), strict=True))
    return {name: name for name in _texts(value)}


def without_keys(_: str, table: dict[str, Any], __: Callable[[str], object]) -> dict[str, Any]:
    """Reject API keys in the settings file.

    Raises:
        InvalidRequestError: The table contains an API key.
    """
    for one in _KEYS:
        if one in table:
            raise InvalidRequestError(
                f"{one}: API keys are not allowed in this file. Put the key into a separate file "
                "and set key_file, or set key_environment to the name of an environment variable"
            )
    return table


@renamed_arguments(slots="max_concurrency")
@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """An upstream server that runs operations.

    Attributes:
        kind: ``"openai"`` for an OpenAI-compatible API, ``"polymux"``, or ``"replicate"`` for the
            Replicate API.
        base_url: URL of the API, such as ``"https://api.groq.com/openai/v1"``.
        key_file: File that contains the API key and nothing else, up to 10,000 bytes. Default: no
            key.
        key_environment: Environment variable that contains the API key. Default: no key.
        operations: Operations that the upstream runs. Default: both chat operations for
            ``"openai"``, all for ``"polymux"``, those of `models` for ``"replicate"``.
        models: Model names of this server with the names that the upstream uses for them;
            ``default`` means the first. Default: chats may use any model of the upstream,
            ``"replicate"`` the models of the polymux API.
        max_concurrency: Maximum number of requests at the same time. Default: 16.
        connect_s: Time to connect. Default: 5.
        first_byte_s: Time from the end of a request to the response. Default: none; 300 for
            streams.
        idle_s: Maximum pause within a response, and between two chunks of a stream. Default: 60.
        total_s: Time for a response that is not streamed. Default: 300; 1,900 for files and jobs.
        event_bytes: Maximum event of a stream. Default: 1 MiB.
        certificates: File with trusted certificates (PEM). Default: those of the system.
        max_tokens: Send ``max_tokens`` instead of ``max_completion_tokens``. Default: False.
        response_format: Send ``response_format`` for images. Default: True.
        transcript_format: ``"verbose_json"``, or ``"json"``, which has no times. Default:
            ``"verbose_json"``.
        image_fields: Fields of image generation that the upstream accepts under polymux's names.
            Default: none.
    """

    kind: str = field(metadata=rule(choices=KINDS))
    base_url: str = field(
        metadata=rule(
            parse=_url,
            hidden=True,
            must="a URL such as https://api.example/v1, without user name and password",
        )
    )
    key_file: Path | None = None
    key_environment: str | None = field(
        default=None,
        metadata=rule(
            pattern="[A-Za-z_][A-Za-z0-9_]{0,100}",
            hidden=True,
            must="the name of an environment variable",
        ),
    )
    operations: tuple[str, ...] = ()
    models: Mapping[str, str] = field(
        default_factory=dict,
        metadata=rule(
            read=_models,
            must="an array of model names, or a table that maps model names of this server to "
            "those of the upstream",
        ),
    )
    max_concurrency: int = field(default=16, metadata=rule(min=1))
    connect_s: float | None = field(default=None, metadata=_TIME)
    first_byte_s: float | None = field(default=None, metadata=_TIME)
    idle_s: float | None = field(default=None, metadata=_TIME)
    total_s: float | None = field(default=None, metadata=_TIME)
    event_bytes: int = field(default=1 << 20, metadata=rule(min=1 << 10, max=1 << 30))
    certificates: Path | None = None
    max_tokens: bool = False
    response_format: bool = True
    transcript_format: str = field(default=TIMED, metadata=rule(choices=FORMS))
    image_fields: tuple[str, ...] = ()

    @property
    def does(self) -> tuple[str, ...]:
        if self.operations or self.kind == "polymux":
            return self.operations or _able(self.kind)
        return CHATS if self.kind == "openai" else operations_of(self.models)

    def problems(self) -> Iterator[str]:
        known = _able(self.kind)
        for name in self.operations:
            if name not in known:
                yield (
                    f"operations: {shown(name)} is not supported by this kind of server "
                    f"(supported: {', '.join(known)})"
                )
        if self.key_file is not None and self.key_environment is not None:
            yield "key_file and key_environment must not be used together"
        lacking: Sequence[str] = ()
        theirs = "their-model"
        if self.kind == "openai":
            lacking = ModelNames(self.models).lacking(frozenset(self.does))
        elif self.kind == "replicate":
            try:
                targets_of(self.models)
            except InvalidRequestError as error:
                yield f"models: {error}"
                return
            able = operations_of(self.models)
            lacking = [name for name in self.operations if name in known and name not in able]
            theirs = "owner/name:version"
        for name in lacking:
            ours = contract.operation(name).variants[0].model or "assistant"
            example = f'models = {{ "{ours}" = "{theirs}" }}'
            yield f"models: missing a model for {name}. Add one, such as {example}"

    def key(self, name: str) -> str | None:
        """Read the API key; None if not configured.

        Args:
            name: Name of the upstream, for errors; they never contain the key.

        Raises:
            InvalidRequestError: The key is missing or invalid.
        """
        if self.key_environment is not None:
            found, place = os.environ.get(self.key_environment, ""), "key_environment"
            source = "environment variable"
        elif self.key_file is not None:
            found, place, source = _in_file(self.key_file, name), "key_file", "file"
        else:
            return None
        if not found.strip():
            missing = "unset or empty" if place == "key_environment" else "empty"
            raise InvalidRequestError(
                f"upstreams.{name}.{place}: missing API key: the {source} is {missing}"
            )
        try:
            return checked_key(found.strip())
        except InvalidRequestError:
            raise InvalidRequestError(
                f"upstreams.{name}.{place}: invalid API key (expected one line of ASCII characters "
                "without spaces)"
            ) from None


def _in_file(path: Path, name: str) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_MAX_KEY_BYTES).decode("utf-8", "replace")
    except OSError as error:
        raise InvalidRequestError(
            f"upstreams.{name}.key_file: cannot read {display_name(os.fspath(path))}: "
            f"{error.strerror}"
        ) from None


def upstreams_of(
    settings: Mapping[str, UpstreamSettings],
    policy: FetchPolicy,
    taken: Sequence[str],
    url_fetcher: UrlFetcher | None = None,
) -> list[Backend]:
    """Create the backends of upstreams; none is connected yet.

    Args:
        policy: Allowed hosts for downloads, beyond the public Internet and the upstreams' hosts.
        url_fetcher: Downloads URL inputs for upstreams that accept only files. Default: these
            upstreams reject URLs.

    Raises:
        InvalidRequestError: A key cannot be read, or a name is already in use.
    """

    made = []
    for name, one in settings.items():
        if name in taken:
            raise InvalidRequestError(
                f"upstreams.{name}: name already exists (used by an engine). Choose another name"
            )
        backend = _backend(name, one, policy)
        if url_fetcher is not None and one.kind != "polymux":
            backend = addressed(backend, url_fetcher)
        made.append(backend)
    return made


def _backend(name: str, one: UpstreamSettings, policy: FetchPolicy) -> Backend:
    ours = one.kind == "polymux"
    kind = ReplicateServer if one.kind == "replicate" else UpstreamServer
    server = kind(
        name,
        one.base_url,
        one.key(name),
        certificates=os.fspath(one.certificates or ""),
        timeout=Timeout(
            one.total_s,
            connect=one.connect_s,
            first_byte=one.first_byte_s,
            idle=one.idle_s,
            event=one.idle_s,
        ),
        ours=ours,
        max_event_bytes=one.event_bytes,
    )
    how: dict[str, Any] = {"max_concurrency": one.max_concurrency, "policy": policy}
    if ours:
        return PolymuxUpstream(server, one.does, one.models, **how)
    if isinstance(server, ReplicateServer):
        return ReplicateUpstream(server, one.does, one.models, **how)
    return OpenAIUpstream(
        server,
        one.does,
        one.models,
        max_tokens=one.max_tokens,
        response_format=one.response_format,
        transcript_format=one.transcript_format,
        image_fields=one.image_fields,
        **how,
    )


def _able(kind: str) -> tuple[str, ...]:
    if kind == "openai":
        return OPENAI_OPERATIONS
    every = tuple(one.name for one in contract.operations())
    return operations_of({}) if kind == "replicate" else every
