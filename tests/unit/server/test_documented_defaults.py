from __future__ import annotations

import re
from dataclasses import MISSING, fields
from typing import Any

import pytest
from polymux.downloads.settings import DownloadSettings
from polymux.fetch.fetcher import FetchLimits
from polymux.runtime.settings import EngineSettings, Limits, StoreSettings
from polymux.runtime.upstream_settings import UpstreamSettings
from polymux.server.settings.settings import ServerSettings
from polymux.summaries.settings import SummaryOptions
from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
from polymux.upstreams.song_search.settings import SongSearchSettings

KINDS = (
    ServerSettings, Limits, StoreSettings, EngineSettings, UpstreamSettings, DownloadSettings,
    SummaryOptions, FetchLimits, SongRecognitionSettings, SongSearchSettings,
)  # fmt: skip
UNITS = {"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "hours": 3600.0, "minutes": 60.0,
         "day": 86_400.0, "megapixels": 1e6}  # fmt: skip


def described(kind: type[Any], name: str) -> float:
    text = " ".join((kind.__doc__ or "").split())
    found = re.search(rf" {name}: .*?Default: (a|[\d,]+(?:\.\d+)?)\b ?(\w+)?", text)
    assert found is not None, name
    number = 1.0 if found[1] == "a" else float(found[1].replace(",", ""))
    unit = 1000.0 if name.endswith("_ms") and found[2] == "s" else UNITS.get(found[2], 1.0)
    return number * unit


@pytest.mark.parametrize("kind", KINDS, ids=lambda one: one.__name__)
def test_descriptions_tell_the_defaults(kind: type[Any]) -> None:
    numbers = {
        one.name: one.default
        for one in fields(kind)
        if re.match(r"(int|float)\b", str(one.type)) and one.default not in (MISSING, None)
    }
    assert numbers
    assert {name: described(kind, name) for name in numbers} == numbers
