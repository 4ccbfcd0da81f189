from __future__ import annotations

import time

import pytest
from polymux.client.answer import warnings_of
from polymux.server.routes.operations import preferences


@pytest.mark.parametrize(
    ("field", "found"),
    [
        ("", {}),
        ("respond-async", {"respond-async": ""}),
        ("Wait=5;x=1, RESPOND-async", {"wait": "5", "respond-async": ""}),
        ('wait = "7" ; x , y', {"wait": "7", "y": ""}),
        ("wait=1, wait=2", {"wait": "1"}),
        ('foo="a, wait=5", bar', {"foo": "a, wait=5", "bar": ""}),
        ('foo="a\\", wait=5"', {"foo": 'a\\", wait=5'}),
        (",, ,a,", {"a": ""}),
        ('wait="5', {}),
        ('a, wait="5, b', {"a": ""}),
        ('wait"5"', {}),
        ("wait 5, a", {"a": ""}),
        ("=5, ;x, \u00e9=1, a", {"a": ""}),
    ],
)
def test_as_the_standard_has_it(field: str, found: dict[str, str]) -> None:
    """RFC 7240, section 2: invalid preferences are ignored, valid ones beside them count."""
    assert preferences(field) == found


@pytest.mark.parametrize(
    "piece",
    [" ", ",", '"', 'a=""', '"\\', "\\", "a;", "a= "],
)
def test_no_field_takes_long(piece: str) -> None:
    """60 KB of blanks once blocked the event loop of a server, and a client, for over a minute."""
    for end in ("", "x", '"'):
        field = "a" + piece * (60_000 // len(piece)) + end
        began = time.process_time()
        preferences(field)
        warnings_of({"polymux-warnings": field})
        assert time.process_time() - began < 2


def test_what_a_server_left_out_is_read_where_it_is_whole() -> None:
    headers = {"polymux-warnings": '"a \\"b\\"", "c\\\\", "not the end'}
    assert warnings_of(headers) == ['a "b"', "c\\"]
