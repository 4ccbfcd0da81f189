"""What `polymux doctor` says of downloads."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from importlib import metadata
from typing import Any

from polymux.engines.process import egress, sandbox

#: Sites change, and yt-dlp with them: what is older fails at more of them every week.
_OLD_DAYS = 60
_REMEDY = "pip install --upgrade 'polymux[download]'"


def downloads(today: datetime.date | None = None) -> dict[str, Any]:
    """Whether pages can be read, how old what reads them is, and what bounds it.

    Returns:
        ``ok``, ``version``, ``age_days``, ``old``, ``browsers`` (whether curl-cffi is there, by
        which sites are asked that let nothing but browsers through), ``javascript`` (whether deno
        is there, which some sites need), ``way_out`` (what keeps it to its only one:
        ``"network namespace"``, ``"ports"`` where Landlock bounds those of TCP and nothing else,
        ``"open"`` where nothing does, None where nobody could find out) and ``remedy``.
    """
    version = _version("yt-dlp")
    age_days = None if version is None else _age_days(version, today or datetime.date.today())
    return {
        "ok": version is not None,
        "version": version,
        "age_days": age_days,
        "old": age_days is not None and age_days > _OLD_DAYS,
        "browsers": _version("curl-cffi") is not None,
        "javascript": _version("deno") is not None,
        "way_out": None if version is None else _way_out(),
        "remedy": _REMEDY,
    }


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _age_days(version: str, today: datetime.date) -> int | None:
    """Its versions are days."""
    matched = re.match(r"(\d{4})\.(\d{1,2})\.(\d{1,2})", version)
    with suppress(ValueError):
        if matched is not None:
            return (today - datetime.date(*map(int, matched.groups()))).days
    return None


def _way_out() -> str | None:
    from subprocess import TimeoutExpired

    try:
        found = egress.tried()
    except (OSError, TimeoutExpired):
        return None
    told = {egress.ONE_WAY_OUT: "network namespace", sandbox.ONLY_PORTS: "ports"}
    return told.get(found, "open")


_WAYS_OUT = {
    "network namespace": "ok       one way out for downloads: a network namespace of their own",
    "ports": "partly   one way out for downloads: this machine lets no process leave the network; "
    "Landlock bounds the ports of TCP, and nothing else",
    "open": "absent   one way out for downloads, enforced: this machine lets no process leave the "
    "network, and has no Landlock that bounds ports (Linux 6.7)",
}


def lines(found: dict[str, Any]) -> list[str]:
    """The same for people."""
    if not found["ok"]:
        return [f"absent   downloads from pages ('{found['remedy']}')"]
    words = [f"ok       downloads from pages, by yt-dlp {found['version']}"]
    if found["old"]:
        words.append(
            f"old      yt-dlp is {found['age_days']} days old, and sites change: "
            f"'{found['remedy']}'"
        )
    if not found["javascript"]:
        words.append(f"absent   deno, without which some sites give nothing ('{found['remedy']}')")
    if not found["browsers"]:
        words.append(f"absent   curl-cffi, without which some sites refuse ('{found['remedy']}')")
    if found["way_out"] is not None:
        words.append(_WAYS_OUT[found["way_out"]])
    return words
