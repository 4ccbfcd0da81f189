"""The whole corpus of hostile URLs in a network of its own, whose decoys nobody may connect to.

The namespaces need root. Where they cannot be made these tests fail and say so.
"""

from __future__ import annotations

from typing import Any

import pytest
from support import decoy_network
from support.hostile_check import PATIENCE
from support.url_corpus import DECOYS, PORTS, PUBLIC, urls

REFUSED = "URLRefusedError "


@pytest.fixture(scope="module")
def found() -> dict[str, Any]:
    return decoy_network.run()[0]


def test_the_network_is_real(found: dict[str, Any]) -> None:
    """What plays the public side serves, and each decoy can be reached by who tries."""
    assert found["served"] == f"public from http://{PUBLIC}/"
    assert found["knocks"] == {f"{decoy} {port}": 1 for decoy in DECOYS for port in PORTS}


def test_no_decoy_was_ever_connected_to(found: dict[str, Any]) -> None:
    assert found["hits"] == {}


def test_every_url_of_the_corpus_is_refused(found: dict[str, Any]) -> None:
    assert len(found["direct"]) == len(urls()) >= 900
    assert {url: said for url, said in found["direct"].items() if said != REFUSED} == {}
    assert found["direct_s"] < 60


def expected(code_and_url: str) -> tuple[str, ...]:
    """What may come of a redirect to a URL of the corpus."""
    url = code_and_url.partition(" ")[2]
    if len(url) > 64 * 1024:
        return ("AnswerTooLargeError ",)
    if "\0" in url:
        return ("ConnectionLostError receive",)
    if "\n" in url:  # The rest is a header of its own, or no header at all.
        return (REFUSED, "ConnectionLostError receive", f"public from http://{PUBLIC}/")
    # A name without a scheme is a place on the same server, which is the public one.
    return (REFUSED, f"public from http://{PUBLIC}/redirect/", f"public from http://{PUBLIC}/etc/")


def test_no_redirect_leads_to_a_url_of_the_corpus(found: dict[str, Any]) -> None:
    assert len(found["redirected"]) == len(urls())
    assert {
        url: said for url, said in found["redirected"].items() if not said.startswith(expected(url))
    } == {}
    refused = [said for said in found["redirected"].values() if said == REFUSED]
    assert len(refused) > 0.9 * len(found["redirected"])
    assert found["requests"] > len(found["redirected"])


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("public", "public from http://public.example/"),
        ("private", REFUSED),
        ("private6", REFUSED),
        ("mapped", REFUSED),
        ("mixed", REFUSED),
        ("mixed-other-order", REFUSED),
        ("to-localhost", REFUSED),
        ("chain", REFUSED),
        ("127-0-0-1.wildcard", REFUSED),
        ("many", "public from http://many.example/"),
        ("many-one-private", REFUSED),
        ("servfail", "ConnectError resolve"),
        ("unknown", "ConnectError resolve"),
        ("silent", "RequestTimeoutError connect"),
        ("localhost", REFUSED),
        ("a.localhost", REFUSED),
        ("metadata.google.internal", REFUSED),
        ("nas.home.arpa", REFUSED),
        ("rebinding by a redirect", REFUSED),
        ("queries for local names", "0"),
    ],
)
def test_names(found: dict[str, Any], name: str, said: str) -> None:
    assert found["names"][name] == said


def test_a_name_is_asked_once_and_its_answer_kept(found: dict[str, Any]) -> None:
    """The second answer would be private, with no time to live: nobody asks for it."""
    assert found["names"]["rebinding"] == "public from http://rebinding.example/"
    assert found["names"]["queries of one fetch"] == "1"


def test_the_name_of_this_machine(found: dict[str, Any]) -> None:
    """Whatever /etc/hosts has for it; the decoys listen on all of loopback."""
    assert found["names"]["own name"] in (REFUSED, "ConnectError resolve")


def test_a_silent_resolver_does_not_hold_the_exit(found: dict[str, Any]) -> None:
    """It is given 30 s in the namespace's resolv.conf."""
    assert found["exit_s"] <= 2 * PATIENCE
