"""The whole corpus of hostile URLs, requested from the downloader's proxy, as yt-dlp might."""

from __future__ import annotations

from typing import Any

import pytest
from support import decoy_proxy
from support.decoy_network import NAMES
from support.url_corpus import PUBLIC, urls

#: Rejected URL, invalid HTTP request, unreachable or unknown host, and oversized header (which may
#: be cut off while it is sent).
REFUSALS = {"400", "403", "431", "502"}
_LONG = 60_000


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return decoy_proxy.run()


def test_nobody_within_is_reached(found: dict[str, Any]) -> None:
    assert len(found["knocks"]) > 20, "the decoys cannot be reached at all"
    assert found["hits"] == {}
    assert found["served"] >= 3


@pytest.mark.parametrize("kind", ["GET", "CONNECT", "CONNECT 443"])
def test_what_may_not_be_asked_for_is_refused(found: dict[str, Any], kind: str) -> None:
    """Neither as a plain request nor as a tunnel. Public hosts are reachable."""
    statuses = found["statuses"][kind]
    assert set(urls()) <= set(statuses)
    assert statuses[f"http://{PUBLIC}/"] == "200"
    assert {len(url) > _LONG for url, status in statuses.items() if not status} <= {True}
    reached = {url for url, status in statuses.items() if status and status not in REFUSALS}
    assert {statuses[url] for url in reached} == {"200"}
    assert all(PUBLIC in url or ".example/" in url for url in reached), reached
    assert list(statuses.values()).count("403") > 0.8 * len(statuses)


def test_names_are_judged_by_what_they_lead_to(found: dict[str, Any]) -> None:
    expected = dict.fromkeys(("public", "many"), "200") | dict.fromkeys(
        ("servfail", "unknown"), "502"
    )
    for kind, statuses in found["statuses"].items():
        for name in NAMES:
            wanted = expected.get(name, "403")
            assert statuses[f"http://{name}.example/"] == wanted, (kind, name)
