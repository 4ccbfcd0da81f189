"""Hostile URLs in every field that makes a server download: no host in the private network may be
reached.

Uses one URL of each class, directly and after a redirect. `test_fetching_network` and
`test_egress_proxy_ssrf` use the whole corpus.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from support import decoy_operations
from support.decoy_operations import LED_FIELDS, PAGES, PAGES_STEP, REQUESTS
from support.url_corpus import PLAIN, PUBLIC, SAMPLE, urls

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Codes of a rejected URL. An unexpected error is not among them, because it does not show what was
#: reached before.
REFUSED = {"url_refused", "invalid_request"}
#: A redirect may also lead to a path on the same site, to an unreachable host, or have a header
#: that is too long.
LED = REFUSED | {"succeeded", "upstream_failed", "too_large"}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return decoy_operations.run()


def test_nobody_was_reached(found: dict[str, Any]) -> None:
    assert len(found["knocks"]) > 20, "the decoys cannot be reached at all"
    assert found["hits"] == {}
    assert found["requests"] >= 8 * len(SAMPLE)
    assert found["good"] == dict.fromkeys(REQUESTS, "succeeded"), found["errors"]
    assert set(SAMPLE) <= set(urls())


@pytest.mark.parametrize("field", REQUESTS)
def test_all_was_refused(found: dict[str, Any], field: str) -> None:
    assert set(SAMPLE) <= set(found[field])
    assert {found[field][url] for url in PLAIN} == {"url_refused"}
    # An empty form field counts as missing, so no URL is requested.
    direct = [code for url, code in found[field].items() if url or code != "succeeded"]
    assert len(direct) >= len(SAMPLE) - 1
    assert direct.count("url_refused") > 0.7 * len(direct)
    assert set(direct) <= REFUSED, (set(direct), found["errors"])


@pytest.mark.parametrize("field", LED_FIELDS)
def test_nobody_is_led_there(found: dict[str, Any], field: str) -> None:
    """Every redirect was sent and its target rejected or invalid."""
    record, output = found[f"{field} redirected"], found["errors"]
    led = record["led"]
    sample = SAMPLE[::PAGES_STEP] if field in PAGES else SAMPLE
    assert len(led) == len(sample)
    assert {f"http://{PUBLIC}{path}" for path in record["served"]} == set(led), record["early"]
    # A download may fail before the redirect and be repeated.
    assert len(record["early"]) <= 1, record["early"]
    for code, url in zip(led.values(), sample, strict=True):
        assert code == "url_refused" or url not in PLAIN, (code, url)
    assert list(led.values()).count("url_refused") > 0.6 * len(led)
    assert set(led.values()) <= LED, (set(led.values()), output)


def test_names_are_judged_by_what_they_lead_to(found: dict[str, Any]) -> None:
    """A name whose address changes is resolved and checked for every connection (U19 to U22)."""
    for asked, code in found["names"].items():
        name = asked.rpartition(" ")[2]
        expected = {
            "rebinding": {"url_refused", "succeeded", "upstream_failed"},
            "many": {"succeeded"},  # Two thousand public addresses.
            "servfail": {"upstream_failed", "invalid_request"},
            "unknown": {"upstream_failed", "invalid_request"},
        }.get(name, {"url_refused"})
        assert code in expected, (asked, code)


def test_every_field_is_asked_for() -> None:
    """Exactly the contract's fields of kind ``url``, including members of objects."""
    fields = {
        f"{operation.name}.{path}"
        for operation in contract.operations()
        for variant in operation.variants
        for path in fetched_by(variant.fields)
    }
    assert "chat.messages.content.image_url.url" in fields
    assert fields == set(REQUESTS)


def fetched_by(fields: tuple[contract.Field, ...]) -> Iterator[str]:
    for field in fields:
        if field.kind == "url":
            yield field.name
        for inner in (field.object, field.items_object):
            if inner is not None:
                yield from (f"{field.name}.{path}" for path in fetched_by(inner.fields))
