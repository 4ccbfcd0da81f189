from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.batches.spec import BatchSpec
from polymux.errors import InvalidRequestError, UnsupportedMediaError
from polymux.ray import batch_executor
from polymux.ray.batch_executor import BatchWorker
from polymux.ray.cluster import check_address
from polymux.ray.settings import RaySettings
from polymux.server.settings.settings import read_settings
from support.batch_kills import noise

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
    with pytest.raises(InvalidRequestError, match=r"\bray\b"):
        check_address(address)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"ray": "music/"}, "music/"),
        ({"ray_gpus": 0.5}, "ray_gpus"),
        ({"ray": "auto", "ray_cpus": -1.0}, "ray_cpus"),
        ({"ray": "auto", "ray_gpus": float("nan")}, "ray_gpus"),
        ({"ray": "auto", "client": polymux.Local()}, "client.*ray"),
    ],
)
def test_batches_refuse_what_makes_no_sense(
    tmp_path: Path, options: dict[str, Any], named: str
) -> None:
    with pytest.raises(InvalidRequestError, match=named):
        polymux.batch("free_chat", [], output_dir=tmp_path, **options)
    assert not (tmp_path / "polymux-batch.db").exists()


def brought(worker: BatchWorker, path: Path, pieces: list[bytes]) -> None:
    for number, piece in enumerate(pieces):
        worker.bring("file", os.fsencode(path.name), piece, begins=number == 0)


def test_a_worker_gives_files_in_pieces_and_errors_by_the_callers_names(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_executor, "PIECE_BYTES", 10_000)
    worker = BatchWorker(BatchSpec("convert_to_mp3", {"bitrate": "64k"}), None)
    # The worker does not open this file, so its name need not be UTF-8.
    path = tmp_path / "long \udcff.wav"
    data = noise(1, 2)
    given = json.dumps({"file": str(path), "bitrate": "64k"})
    try:
        brought(worker, path, [b"what is replaced", b"rest"])
        brought(worker, path, [data[:1000], data[1000:]])
        *pieces, endings = worker.work(given)
        assert endings == [".mp3"]
        assert [begins for _, _, begins in pieces] == [True, False]  # type: ignore[misc]
        made = b"".join(piece for _, piece, _ in pieces)  # type: ignore[misc]
        assert made == polymux.convert_to_mp3(data, bitrate="64k").read()
        brought(worker, path, [b"this is no sound"])
        [failed] = worker.work(given)
        assert isinstance(failed, UnsupportedMediaError)
        assert failed.input_name == str(path).replace("\udcff", r"\xff")
    finally:
        worker.close()


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
    ("lines", "named"),
    [
        ('address = "ray://head.example:1"', "ray://"),
        ("min_replicas = 3", "max_replicas"),
        ("gpus = -1", "ray.gpus"),
        ("replicas = 1", "ray.replicas"),
        ("[ray.engines.chat]\nmax_concurrency = 1", "engines.chat.max_concurrency"),
        ('[ray.engines.chat]\ngpus = "all"', "engines.chat.gpus.*all"),
    ],
)
def test_what_is_wrong_in_settings(tmp_path: Path, lines: str, named: str) -> None:
    file = tmp_path / "polymux.toml"
    file.write_text(f"[ray]\n{lines}\n")
    with pytest.raises(InvalidRequestError, match=named):
        read_settings(file)
