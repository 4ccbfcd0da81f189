from __future__ import annotations

import datetime
from importlib import metadata

import pytest
from polymux.downloads import health


def test_how_old_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: "2026.10.26")
    day = datetime.date(2026, 12, 25)
    assert health.downloads(day) | {"way_out": None} == {
        "ok": True, "version": "2026.10.26", "age_days": 60, "old": False, "browsers": True,
        "javascript": True, "way_out": None, "remedy": "pip install --upgrade 'polymux[download]'",
    }  # fmt: skip
    late = health.downloads(day + datetime.timedelta(days=1))
    assert late["old"]
    assert any("61 days" in line for line in health.lines(late))


@pytest.mark.parametrize("version", ["2026.13.99", "nightly", "1.2"])
def test_versions_that_are_no_days(monkeypatch: pytest.MonkeyPatch, version: str) -> None:
    monkeypatch.setattr(metadata, "version", lambda _: version)
    found = health.downloads(datetime.date(2026, 12, 25))
    assert (found["age_days"], found["old"]) == (None, False)


def test_it_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)
    found = health.downloads(datetime.date(2026, 12, 25))
    assert not found["ok"]
    assert "polymux[download]" in health.lines(found)[0]


def test_what_bounds_it_is_reported() -> None:
    found = health.downloads()
    assert found["way_out"] == "network namespace"
    assert len(health.lines(found | {"way_out": "open", "javascript": False, "old": True})) == 4
    assert "curl-cffi" in health.lines(found | {"way_out": None, "browsers": False})[1]
    assert len(health.lines(found | {"way_out": None, "javascript": True, "old": False})) == 1
