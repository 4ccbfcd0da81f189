"""``[upstreams.NAME]`` in a server's settings: which servers of others do what."""

from __future__ import annotations

import logging
import os
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._util.deprecation import new_names_of, renamed_arguments, with_new_keys
from polymux._util.text import display_name, shown
from polymux.client.options import Timeout
from polymux.config import checked_base_url, checked_key
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
    from collections.abc import Callable, Mapping, Sequence

    from polymux.downloads.url_inputs import UrlFetcher
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.backend import Backend

KINDS = ("openai", "polymux", "replicate")
_KEYS = ("key", "api_key", "token", "authorization", "password", "secret")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,100}", re.ASCII)
_log = logging.getLogger("polymux.server")
_MAX_KEY_BYTES = 10_000
_MIN_EVENT_BYTES, _MAX_EVENT_BYTES = 1 << 10, 1 << 30


@renamed_arguments(slots="max_concurrency")
@dataclass(frozen=True, slots=True)
class UpstreamSettings:
    """A server of somebody else.

    Attributes:
        kind: ``"openai"`` for servers in OpenAI's form, ``"polymux"`` for another polymux,
            ``"replicate"`` for servers in Replicate's form.
        base_url: Where it is, such as ``"https://api.groq.com/openai/v1"``.
        key_file: The file that this server's key for it is in, alone. Default: no key.
        key_environment: The variable that it is in, instead. Default: no key.
        operations: What it is asked for. Default: the two chats; of a polymux, everything; of
            Replicate, what it has models for.
        models: Our name of a model to theirs, the first the one that ``default`` means. Default:
            chats ask for whatever it has; Replicate for the models of the interface.
        max_concurrency: How much is asked of it at once. Default: 16.
        connect_s: Deadline for a connection. Default: 5.
        first_byte_s: From the request's end to the answer's begin. Default: none; of streams 300.
        idle_s: Between two bytes of an answer, and two pieces of a stream. Default: 60.
        total_s: For all of an answer that is no stream. Default: 300; 1,900 for files and jobs.
        event_bytes: Longest event of a stream that is taken from it. Default: 1 MiB.
        certificates: File of the certificates that it is trusted by, PEM. Default: the system's.
        max_tokens: Whether it knows the longest answer of a chat by that name only. Default: False.
        response_format: Whether it takes that member for images. Default: True.
        transcript_format: What its transcripts come in: ``"verbose_json"``, or ``"json"``, which
            has no times. Default: ``"verbose_json"``.
        image_fields: Fields of image generation that it takes by our names. Default: none.
    """

    kind: str
    base_url: str
    key_file: Path | None = None
    key_environment: str | None = None
    operations: tuple[str, ...] = ()
    models: Mapping[str, str] = field(default_factory=dict)
    max_concurrency: int = 16
    connect_s: float | None = None
    first_byte_s: float | None = None
    idle_s: float | None = None
    total_s: float | None = None
    event_bytes: int = 1 << 20
    certificates: Path | None = None
    max_tokens: bool = False
    response_format: bool = True
    transcript_format: str = TIMED
    image_fields: tuple[str, ...] = ()

    @property
    def does(self) -> tuple[str, ...]:
        """The operations that it is asked for."""
        if self.operations or self.kind == "polymux":
            return self.operations or _all()
        return CHATS if self.kind == "openai" else operations_of(self.models)

    def key(self, name: str) -> str | None:
        """The key, from where it is kept; None where none is named.

        Args:
            name: The upstream's, for errors; they never hold what was found.

        Raises:
            InvalidRequestError: It is not there, or is none.
        """
        if self.key_environment is not None:
            found, place = os.environ.get(self.key_environment, ""), "key_environment"
        elif self.key_file is not None:
            found, place = _in_file(self.key_file, name), "key_file"
        else:
            return None
        if not found.strip():
            raise InvalidRequestError(f"upstreams.{name}.{place}: there is no key in it")
        try:
            return checked_key(found.strip())
        except InvalidRequestError:
            raise InvalidRequestError(
                f"upstreams.{name}.{place}: what is in it is no key: one line of ASCII without "
                "spaces"
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
    """The upstreams as backends, none of them connected.

    Args:
        settings: Name to upstream.
        policy: What may be fetched beyond the public Internet and their own hosts.
        taken: The names that other backends have.
        url_fetcher: What brings recordings from addresses for those that take files alone. Default:
            nothing, and they refuse addresses.

    Raises:
        InvalidRequestError: A key cannot be read, or a name is taken.
    """

    made = []
    for name, one in settings.items():
        if name in taken:
            raise InvalidRequestError(f"upstreams.{name}: an engine has that name; choose another")
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
    if ours:
        return PolymuxUpstream(
            server, one.does, one.models, max_concurrency=one.max_concurrency, policy=policy
        )
    if isinstance(server, ReplicateServer):
        return ReplicateUpstream(
            server, one.does, one.models, max_concurrency=one.max_concurrency, policy=policy
        )
    return OpenAIUpstream(
        server,
        one.does,
        one.models,
        max_concurrency=one.max_concurrency,
        max_tokens=one.max_tokens,
        response_format=one.response_format,
        transcript_format=one.transcript_format,
        image_fields=one.image_fields,
        policy=policy,
    )


def read_upstreams(plain: Mapping[str, Any], problems: list[str]) -> dict[str, UpstreamSettings]:
    """The upstreams of a table; what is wrong is added to `problems`, never with a key in it."""
    found = {}
    for name, table in plain.items():
        if not isinstance(table, dict):
            problems.append(f"upstreams.{name} must be a table")
            continue
        own: list[str] = []
        new_names = new_names_of(UpstreamSettings)
        table = with_new_keys(table, new_names, _log.warning, f"upstreams.{name}.")
        values = _values(table, own)
        if not own:
            settings = UpstreamSettings(**values)
            _check(settings, own)
            found[name] = settings
        problems += [f"upstreams.{name}.{one}" for one in own]
    return found


def _values(table: Mapping[str, Any], problems: list[str]) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in table.items():
        if name in _KEYS:
            problems.append(
                f"{name}: a key is not kept in this file: put it alone into a file and name that "
                "as key_file, or name the variable that holds it as key_environment"
            )
        elif name not in _FIELDS:
            problems.append(f"{name} is not known")
        else:
            must, convert = _FIELDS[name]
            try:
                values[name] = convert(value)
            except (TypeError, ValueError):
                said = "" if name in ("key_environment", "base_url") else f"={shown(value)}"
                problems.append(f"{name}{said}: must be {must}")
    problems += [f"{name} is missing" for name in ("kind", "base_url") if name not in table]
    return values


def _check(one: UpstreamSettings, problems: list[str]) -> None:
    known = _able(one.kind)
    problems += [
        f"operations: {shown(name)} is none that such a server does; there are {', '.join(known)}"
        for name in one.operations
        if name not in known
    ]
    if one.key_file is not None and one.key_environment is not None:
        problems.append("key_file and key_environment: give one of them")
    lacking: Sequence[str] = ()
    theirs = "their-model"
    if one.kind == "openai":
        lacking = ModelNames(one.models).lacking(frozenset(one.does))
    elif one.kind == "replicate":
        lacking = _lacking_at_replicate(one, problems)
        theirs = "owner/name:version"
    problems += [
        f"models: names none for {name}; give a table, such as models = "
        f'{{ "{_selector_of(name)}" = "{theirs}" }}'
        for name in lacking
    ]


def _lacking_at_replicate(one: UpstreamSettings, problems: list[str]) -> list[str]:
    """The operations without a model; models that are none are told of."""
    try:
        targets_of(one.models)
    except InvalidRequestError as error:
        problems.append(f"models: {error}")
        return []
    able = operations_of(one.models)
    return [name for name in one.operations if name in _able(one.kind) and name not in able]


def _able(kind: str) -> tuple[str, ...]:
    """What a server of that kind can do."""
    if kind == "openai":
        return OPENAI_OPERATIONS
    return operations_of({}) if kind == "replicate" else _all()


def _all() -> tuple[str, ...]:
    return tuple(one.name for one in contract.operations())


def _selector_of(operation: str) -> str:
    """A name of ours that means a model for it."""
    return contract.operation(operation).variants[0].model or "assistant"


def _kind(value: object) -> str:
    if value not in KINDS:
        raise ValueError
    return str(value)


def _form(value: object) -> str:
    if value not in FORMS:
        raise ValueError
    return str(value)


def _url(value: object) -> str:
    # Not `InvalidRequestError`, whose text is of another field.
    try:
        checked_base_url(_text(value))
    except InvalidRequestError:
        raise ValueError from None
    return str(value)


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise ValueError
    return value


def _variable(value: object) -> str:
    if not _VARIABLE.fullmatch(_text(value)):
        raise ValueError
    return str(value)


def _path(value: object) -> Path:
    try:
        return Path(_text(value)).expanduser()
    except RuntimeError:  # There is nobody whose home folder is meant.
        raise ValueError from None


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise TypeError
    return tuple(_text(one) for one in value)


def _models(value: object) -> dict[str, str]:
    if isinstance(value, dict):
        return {_text(name): _text(their) for name, their in value.items()}
    return {name: name for name in _texts(value)}


def _count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        raise ValueError
    return value


def _event_bytes(value: object) -> int:
    count = _count(value)
    if not _MIN_EVENT_BYTES <= count <= _MAX_EVENT_BYTES:
        raise ValueError
    return count


def _seconds(value: object) -> float:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise ValueError
    return float(value)


def _boolean(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError
    return value


_A_TIME = ("a number above 0", _seconds)
_A_FILE = ("the path of a file", _path)
#: Name to what it must be, in words, and what makes the value of it.
_FIELDS: Mapping[str, tuple[str, Callable[[object], Any]]] = {
    "kind": (f"one of {', '.join(KINDS)}", _kind),
    "base_url": ("an address, such as https://api.example/v1, without name and password", _url),
    "key_file": _A_FILE,
    "key_environment": ("the name of a variable", _variable),
    "operations": ("an array of operations", _texts),
    "models": ("an array of names, or a table of our name to theirs", _models),
    "max_concurrency": ("a whole number, 1 or above", _count),
    "connect_s": _A_TIME,
    "first_byte_s": _A_TIME,
    "idle_s": _A_TIME,
    "total_s": _A_TIME,
    "event_bytes": (
        f"a whole number from {_MIN_EVENT_BYTES} to {_MAX_EVENT_BYTES}",
        _event_bytes,
    ),
    "certificates": _A_FILE,
    "max_tokens": ("true or false", _boolean),
    "response_format": ("true or false", _boolean),
    "transcript_format": (f"one of {', '.join(FORMS)}", _form),
    "image_fields": ("an array of texts", _texts),
}
