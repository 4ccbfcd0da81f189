"""Every hostile URL of the corpus, in an isolated network whose decoy hosts must not receive a
connection.

The network namespaces need root. Without them these tests fail with a clear message.
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
    """The public host answers and every decoy is reachable, so the other tests prove something."""
    assert found["served"] == f"public from http://{PUBLIC}/"
    assert found["knocks"] == {f"{decoy} {port}": 1 for decoy in DECOYS for port in PORTS}


def test_no_decoy_was_ever_connected_to(found: dict[str, Any]) -> None:
    assert found["hits"] == {}


def test_every_url_of_the_corpus_is_refused(found: dict[str, Any]) -> None:
    assert len(found["direct"]) == len(urls()) >= 900
    assert {url: text for url, text in found["direct"].items() if text != REFUSED} == {}
    assert found["direct_s"] < 60


def expected(code_and_url: str) -> tuple[str, ...]:
    """The allowed outcomes of a redirect to a URL of the corpus."""
    url = code_and_url.partition(" ")[2]
    if len(url) > 64 * 1024:
        return ("AnswerTooLargeError ",)
    if "\0" in url:
        return ("ConnectionLostError receive",)
    if "\n" in url:  # The text after the newline is parsed as another header.
        return (REFUSED, "ConnectionLostError receive", f"public from http://{PUBLIC}/")
    # A host without a scheme is a relative path on the public server.
    return (REFUSED, f"public from http://{PUBLIC}/redirect/", f"public from http://{PUBLIC}/etc/")


def test_no_redirect_leads_to_a_url_of_the_corpus(found: dict[str, Any]) -> None:
    assert len(found["redirected"]) == len(urls())
    assert {
        url: text for url, text in found["redirected"].items() if not text.startswith(expected(url))
    } == {}
    refused = [text for text in found["redirected"].values() if text == REFUSED]
    assert len(refused) > 0.9 * len(found["redirected"])
    assert found["requests"] > len(found["redirected"])


@pytest.mark.parametrize(
    ("name", "outcome"),
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
def test_names(found: dict[str, Any], name: str, outcome: str) -> None:
    assert found["names"][name] == outcome


def test_a_name_is_asked_once_and_its_answer_kept(found: dict[str, Any]) -> None:
    """A second DNS answer would be private (TTL zero), so the fetcher must not ask twice."""
    assert found["names"]["rebinding"] == "public from http://rebinding.example/"
    assert found["names"]["queries of one fetch"] == "1"


def test_the_name_of_this_machine(found: dict[str, Any]) -> None:
    """The result depends on /etc/hosts. The decoys listen on all loopback addresses."""
    assert found["names"]["own name"] in (REFUSED, "ConnectError resolve")


def test_a_silent_resolver_does_not_hold_the_exit(found: dict[str, Any]) -> None:
    """The namespace's resolv.conf has a timeout of 30 s."""
    assert found["exit_s"] <= 2 * PATIENCE
