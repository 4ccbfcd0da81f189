"""The user's configuration: the server's URL and API key, and the engines of this machine.

They come from arguments, environment variables or the configuration file.
"""

from __future__ import annotations

import os

from polymux._util.frozen import Frozen
from polymux._util.imports import IMPORTING
from polymux._util.settings import Rule, TableReader, read_toml
from polymux._util.text import display_name, shown
from polymux.errors import InvalidRequestError

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

__all__ = ["Configuration", "config_path", "configuration"]

#: Keys of the configuration file. Messages omit the values, which may be secret.
_RULES = dict.fromkeys(
    ("base_url", "api_key", "chat_model", "ca_file", "client_certificate", "proxy"),
    Rule("str", hidden=True),
) | {
    "local": Rule("bool"),
    "songs": Rule("Mapping"),  # Read by `polymux.songs.settings`.
    "engines": Rule("Mapping"),  # Read by `polymux.runtime.settings`.
}
#: Fields of `Configuration` for the connection; their variables are in capitals.
_WAYS = ("ca_file", "client_certificate", "proxy")
_LARGEST_PORT = 65535
#: Maximum length of a header field's value that most servers accept.
MAX_HEADER_CHARACTERS = 65_536
_MAX_LOCAL_KEY_CHARACTERS = 8192


class Configuration(Frozen):
    """A client's settings of its server.

    Attributes:
        base_url: URL of the server without a trailing slash, such as
            ``"https://server.example:8443"``.
        api_key: API key of the server; None if it needs none. Hidden in `repr`.
        chat_model: Default model of chats; None for the server's default.
        ca_file: File of trusted CA certificates (PEM); None for the system's.
        client_certificate: File with a client certificate and its key (PEM); None without.
        proxy: URL of a proxy; None without. Hidden in `repr`, as it may contain a password.
    """

    __slots__ = ("api_key", "base_url", "ca_file", "chat_model", "client_certificate", "proxy")
    _hidden = ("api_key", "proxy")
    base_url: str
    api_key: str | None
    chat_model: str | None
    ca_file: str | None
    client_certificate: str | None
    proxy: str | None

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        chat_model: str | None,
        *,
        ca_file: str | None = None,
        client_certificate: str | None = None,
        proxy: str | None = None,
    ) -> None:
        self._set(
            base_url=base_url,
            api_key=api_key,
            chat_model=chat_model,
            ca_file=ca_file,
            client_certificate=client_certificate,
            proxy=proxy,
        )


def config_path() -> Path:
    """Return the path of the configuration file.

    It is ``POLYMUX_CONFIG``, else ``polymux/config.toml`` in the XDG configuration directory. A
    file in the current directory is never used, because it could be from an untrusted source.

    Example:
        >>> from polymux.config import config_path
        >>> config_path().suffix
        '.toml'
    """
    from pathlib import Path

    return Path(_config_file())


def _config_file() -> str:
    """Return the path as text: importing `pathlib` would dominate the time of a first request."""
    named = os.environ.get("POLYMUX_CONFIG")
    if named:
        return named
    return os.path.join(_xdg_folder("XDG_CONFIG_HOME", "~/.config"), "polymux", "config.toml")  # noqa: PTH118


def _xdg_folder(variable: str, usual: str) -> str:
    folder = os.environ.get(variable, "")
    # The XDG specification requires to ignore relative paths.
    return folder if os.path.isabs(folder) else os.path.expanduser(usual)  # noqa: PTH111, PTH117


def state_folder() -> Path:
    """Return the directory ``polymux`` in the XDG state directory.

    Example:
        >>> from polymux.config import state_folder
        >>> state_folder().name
        'polymux'
    """
    from pathlib import Path

    return Path(_state_folder())


def _state_folder() -> str:
    folder = _xdg_folder("XDG_STATE_HOME", "~/.local/state")
    if not os.path.isabs(folder):  # noqa: PTH117
        raise InvalidRequestError(
            "home directory: unknown for this user. Set XDG_STATE_HOME to an absolute path"
        )
    return os.path.join(folder, "polymux")  # noqa: PTH118


def models_folder() -> Path:
    """Return the directory of models: ``POLYMUX_MODELS``, else in the XDG data directory.

    Example:
        >>> from polymux.config import models_folder
        >>> models_folder().is_absolute()
        True
    """
    from pathlib import Path

    named = os.environ.get("POLYMUX_MODELS")
    if named:
        return Path(named).expanduser().absolute()
    return Path(_xdg_folder("XDG_DATA_HOME", "~/.local/share")).absolute() / "polymux" / "models"


def local_key_path() -> Path:
    """Return the file with keys and URLs of this user's servers, which the servers write."""
    return state_folder() / "local-key"


def local_servers() -> list[tuple[str, str]]:
    """Return keys and URLs of this user's servers, most recently started first."""
    try:
        with open(os.path.join(_state_folder(), "local-key"), encoding="ascii") as file:  # noqa: PTH118, PTH123
            words = file.read(_MAX_LOCAL_KEY_CHARACTERS).split()
    except (OSError, ValueError, InvalidRequestError):
        return []
    return list(zip(words[::2], words[1::2], strict=False))


def _local_server(base_url: str | None) -> tuple[str, str] | None:
    """Return URL and key of this user's server, which matches `base_url` if given; else None."""
    for key, address in local_servers():
        try:
            found = checked_base_url(address), checked_key(key)
        except InvalidRequestError:
            continue
        if not base_url or _is_same(base_url, found[0]):
            return found
    return None


def configuration(
    base_url: str | None = None, api_key: str | None = None, chat_model: str | None = None
) -> Configuration:
    """Complete the arguments from the environment and the configuration file.

    The variables are ``POLYMUX_BASE_URL``, ``POLYMUX_API_KEY``, ``POLYMUX_CHAT_MODEL``,
    ``POLYMUX_CA_FILE``, ``POLYMUX_CLIENT_CERTIFICATE`` and ``POLYMUX_PROXY``. The keys of the file
    have the same names in lower case without the prefix. All keys but ``chat_model`` apply only to
    the server in the file's ``base_url``, which is then required. Paths in the file may start with
    ``~``; relative paths start at the file's directory. Without any of these, the server that this
    user runs on this computer is used, which stores its URL and a key in the state directory.

    Raises:
        InvalidRequestError: There is no server URL, the file is invalid, or the file in
            ``POLYMUX_CONFIG`` does not exist.

    Example:
        >>> from polymux.config import configuration
        >>> found = configuration("http://127.0.0.1:8000/", "secret")
        >>> found.base_url, found.api_key, found.ca_file
        ('http://127.0.0.1:8000', 'secret', None)
    """
    base_url = base_url or os.environ.get("POLYMUX_BASE_URL")
    if api_key is None:  # An empty key means: no key.
        api_key = os.environ.get("POLYMUX_API_KEY") or None
    chat_model = chat_model or os.environ.get("POLYMUX_CHAT_MODEL")
    ways = {name: os.environ.get(f"POLYMUX_{name.upper()}") or None for name in _WAYS}
    file = _from_file(_config_file())
    its_url = checked_base_url(file["base_url"]) if "base_url" in file else None
    if not base_url:
        base_url = its_url
    if its_url is not None and base_url and _is_same(base_url, its_url):
        if api_key is None:
            api_key = file.get("api_key")
        ways = {name: ways[name] or file.get(name) for name in _WAYS}
    chat_model = chat_model or file.get("chat_model")
    if not api_key and not (base_url and api_key is not None):
        # Use a local key only for this user's server on this computer, never another server's key.
        local = _local_server(base_url)
        if local is not None:
            base_url, api_key = local[0], local[1] if api_key is None else ""
    if not base_url:
        raise InvalidRequestError(
            "no server configured. Pass base_url, set POLYMUX_BASE_URL, or set base_url in "
            f"{display_name(_config_file())}",
            code="no_server",
        )
    return Configuration(
        checked_base_url(base_url),
        None if not api_key else checked_key(api_key),
        chat_model,
        **ways,
    )


def prefers_local() -> bool:
    """Return whether commands and ``%%polymux`` run locally by default.

    This is the key ``local`` of the configuration file, unless ``POLYMUX_BASE_URL`` is set.

    Raises:
        InvalidRequestError: The file is invalid.
    """
    return not os.environ.get("POLYMUX_BASE_URL") and bool(_read(_config_file()).get("local"))


def engine_tables() -> dict[str, Any]:
    """Return the table ``engines`` of the configuration file; empty without one.

    Raises:
        InvalidRequestError: The file is invalid, or has unknown keys.
    """
    found: dict[str, Any] = _read(_config_file()).get("engines", {})
    return found


def _is_same(url: str, other: str) -> bool:
    """Return whether two URLs are equal, regardless of case, default port and IP notation."""

    def parts(address: str) -> tuple[str, str, str]:
        scheme, _, rest = checked_base_url(address).partition("://")
        return scheme, host_of(f"{scheme}://{rest}"), rest.partition("/")[2]

    return parts(url) == parts(other)


def _from_file(path: str) -> dict[str, str]:
    """Return the texts of the configuration file, without empty ones."""
    return {key: value for key, value in _read(path).items() if isinstance(value, str) and value}


def _read(path: str) -> dict[str, Any]:
    """Return the values of the configuration file."""
    is_named = bool(os.environ.get("POLYMUX_CONFIG"))
    what = "POLYMUX_CONFIG:" if is_named else "configuration file"
    reader = TableReader()
    found = reader.values(_RULES, read_toml(path, what, optional=not is_named))
    # A key is for one server: without its URL, the key would go to any server.
    bound = [key for key in ("api_key", *_WAYS) if found.get(key)]
    if bound and not found.get("base_url"):
        reader.problems.append(
            f"{bound[0]}: requires base_url, the URL of the server that it is for"
        )
    reader.end(f"{what} {display_name(path)}: ")
    for key in ("ca_file", "client_certificate"):
        if found.get(key):
            found[key] = os.path.join(os.path.dirname(path), os.path.expanduser(found[key]))  # noqa: PTH111, PTH118, PTH120
    return found


def checked_url(url: str) -> str:
    """Validate a server's URL in settings; see `checked_base_url`. Return it unchanged."""
    checked_base_url(url, "")
    return url


def checked_base_url(url: str, name: str = "base_url") -> str:
    """Validate a server's URL. Return it without a trailing slash and without ``/api/v1``.

    Messages start with `name`.

    Raises:
        InvalidRequestError: It is not an http or https URL, or it has a query or credentials.
        TypeError: It is not a str.
    """
    if not isinstance(url, str):
        raise TypeError(f"{name or 'URL'}: invalid type (got {type(url).__name__}, allowed str)")
    what = f"{name} {shown(_without_user(url))}".lstrip()
    if not url.isascii() or any(char <= " " or char in '\\"<>^`{|}\x7f' for char in url):
        message = f"{what}: invalid URL (contains a space, control or non-ASCII character)"
        raise InvalidRequestError(message)
    scheme, separator, rest = url.partition("://")
    authority = rest.partition("/")[0]
    if "?" in url or "#" in url:
        raise InvalidRequestError(f"{what}: invalid URL (must not contain '?' or '#')")
    if "@" in authority:
        message = f"{what}: must not contain a user name or password. Pass the key as api_key"
        raise InvalidRequestError(message)
    if scheme.lower() not in ("http", "https") or not separator or not _is_host(authority):
        message = f"{what}: invalid URL (must be http:// or https:// with a host)"
        raise InvalidRequestError(message)
    url = f"{scheme.lower()}://{rest}"
    return url.rstrip("/").removesuffix("/api/v1")


def _is_host(authority: str) -> bool:
    """Return whether it is a host name or IP address (IPv6 in brackets) with an optional port."""
    if authority.startswith("["):
        host, bracket, port = authority[1:].partition("]")
        named = bool(host) and bool(bracket) and set(host) <= set("0123456789abcdefABCDEF:.")
    else:
        host, colon, port = authority.partition(":")
        named, port = bool(host) and "]" not in host and "[" not in host, colon + port
    if not port:
        return named
    number = port[1:]
    return named and port[0] == ":" and number.isdigit() and 0 < int(number) <= _LARGEST_PORT


def _without_user(url: str) -> str:
    before, at, after = url.rpartition("@")
    return f"{before.partition('://')[0]}://***@{after}" if at else url


def checked_key(key: str) -> str:
    """Validate a key for use in a header field. Messages never contain it.

    Raises:
        InvalidRequestError: It is too long, or contains a space, control or non-ASCII character.
        TypeError: It is not a str.
    """
    if not isinstance(key, str):
        raise TypeError(f"api_key: invalid type (got {type(key).__name__}, allowed str)")
    if not key.isascii() or any(char <= " " or char == "\x7f" for char in key):
        raise InvalidRequestError(
            "api_key: invalid (contains a space, control or non-ASCII character). Check for a "
            "newline at the end of the key"
        )
    if len(key) > MAX_HEADER_CHARACTERS:
        raise InvalidRequestError(
            f"api_key: too large (got {len(key)} characters, allowed {MAX_HEADER_CHARACTERS})"
        )
    return key


def host_of(base_url: str) -> str:
    """Return ``name:port`` of a server's URL in canonical form, always with the port."""
    scheme, _, rest = base_url.partition("://")
    authority = rest.partition("/")[0]
    host, port = authority, "443" if scheme == "https" else "80"
    if ":" in authority.rpartition("]")[2]:
        host, _, port = authority.rpartition(":")
    return f"{_usual(host.lower())}:{port}"


def _usual(host: str) -> str:
    """Return ``127.0.0.1`` for ``127.1``, ``[::1]`` for ``[0::1]``; host names unchanged."""
    address = host.strip("[]")
    if not address or set(address) - set("0123456789abcdefx.:"):
        return host
    with IMPORTING:
        import _socket

    try:
        if host.startswith("["):
            plain = _socket.inet_ntop(
                _socket.AF_INET6, _socket.inet_pton(_socket.AF_INET6, address)
            )
            return f"[{plain}]"
        return _socket.inet_ntoa(_socket.inet_aton(address)) if address[0].isdigit() else host
    except OSError:
        return host
