"""The corpus of URLs over every field that makes a server fetch: nobody within is reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from support import decoy_operations, decoy_pages
from support.decoy_network import CODES
from support.decoy_operations import NAMED, PAGES, PROXIES, REQUESTS, led_to
from support.url_corpus import PUBLIC, urls

if TYPE_CHECKING:
    from collections.abc import Iterator

#: Of a refusal. No failure that nobody foresaw is one: it says nothing of what was reached before.
REFUSED = {"url_refused", "invalid_request"}
#: Through redirects also a path at the site itself, what leads nowhere, and too long a header.
LED = REFUSED | {"succeeded", "upstream_failed", "too_large"}
CORPUS = urls()
#: Fields at which redirects are followed by the fetcher of files; of a proxy none is followed.
LEADING = tuple(field for field in REQUESTS if field not in (*PAGES, *PROXIES))
#: What others would fetch.
JUDGED = ("weights", "fields_for_another_polymux")


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return decoy_operations.run()


@pytest.mark.slow
def test_nobody_was_reached(found: dict[str, Any]) -> None:
    assert len(found["knocks"]) > 20, "the decoys cannot be reached at all"
    assert found["hits"] == {}
    assert found["requests"] > 5_000
    assert found["good"] == dict.fromkeys(REQUESTS, "succeeded"), found["said"]


@pytest.mark.slow
@pytest.mark.parametrize("field", REQUESTS)
def test_all_was_refused(found: dict[str, Any], field: str) -> None:
    """Every URL directly; through each redirect one of twelve, where no downloader follows."""
    all_is_refused(found, field)
    if field in LEADING:
        all_was_led_to(found, field, led_to(range(0, len(CORPUS), 12)))


@pytest.mark.long
@pytest.mark.slow
def test_the_whole_corpus_through_each_redirect() -> None:
    """Every URL through every code, at every field but those that a downloader follows."""
    found = decoy_operations.run(everything=True)
    assert found["hits"] == {}
    assert found["requests"] > 30_000
    for field in REQUESTS:
        all_is_refused(found, field)
    for field in LEADING:
        all_was_led_to(found, field, led_to(range(len(CORPUS))))
    all_else_is_refused(found["calls"], 990)
    for name, led in found["calls"].items():
        assert len(led) >= (4950 if name.endswith(" redirected") else 990), name


@pytest.mark.slow
@pytest.mark.parametrize("field", PAGES)
def test_a_downloader_is_led_nowhere(field: str) -> None:
    """One URL of fifteen at the field itself; by lists on pages, every URL through every redirect.

    But those at which yt-dlp ends its work at a page are led to by at least one code.
    """
    found = decoy_pages.run(field)
    assert len(found["knocks"]) > 20, "the decoys cannot be reached at all"
    assert found["hits"] == {}
    places = decoy_pages.sampled(field, len(CORPUS))
    assert len(places) >= 65
    what_a_downloader_follows(found["field"], places, found["said"])
    pages = found["pages"]
    assert set(pages["outcomes"]) <= LED | {"unsupported_media"}, found["said"]
    codes: dict[int, set[int]] = {n: set() for n in range(len(CORPUS))}
    for place in pages["served"]:
        _, _, code, number = place.split("/")
        codes[int(number)].add(int(code))
    assert all(codes.values())
    assert len(pages["ended"]) <= 200, [CORPUS[n] for n in pages["ended"]]
    less = {n for n, some in codes.items() if some != set(CODES)}
    assert less <= set(pages["ended"])
    # Each was followed: the guard of the way out was asked for it, and said no.
    assert pages["refusals"]["requests"] > 0.8 * len(CODES) * (len(CORPUS) - len(pages["ended"]))
    assert pages["refusals"]["addresses"] > 0.6 * len(CORPUS)


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("field", PAGES)
def test_a_downloader_through_each_redirect(field: str, code: int) -> None:
    """Every URL at the field itself, a process for each: 5 to 11 minutes."""
    found = decoy_pages.run(field, code)
    assert len(found["knocks"]) > 20, "the decoys cannot be reached at all"
    assert found["hits"] == {}
    places = led_to(range(len(CORPUS)), (code,))
    what_a_downloader_follows(found["field"], places, found["said"])
    assert found["field"]["refusals"]["addresses"] > 0.6 * len(CORPUS)


def what_a_downloader_follows(found: dict[str, Any], places: list[str], said: str) -> None:
    """Each redirect was sent; where it leads is refused, or no address to a downloader."""
    codes = list(found["led"].values())
    assert list(found["led"]) == places
    assert served_of(found["served"]) == set(places), found["early"]
    # What ended before it came to its redirect, and was asked for again.
    assert len(found["early"]) <= 0.01 * len(places) + 1, found["early"]
    assert set(codes) <= LED, (set(codes), said)
    assert codes.count("url_refused") > 0.75 * len(codes)
    assert found["refusals"]["requests"] > 0.6 * len(codes)


def all_is_refused(found: dict[str, Any], field: str) -> None:
    assert set(CORPUS) <= set(found[field])
    # An empty field of a form is none: nothing is asked for.
    direct = [code for url, code in found[field].items() if url or code != "succeeded"]
    assert len(direct) >= 989
    assert direct.count("url_refused") > 0.8 * len(direct)
    assert set(direct) <= REFUSED, (set(direct), found["said"])


def all_was_led_to(found: dict[str, Any], field: str, places: list[str]) -> None:
    led = found[f"{field} redirected"]
    assert list(led) == places
    assert served_of(found[f"{field} served"]) == set(places)
    assert list(led.values()).count("url_refused") > 0.8 * len(led)
    assert set(led.values()) <= LED, (set(led.values()), found["said"])


def served_of(paths: list[str]) -> set[str]:
    """The addresses of the redirects that were sent."""
    return {f"http://{PUBLIC}{path}" for path in paths}


@pytest.mark.slow
def test_what_else_is_fetched(found: dict[str, Any]) -> None:
    """Webhooks and files of predictions, what upstreams have made, and what they would fetch."""
    all_else_is_refused(found["calls"], 120)


def all_else_is_refused(calls: dict[str, dict[str, str]], least: int) -> None:
    assert len(calls) == 10
    for name in [one for one in calls if not one.endswith(" redirected")]:
        direct = list(calls[name].values())
        assert len(direct) >= least, name
        # An upstream that names such an address has failed its caller.
        refused = "upstream_failed" if name == "output_of_an_upstream" else "url_refused"
        assert direct.count(refused) > 0.8 * len(direct), (name, direct)
        led = list(calls[f"{name} redirected"].values())
        if name == "webhook":  # Some of what they lead to is no answer of HTTP, or too long.
            statuses = {f"status {code}" for code in CODES}
            assert statuses <= set(led) <= statuses | {"upstream_failed", "status 502"}
        elif name in JUDGED:  # And not fetched: here nobody follows anything.
            assert set(led) == {"upstream_failed"}
        else:  # What is no address by itself is a path at the site that leads there.
            assert led.count(refused) > 0.8 * len(led), (name, led)
            assert set(led) <= LED - {"invalid_request"}, (name, set(led))


@pytest.mark.slow
def test_names_are_judged_by_what_they_lead_to(found: dict[str, Any]) -> None:
    """U19 to U22. One that changes its answer is asked anew for each connection, and judged."""
    unknown = ("servfail", "unknown")
    for asked, code in found["names"].items():
        name = asked.rpartition(" ")[2]
        if name == "rebinding":
            assert code in ("url_refused", "succeeded", "upstream_failed"), asked
        elif name == "many":  # Two thousand times the public side, which has what is asked for.
            assert code == "succeeded", asked
        elif name in unknown:
            assert code in ("upstream_failed", "invalid_request"), (asked, code)
        else:
            assert code == "url_refused", (asked, code)


@pytest.mark.slow
def test_a_name_server_that_says_nothing_holds_nobody_up(found: dict[str, Any]) -> None:
    """U22. Given up after the ten seconds of a connection, and meanwhile others are answered."""
    fields = found["silent"]["fields"]
    assert set(fields) == set(NAMED)
    for field, (code, seconds) in fields.items():
        # A picture that cannot be had is what is wrong with a chat.
        chat = field.startswith("chat.")
        assert code == ("invalid_request" if chat else "upstream_timeout"), field
        assert 5 < seconds < 15, (field, seconds)
    others = found["silent"]["others"]
    assert {code for code, _ in others} == {"succeeded"}
    # Were the loop held or its threads all taken, there would be one such answer, after 10 s.
    assert len(others) > 10
    assert sorted(seconds for _, seconds in others)[len(others) // 2] < 1
    assert max(seconds for _, seconds in others) < 5


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
    """Paths to the fields of kind ``url``, within objects and lists of them."""
    for field in fields:
        if field.kind == "url":
            yield field.name
        for inner in (field.object, field.items_object):
            if inner is not None:
                yield from (f"{field.name}.{path}" for path in fetched_by(inner.fields))
