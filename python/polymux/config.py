"""Where the server is and what its key is: arguments, then the environment, then a file."""

from __future__ import annotations

import os

from polymux._util.frozen import Frozen
from polymux._util.settings import Rule, TableReader, read_toml
from polymux._util.text import display_name, shown
from polymux.errors import InvalidRequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

__all__ = ["Configuration", "config_path", "configuration"]

#: What the configuration file may have. Messages leave out the values: keys may be among them.
_RULES = dict.fromkeys(
    ("base_url", "api_key", "chat_model", "ca_file", "client_certificate", "proxy"),
    Rule("str", hidden=True),
) | {"songs": Rule(read=lambda value: value)}  # Read by `polymux.songs.settings`.
#: Of the way to the server, as fields of `Configuration`; the variables are in capitals.
_WAYS = ("ca_file", "client_certificate", "proxy")
_LARGEST_PORT = 65535
#: Of a header field's value, as most servers take it.
MAX_HEADER_CHARACTERS = 65_536
_MAX_LOCAL_KEY_CHARACTERS = 8192


class Configuration(Frozen):
    """What a client needs to know of its server.

    Attributes:
        base_url: Such as ``"https://server.example:8443"``, without a slash at the end.
        api_key: Its key; None where it needs none. Never shown.
        chat_model: Model of chats that name none; None for the server's own.
        ca_file: File of the certificates (PEM) that it is trusted by; None for the system's.
        client_certificate: File of the certificate to show to it, with its key (PEM); or None.
        proxy: Address of a proxy on the way; or None. Not shown, as it may hold a password.
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
    """The configuration file: ``POLYMUX_CONFIG``, else ``polymux/config.toml`` in the XDG folder.

    Never one of the current folder, which may be a stranger's.

    Example:
        >>> from polymux.config import config_path
        >>> config_path().suffix
        '.toml'
    """
    from pathlib import Path

    return Path(_config_file())


def _config_file() -> str:
    """The same as text: `pathlib` would be the dearest part of a first request."""
    named = os.environ.get("POLYMUX_CONFIG")
    if named:
        return named
    return os.path.join(_xdg_folder("XDG_CONFIG_HOME", "~/.config"), "polymux", "config.toml")  # noqa: PTH118


def _xdg_folder(variable: str, usual: str) -> str:
    folder = os.environ.get(variable, "")
    # The specification has relative ones ignored.
    return folder if os.path.isabs(folder) else os.path.expanduser(usual)  # noqa: PTH111, PTH117


def state_folder() -> Path:
    """``polymux`` in the XDG folder for state.

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
            "this account has no home folder: say by XDG_STATE_HOME where its state is kept"
        )
    return os.path.join(folder, "polymux")  # noqa: PTH118


def models_folder() -> Path:
    """Where models are kept: ``POLYMUX_MODELS``, else ``polymux/models`` in the XDG data folder.

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
    """Where this account's own server keeps its key and address; it makes both by itself."""
    return state_folder() / "local-key"


def local_servers() -> list[tuple[str, str]]:
    """Keys and addresses of this account's own servers, the one that was started last first."""
    try:
        with open(os.path.join(_state_folder(), "local-key"), encoding="ascii") as file:  # noqa: PTH118, PTH123
            words = file.read(_MAX_LOCAL_KEY_CHARACTERS).split()
    except (OSError, ValueError, InvalidRequestError):
        return []
    return list(zip(words[::2], words[1::2], strict=False))


def _local_server(base_url: str | None) -> tuple[str, str] | None:
    """Address and key of this account's own server, of several the one meant; None for none."""
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
    """Completes what the caller gave from the environment and the configuration file.

    The variables are ``POLYMUX_BASE_URL``, ``POLYMUX_API_KEY``, ``POLYMUX_CHAT_MODEL``,
    ``POLYMUX_CA_FILE``, ``POLYMUX_CLIENT_CERTIFICATE`` and ``POLYMUX_PROXY``; the file's keys are
    the same words in small letters, without the first. All of the file but the model is for the
    file's own server only, which it must name then; its paths may begin with ``~``, and else with
    the file's folder. Without any of them it is the server that this account runs on this machine,
    which leaves its address and a key in the folder for state.

    Raises:
        InvalidRequestError: There is no server's address, or something in the file is wrong; or the
            file that ``POLYMUX_CONFIG`` names is not there.

    Example:
        >>> from polymux.config import configuration
        >>> found = configuration("http://127.0.0.1:8000/", "secret")
        >>> found.base_url, found.api_key, found.ca_file
        ('http://127.0.0.1:8000', 'secret', None)
    """
    base_url = base_url or os.environ.get("POLYMUX_BASE_URL")
    if api_key is None:  # An empty one says that there is none.
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
        # A key of this account for a server of this machine, which both are its own.
        # Another server's key is not for it.
        local = _local_server(base_url)
        if local is not None:
            base_url, api_key = local[0], local[1] if api_key is None else ""
    if not base_url:
        raise InvalidRequestError(
            "no server: give base_url, set POLYMUX_BASE_URL, or write base_url into "
            f"{display_name(_config_file())}",
            code="no_server",
        )
    return Configuration(
        checked_base_url(base_url),
        None if not api_key else checked_key(api_key),
        chat_model,
        **ways,
    )


def _is_same(url: str, other: str) -> bool:
    """Whether both are one server's address, however they are spelt: case, port, numbers."""

    def parts(address: str) -> tuple[str, str, str]:
        scheme, _, rest = checked_base_url(address).partition("://")
        return scheme, host_of(f"{scheme}://{rest}"), rest.partition("/")[2]

    return parts(url) == parts(other)


def _from_file(path: str) -> dict[str, str]:
    is_named = bool(os.environ.get("POLYMUX_CONFIG"))
    what = "POLYMUX_CONFIG:" if is_named else "the configuration file"
    reader = TableReader()
    found = reader.values(_RULES, read_toml(path, what, optional=not is_named))
    texts: dict[str, str] = {key: found[key] for key in found if key != "songs" and found[key]}
    # A key is for one server: without its URL, the key would go to any server.
    bound = [key for key in ("api_key", *_WAYS) if key in texts]
    if bound and "base_url" not in texts:
        reader.problems.append(f"{bound[0]} needs base_url, the server that it is for")
    reader.end(f"{what} {display_name(path)}: ")
    for key in {"ca_file", "client_certificate"} & texts.keys():
        texts[key] = os.path.join(os.path.dirname(path), os.path.expanduser(texts[key]))  # noqa: PTH111, PTH118, PTH120
    return texts


def checked_url(url: str) -> str:
    """A server's URL in settings, unchanged; see `checked_base_url`."""
    checked_base_url(url, "")
    return url


def checked_base_url(url: str, name: str = "base_url") -> str:
    """The address of a server, without a slash at its end and without ``/api/v1``.

    Messages begin with the name.

    Raises:
        InvalidRequestError: It is no http or https URL of a host, or has more than a path.
        TypeError: It is no text.
    """
    if not isinstance(url, str):
        raise TypeError(f"base_url is a str, not {type(url).__name__}")
    what = f"{name} {shown(_without_user(url))}".lstrip()
    if not url.isascii() or any(char <= " " or char in '\\"<>^`{|}\x7f' for char in url):
        message = f"{what}: holds a space, a control character, or one that is not ASCII"
        raise InvalidRequestError(message)
    scheme, separator, rest = url.partition("://")
    authority = rest.partition("/")[0]
    if "?" in url or "#" in url:
        raise InvalidRequestError(f"{what}: must end with its path, without '?' and '#'")
    if "@" in authority:
        message = f"{what}: must not hold a name or password; the key is given as api_key"
        raise InvalidRequestError(message)
    if scheme.lower() not in ("http", "https") or not separator or not _is_host(authority):
        message = f"{what}: must be http:// or https:// with a host, and perhaps a port"
        raise InvalidRequestError(message)
    url = f"{scheme.lower()}://{rest}"
    return url.rstrip("/").removesuffix("/api/v1")


def _is_host(authority: str) -> bool:
    """Whether it is a name or address, in brackets where it has colons, and perhaps a port."""
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
    """A key as a header field can carry it. Never part of a message.

    Raises:
        InvalidRequestError: It holds a space, a control character, or one that is not ASCII; or it
            is too long.
        TypeError: It is no text.
    """
    if not isinstance(key, str):
        raise TypeError(f"api_key is a str, not {type(key).__name__}")
    if not key.isascii() or any(char <= " " or char == "\x7f" for char in key):
        raise InvalidRequestError(
            "api_key: holds a space, a control character, or one that is not ASCII; is there a "
            "line end after it?"
        )
    if len(key) > MAX_HEADER_CHARACTERS:
        raise InvalidRequestError(f"api_key: has {len(key)} characters; {MAX_HEADER_CHARACTERS} go")
    return key


def host_of(base_url: str) -> str:
    """``name:port`` of a server's address: in its usual spelling, the port always there."""
    scheme, _, rest = base_url.partition("://")
    authority = rest.partition("/")[0]
    host, port = authority, "443" if scheme == "https" else "80"
    if ":" in authority.rpartition("]")[2]:
        host, _, port = authority.rpartition(":")
    return f"{_usual(host.lower())}:{port}"


def _usual(host: str) -> str:
    """``127.0.0.1`` for ``127.1``, ``[::1]`` for ``[0::1]``; what is no address as it is."""
    address = host.strip("[]")
    if not address or set(address) - set("0123456789abcdefx.:"):
        return host
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
