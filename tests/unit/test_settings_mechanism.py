from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import TableReader, check, read_toml, rule, rules_of
from polymux.downloads.settings import DownloadSettings
from polymux.errors import InvalidRequestError
from polymux.ray.settings import RaySettings
from polymux.songs.settings import SongSettings
from polymux.summaries.settings import SummaryOptions
from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
from polymux.upstreams.song_search.settings import SongSearchSettings

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


def doubled(value: int) -> int:
    if value == 13:
        raise InvalidRequestError("13 is unlucky")
    return 2 * value


@renamed_arguments(size="length")
@dataclass(frozen=True, slots=True)
class Inner:
    length: int = field(default=1, metadata=rule(min=1, max=9))
    name: str = field(default="a", metadata=rule(pattern="[a-z]+", must="lower-case letters"))
    secret: str = field(default="", metadata=rule(pattern="x*", hidden=True))
    kinds: tuple[str, ...] = field(default=(), metadata=rule(choices=("cat", "dog")))
    even: int | None = field(default=None, metadata=rule(parse=doubled))

    __post_init__ = check

    def problems(self) -> Iterator[str]:
        if self.name == "long" and self.length < 5:
            yield "length: too short for its name"


@dataclass(frozen=True, slots=True)
class Outer:
    required: str
    flag: bool = False
    share: float = 0.5
    endless_s: float = field(default=1.0, metadata=rule(max=float("inf")))
    count: int | None = None
    path: Path | None = None
    ports: tuple[int, ...] = ()
    table: Mapping[str, Any] = field(default_factory=dict)
    inner: Inner = field(default_factory=Inner)
    many: Mapping[str, Inner] = field(default_factory=dict, metadata=rule(tables=Inner))


def test_tables_become_settings() -> None:
    warnings: list[str] = []
    reader = TableReader(warnings.append)
    made = reader.read(
        Outer,
        {
            "required": "x", "flag": True, "share": 1, "endless_s": float("inf"), "count": 0,
            "path": "~/a", "ports": [1, 2], "table": {"a": 1},
            "inner": {"size": 2, "kinds": ["dog"], "even": 4}, "many": {"b": {"length": 3}},
        },
    )  # fmt: skip
    assert reader.problems == []
    assert made == Outer(
        "x", True, 1, float("inf"), 0, Path("~/a").expanduser(), (1, 2), {"a": 1},
        Inner(2, kinds=("dog",), even=8), {"b": Inner(3)},
    )  # fmt: skip
    assert len(warnings) == 1
    assert "inner.size" in warnings[0]


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"flag": 1}, "flag 1"),
    ({"share": 0}, "share 0"),
    ({"share": float("nan")}, "share nan"),
    ({"count": -1}, "count -1 0"),
    ({"count": True}, "count True"),
    ({"count": 1 << 63}, "count 9223372036854775808"),
    ({"path": ""}, "path ''"),
    ({"ports": [1, "2"]}, "ports [1, '2']"),
    ({"inner": 1}, "inner"),
    ({"inner": {"length": 10}}, "inner.length 10 1 9"),
    ({"inner": {"name": "A"}}, "inner.name 'A' lower-case letters"),
    ({"inner": {"secret": "hunter2"}}, "inner.secret"),
    ({"inner": {"kinds": ["cow"]}}, "inner.kinds cow cat dog"),
    ({"inner": {"kinds": ["cat", "cat"]}}, "inner.kinds"),
    ({"inner": {"even": 13}}, "inner.even 13 is unlucky"),
    ({"inner": {"name": "long"}}, "inner.length too short"),
    ({"inner": {"lenght": 1}}, "inner.lenght length"),
    ({"many": {"b": {"zzz": 1}}}, "many.b.zzz length name"),
    ({"many": {"b": 1}}, "many.b"),
]


@pytest.mark.parametrize(("table", "named"), WRONG)
def test_what_is_wrong_is_named(table: dict[str, Any], named: str) -> None:
    reader = TableReader()
    assert reader.read(Outer, {"required": "x", **table}) is None
    (problem,) = reader.problems
    assert all(one in problem for one in named.split())
    assert "hunter2" not in problem


def test_everything_that_is_wrong_is_named() -> None:
    with pytest.raises(InvalidRequestError, match=r"here.*flag.*count.*required"):
        TableReader().whole(Outer, {"flag": 1, "count": "x"}, "here: ")


@pytest.mark.parametrize(
    ("kind", "given"),
    [
        (Inner, {"length": 0}),
        (Inner, {"kinds": ("cow",)}),
        (DownloadSettings, {"total_s": float("nan")}),
        (SummaryOptions, {"part_characters": 10}),
        (SongSettings, {"min_confidence": 0.4}),
        (SongSearchSettings, {"cache_s": -1.0}),
        (SongRecognitionSettings, {"cache_empty_s": float("inf")}),
        (RaySettings, {"max_replicas": 0}),
    ],
)
def test_values_of_python_are_checked(kind: type, given: dict[str, Any]) -> None:
    (name,) = given
    rules_of(kind)[name].words  # noqa: B018 - every rule has words
    with pytest.raises(InvalidRequestError, match=name):
        kind(**given)


@pytest.mark.parametrize(
    "text", [b"a = ", b"\xff", b"a = 1" + b"0" * 5000, b"#" * (1 << 20) + b"#"]
)
def test_files_that_are_not_toml(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "a.toml"
    with pytest.raises(InvalidRequestError, match=re.escape(str(path))):
        read_toml(path, "the file")
    assert read_toml(path, "the file", optional=True) == {}
    path.write_bytes(text)
    with pytest.raises(InvalidRequestError, match=re.escape(str(path))):
        read_toml(path, "the file", optional=True)
