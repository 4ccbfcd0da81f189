"""The corpus of URLs over every field that makes a server fetch: nobody within is reached.

A sample of it, one URL of each class, directly and by one redirect each; all of it is asked of what
they fetch through: `test_fetching_network`, `test_decoys_by_the_way_out`.
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

#: Of a refusal. No failure that nobody foresaw is one: it says nothing of what was reached before.
REFUSED = {"url_refused", "invalid_request"}
#: Through redirects also a path at the site itself, what leads nowhere, and too long a header.
LED = REFUSED | {"succeeded", "upstream_failed", "too_large"}


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return decoy_operations.run()


def test_nobody_was_reached(found: dict[str, Any]) -> None:
    assert len(found["knocks"]) > 20, "the decoys cannot be reached at all"
    assert found["hits"] == {}
    assert found["requests"] >= 8 * len(SAMPLE)
    assert found["good"] == dict.fromkeys(REQUESTS, "succeeded"), found["said"]
    assert set(SAMPLE) <= set(urls())


@pytest.mark.parametrize("field", REQUESTS)
def test_all_was_refused(found: dict[str, Any], field: str) -> None:
    assert set(SAMPLE) <= set(found[field])
    assert {found[field][url] for url in PLAIN} == {"url_refused"}
    # An empty field of a form is none: nothing is asked for.
    direct = [code for url, code in found[field].items() if url or code != "succeeded"]
    assert len(direct) >= len(SAMPLE) - 1
    assert direct.count("url_refused") > 0.7 * len(direct)
    assert set(direct) <= REFUSED, (set(direct), found["said"])


@pytest.mark.parametrize("field", LED_FIELDS)
def test_nobody_is_led_there(found: dict[str, Any], field: str) -> None:
    """Each redirect was sent; where it leads is refused, or no address to who follows it."""
    told, said = found[f"{field} redirected"], found["said"]
    led = told["led"]
    sample = SAMPLE[::PAGES_STEP] if field in PAGES else SAMPLE
    assert len(led) == len(sample)
    assert {f"http://{PUBLIC}{path}" for path in told["served"]} == set(led), told["early"]
    # What ended before it came to its redirect, and was asked for again.
    assert len(told["early"]) <= 1, told["early"]
    for code, url in zip(led.values(), sample, strict=True):
        assert code == "url_refused" or url not in PLAIN, (code, url)
    assert list(led.values()).count("url_refused") > 0.6 * len(led)
    assert set(led.values()) <= LED, (set(led.values()), said)


def test_names_are_judged_by_what_they_lead_to(found: dict[str, Any]) -> None:
    """U19 to U22. One that changes its answer is asked anew for each connection, and judged."""
    for asked, code in found["names"].items():
        name = asked.rpartition(" ")[2]
        expected = {
            "rebinding": {"url_refused", "succeeded", "upstream_failed"},
            "many": {"succeeded"},  # Two thousand times the public side.
            "servfail": {"upstream_failed", "invalid_request"},
            "unknown": {"upstream_failed", "invalid_request"},
        }.get(name, {"url_refused"})
        assert code in expected, (asked, code)


def test_every_field_is_asked_for() -> None:
    """Every field of kind ``url`` that the contract has, members of objects too, and no other."""
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
