"""The download checks of `polymux doctor`."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from importlib import metadata
from typing import Any

from polymux.engines.process import egress, sandbox

#: Sites change and yt-dlp follows: older versions fail at more sites every week.
_OLD_DAYS = 60
_REMEDY = "pip install --upgrade 'polymux[download]'"


def downloads(today: datetime.date | None = None) -> dict[str, Any]:
    """Check whether downloads work, the age of yt-dlp, and how the network is restricted.

    Returns:
        ``ok``, ``version``, ``age_days``, ``old``, ``browsers`` (whether curl-cffi is installed,
        for sites that accept only browsers), ``javascript`` (whether deno is installed, which some
        sites need), ``way_out`` (what restricts the process to its proxy:
        ``"network namespace"``, ``"ports"`` if Landlock restricts only TCP ports, ``"open"`` if
        nothing does, None if unknown) and ``remedy``.
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
    """Return the age of a version; yt-dlp versions are dates."""
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
    names = {egress.ONE_WAY_OUT: "network namespace", sandbox.ONLY_PORTS: "ports"}
    return names.get(found, "open")


_WAYS_OUT = {
    "network namespace": "ok       network restriction of downloads: separate network namespace",
    "ports": "partly   network restriction of downloads: network namespaces are not available on "
    "this machine; Landlock restricts only TCP ports",
    "open": "absent   network restriction of downloads: this machine has neither network "
    "namespaces nor Landlock with port restriction (Linux 6.7)",
}


def lines(found: dict[str, Any]) -> list[str]:
    """Format the result of `downloads` for people."""
    if not found["ok"]:
        return [f"absent   downloads from web pages (run: {found['remedy']})"]
    words = [f"ok       downloads from web pages, with yt-dlp {found['version']}"]
    if found["old"]:
        words.append(
            f"old      yt-dlp is {found['age_days']} days old and may fail on changed sites: "
            f"'{found['remedy']}'"
        )
    if not found["javascript"]:
        words.append(f"absent   deno, which some sites require (run: {found['remedy']})")
    if not found["browsers"]:
        words.append(f"absent   curl-cffi, which some sites require (run: {found['remedy']})")
    if found["way_out"] is not None:
        words.append(_WAYS_OUT[found["way_out"]])
    return words
