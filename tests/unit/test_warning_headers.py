from __future__ import annotations

import pytest
from polymux.client.answer import warnings_of
from polymux.service.warnings import warnings_fields


@pytest.mark.parametrize(
    "lines",
    [
        [],
        ["plain"],
        ['"quoted", and, "again"', "back\\slash\\"],
        ["", 'ends in "'],
        ["a, b", "c; d=1"],
    ],
)
def test_lines_come_back(lines: list[str]) -> None:
    headers = {name.decode(): value.decode() for name, value in warnings_fields(lines)}
    assert warnings_of(headers) == lines


@pytest.mark.parametrize("value", ["", "no string", '"never ends', '"a\\', "1, 2;x", '"' * 9999])
def test_what_is_no_list_does_no_harm(value: str) -> None:
    assert all(one == "" for one in warnings_of({"polymux-warnings": value}))
