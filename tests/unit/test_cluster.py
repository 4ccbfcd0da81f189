"""What of a cluster needs none: addresses, settings, the row of orders."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.errors import InvalidRequestError
from polymux.ray.batch_queue import PIECE_BYTES, Feed, Order
from polymux.ray.cluster import check_address
from polymux.ray.settings import RaySettings
from polymux.server.settings.settings import read_settings

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize("address", ["auto", "local", "head.example:6379", "203.0.113.7:1"])
def test_addresses(address: str) -> None:
    assert check_address(address) == address


@pytest.mark.parametrize(
    "address", ["", "head.example", "head.example:0", "a/b:6379", ":6379", "a:70000",
                "ray://head.example:10001"],
)  # fmt: skip
def test_what_is_no_address(address: str) -> None:
    with pytest.raises(InvalidRequestError, match="ray="):
        check_address(address)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"ray": "music/"}, "no address"),
        ({"ray_gpus": 0.5}, "give ray"),
        ({"ray": "auto", "ray_cpus": -1.0}, "ray_cpus"),
        ({"ray": "auto", "ray_gpus": float("nan")}, "ray_gpus"),
        ({"ray": "auto", "client": polymux.Local()}, "not both"),
    ],
)
def test_batches_refuse_what_makes_no_sense(
    tmp_path: Path, options: dict[str, Any], words: str
) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        polymux.batch("free_chat", [], output_dir=tmp_path, **options)
    assert not (tmp_path / "polymux-batch.db").exists()


def orders(*keys: int, size_bytes: int = 0) -> list[Order]:
    return [Order(key, {}, {}, {"file": size_bytes}) for key in keys]


def keys(group: tuple[Order, ...] | None) -> list[int]:
    assert group is not None
    return [one.key for one in group]


def test_files_go_in_pieces(tmp_path: Path) -> None:
    feed, path, copy = Feed(workers=1), tmp_path / "a", tmp_path / "b"
    path.write_bytes(b"x" * PIECE_BYTES + b"rest")
    begin = 0
    while piece := feed.read(str(path), begin):
        feed.write(str(copy), begin, piece)
        begin += len(piece)
    assert copy.read_bytes() == path.read_bytes()


def test_settings_of_a_server(tmp_path: Path) -> None:
    file = tmp_path / "polymux.toml"
    file.write_text(
        '[ray]\naddress = "head.example:6379"\nmax_replicas = 2\nhere = ["media"]\n'
        "[ray.engines.chat]\ngpus = 0.25\nqueue = 4\n"
    )
    ray = read_settings(file).ray
    assert ray is not None
    assert (ray.max_replicas, ray.here, ray.gpus) == (2, ("media",), None)
    assert (ray.of("chat").gpus, ray.of("chat").queue, ray.of("chat").max_replicas) == (0.25, 4, 2)
    assert ray.of("speech").queue == RaySettings().queue


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ('address = "ray://head.example:1"', "ray://"),
        ("min_replicas = 3", "max_replicas"),
        ("gpus = -1", "ray.gpus"),
        ("replicas = 1", "ray.replicas is not known"),
        ("[ray.engines.chat]\nmax_concurrency = 1", "engines.chat.max_concurrency is not known"),
        ('[ray.engines.chat]\ngpus = "all"', "engines.chat.gpus='all': must be a number"),
    ],
)
def test_what_is_wrong_in_settings(tmp_path: Path, lines: str, words: str) -> None:
    file = tmp_path / "polymux.toml"
    file.write_text(f"[ray]\n{lines}\n")
    with pytest.raises(InvalidRequestError, match=words):
        read_settings(file)
