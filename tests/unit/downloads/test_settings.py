"""`[download]` in a server's settings: what would let nothing through is refused."""

from __future__ import annotations

from typing import Any

import pytest
from polymux.downloads.settings import DownloadSettings
from polymux.errors import InvalidRequestError


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ({"max_concurrency": 0}, "max_concurrency=0: must be an integer, 1 or more"),
        ({"max_concurrency": -1}, "max_concurrency=-1: must be an integer, 1 or more"),
        ({"max_bytes": 0}, "max_bytes=0: must be an integer, 1 or more"),
        ({"total_s": 0.0}, "total_s=0.0: must be a number above 0"),
        ({"total_s": float("nan")}, "total_s=nan: must be a number above 0"),
    ],
)
def test_limits_that_let_nothing_through(given: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidRequestError, match=told):
        DownloadSettings(**given)


def test_the_least_limits() -> None:
    assert DownloadSettings(max_concurrency=1, max_bytes=1, total_s=0.5).max_concurrency == 1
