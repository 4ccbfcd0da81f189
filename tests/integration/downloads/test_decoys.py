"""The corpus of URLs over every field that makes a server fetch: nobody within is reached."""

from __future__ import annotations

from typing import Any

import pytest
from polymux import contract
from support import decoy_operations
from support.decoy_network import CODES
from support.decoy_operations import REQUESTS


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return decoy_operations.run()


@pytest.mark.slow
def test_nobody_was_reached(found: dict[str, Any]) -> None:
    assert len(found["knocks"]) > 20, "the decoys cannot be reached at all"
    assert found["hits"] == {}
    assert found["requests"] > 500
    assert {found["good"][name] for name in ("convert_to_mp3.url", "transcribe.url")} == {
        "succeeded"
    }


@pytest.mark.slow
@pytest.mark.parametrize("field", REQUESTS)
def test_all_was_refused(found: dict[str, Any], field: str) -> None:
    direct = list(found[field].values())
    assert len(direct) >= 120
    assert direct.count("url_refused") > 0.8 * len(direct)
    assert set(direct) <= {"url_refused", "invalid_request", "succeeded", "internal"}, set(direct)
    led = list(found[f"{field} redirected"].values())
    assert led.count("url_refused") > 0.8 * len(led)
    assert not [code for code in led if "names an address" in code]


@pytest.mark.slow
def test_what_else_is_fetched(found: dict[str, Any]) -> None:
    """Webhooks and files of predictions, what upstreams have made, and what they would fetch."""
    calls = found["calls"]
    assert len(calls) == 8
    for name in [one for one in calls if not one.endswith(" redirected")]:
        direct = list(calls[name].values())
        assert len(direct) >= 120, name
        # An upstream that names such an address has failed its caller.
        refused = "upstream_failed" if name == "output_of_an_upstream" else "url_refused"
        assert direct.count(refused) > 0.8 * len(direct), (name, direct)
        led = list(calls[f"{name} redirected"].values())
        if name == "webhook":  # Some of what they lead to makes no answer of HTTP.
            statuses = {f"status {code}" for code in CODES}
            assert statuses <= set(led) <= statuses | {"upstream_failed"}
        elif name == "weights":  # Judged and not fetched: here nobody follows anything.
            assert set(led) == {"upstream_failed"}
        else:  # What is no address by itself is a path at the site that leads there.
            assert led.count(refused) > 0.8 * len(led), (name, led)
            assert set(led) <= {"url_refused", "upstream_failed", "succeeded"}, (name, led)


@pytest.mark.slow
def test_names_are_judged_by_what_they_lead_to(found: dict[str, Any]) -> None:
    """U19 to U22. One that changes its answer is asked anew for each connection, and judged."""
    unknown = ("servfail", "unknown")
    for asked, code in found["names"].items():
        name = asked.rpartition(" ")[2]
        if name == "rebinding":
            assert code in ("url_refused", "succeeded", "internal", "upstream_failed"), asked
        elif name in unknown:
            assert code in ("upstream_failed", "invalid_request"), (asked, code)
        else:
            assert code == "url_refused", (asked, code)


def test_every_field_is_asked_for() -> None:
    """Those that no backend here takes have their own tests, or none that could fetch."""
    elsewhere = {
        "search_music.proxy": "tests/integration/upstreams/test_song_search.py",
        "generate_image.replicate_weights": "no engine",
        "upscale_image.lora_links": "no engine",
        "upscale_image.custom_sd_model": "no engine",
    }
    fields = {
        f"{operation.name}.{field.name}"
        for operation in contract.operations()
        for variant in operation.variants
        for field in variant.fields
        if field.kind == "url"
    }
    assert fields | {"chat.image_url"} == {*REQUESTS, *elsewhere}
