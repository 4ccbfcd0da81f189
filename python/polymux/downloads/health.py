"""What `polymux doctor` says of downloads."""

from __future__ import annotations

import datetime
import re
from contextlib import suppress
from importlib import metadata
from typing import Any

#: Sites change, and yt-dlp with them: what is older fails at more of them every week.
_OLD_DAYS = 60
_REMEDY = "pip install --upgrade 'polymux[download]'"


def downloads(today: datetime.date | None = None) -> dict[str, Any]:
    """Whether pages can be read, how old what reads them is, and what bounds it.

    Args:
        today: Default: the day.

    Returns:
        ``ok``, ``version``, ``age_days``, ``old``, ``javascript`` (whether deno is there, which
        some sites need), ``confined`` (whether its only way out is enforced) and ``remedy``.

    Example:
        >>> from polymux.downloads.health import downloads
        >>> sorted(downloads())[:3]
        ['age_days', 'confined', 'javascript']
    """
    version = _version("yt-dlp")
    age_days = None if version is None else _age_days(version, today or datetime.date.today())
    return {
        "ok": version is not None,
        "version": version,
        "age_days": age_days,
        "old": age_days is not None and age_days > _OLD_DAYS,
        "javascript": _version("deno") is not None,
        "confined": None if version is None else _confined(),
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


def _confined() -> bool | None:
    """None where nobody could find out."""
    from subprocess import TimeoutExpired

    from polymux.engines import outlet

    try:
        return outlet.tried()
    except (OSError, TimeoutExpired):
        return None


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
    if found["confined"] is False:
        words.append(
            "absent   one way out for downloads, enforced: this machine lets no process leave the "
            "network, and Landlock bounds the ports at best"
        )
    return words
