"""Which proxy a client goes through: one that it was told, or that of the environment if asked."""

from __future__ import annotations

import os

from polymux._util.redaction import keep_secret


def chosen(base_url: str, proxy: str | None, *, trust_env: bool) -> tuple[str, str]:
    """The proxy's address and the hosts that are reached without it; empty texts for none.

    With `trust_env` the standard variables count: ``https_proxy`` or ``http_proxy`` by the scheme
    of `base_url`, else ``all_proxy``, each in capitals too, and ``no_proxy``. ``HTTP_PROXY`` in
    capitals does not: web servers set it from a header field of strangers.

    Raises:
        InvalidRequestError: The proxy is no http, https or socks URL.
    """
    if proxy is not None:
        return checked_proxy(proxy), ""
    if not trust_env:
        return "", ""
    scheme = base_url.partition(":")[0]
    names = [f"{scheme}_proxy"]
    if scheme == "https":
        names.append("HTTPS_PROXY")
    names += ["all_proxy", "ALL_PROXY"]
    found = next((os.environ[name] for name in names if os.environ.get(name)), "")
    no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return (checked_proxy(found), no_proxy) if found else ("", "")


def checked_proxy(proxy: str) -> str:
    """The address of a proxy; its password is in no text from then on.

    Raises:
        InvalidRequestError: It is no http, https or socks URL.
        TypeError: It is no text.
    """
    from polymux.errors import InvalidRequestError

    if not isinstance(proxy, str):
        raise TypeError(f"proxy is a str, not {type(proxy).__name__}")
    schemes = ("http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://")
    if not proxy.isascii() or not proxy.isprintable() or " " in proxy:
        raise InvalidRequestError("proxy: holds a space, a control or a non-ASCII character")
    if not proxy.lower().startswith(schemes):
        # Not shown: it may hold a password.
        raise InvalidRequestError(f"proxy: must begin with one of {', '.join(schemes)}")
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(proxy)
        password = parts.password
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host:
        raise InvalidRequestError("proxy: its host or port cannot be one")
    keep_secret(password, None if password is None else unquote(password))
    return proxy
