"""Caps as they are where nobody has set any: sizes, times and counts, told and in force."""

from __future__ import annotations

import re
from dataclasses import MISSING, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.downloads.settings import DownloadSettings
from polymux.engines.chat import backend
from polymux.fetch.fetcher import FetchLimits, FetchPolicy
from polymux.ray.settings import RaySettings
from polymux.runtime.build import backends_of
from polymux.runtime.settings import EngineSettings, Limits, StoreSettings
from polymux.runtime.upstream_settings import UpstreamSettings
from polymux.server.routes.operations import OperationEndpoint
from polymux.server.settings.settings import CompatSettings, ServerSettings
from polymux.songs.settings import SongSettings
from polymux.summaries.settings import SummaryOptions
from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
from polymux.upstreams.song_search.settings import SongSearchSettings
from support.polymux_server import PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
HOUR_S = 3600.0
EVERY = tuple(one.name for one in contract.operations())
#: Every group of settings; whoever adds one says it here too.
GROUPS: tuple[type[Any], ...] = (
    ServerSettings, Limits, StoreSettings, EngineSettings, UpstreamSettings, DownloadSettings,
    SummaryOptions, FetchLimits, SongSettings, SongRecognitionSettings, SongSearchSettings,
    RaySettings, FetchPolicy, CompatSettings,
)  # fmt: skip
#: The longest form of an operation, and the longest JSON where that is not a mebibyte.
OF_FORMS = {
    "transcribe": 2 * GIB, "convert_to_mp3": 2 * GIB, "generate_image": 20 * MIB,
    "upscale_image": 20 * MIB, "read_text": 20 * MIB, "identify_song": 30 * MIB,
    "generate_video": 200 * MIB, "generate_music": 200 * MIB,
}  # fmt: skip
OF_JSON = {"chat": 32 * MIB, "free_chat": 32 * MIB}
UNITS = {"KiB": KIB, "MiB": MIB, "GiB": GIB, "hours": HOUR_S, "minutes": 60.0, "day": 24 * HOUR_S,
         "megapixels": 1e6}  # fmt: skip


def numbers(kind: type[Any]) -> dict[str, float | None]:
    """The settings of a kind that are numbers, but such as depend on the machine."""
    return {
        one.name: one.default
        for one in fields(kind)
        if re.match(r"(int|float)\b", str(one.type)) and one.default is not MISSING
    }


def test_no_group_of_settings_is_left_out() -> None:
    groups = {one.default_factory for one in fields(ServerSettings)}
    assert {one for one in groups if is_dataclass(one)} <= set(GROUPS)


def told(kind: type[Any], name: str) -> float:
    """What its description says that it is by default."""
    text = " ".join((kind.__doc__ or "").split())
    found = re.search(rf" {name}: .*?Default: (a|[\d,]+(?:\.\d+)?)\b ?(\w+)?", text)
    assert found is not None, name
    number = 1.0 if found[1] == "a" else float(found[1].replace(",", ""))
    unit = 1000.0 if name.endswith("_ms") and found[2] == "s" else UNITS.get(found[2], 1.0)
    return number * unit


@pytest.mark.parametrize("kind", GROUPS, ids=lambda one: one.__name__)
def test_descriptions_tell_every_default(kind: type[Any]) -> None:
    given = {name: one for name, one in numbers(kind).items() if one is not None}
    assert {name: told(kind, name) for name in given} == given


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """With the default limits."""
    folder = tmp_path_factory.mktemp("caps") / "s"
    with PolymuxServer(folder, lambda: [Scripted(operations=EVERY)]) as running:
        yield running


def caps() -> Iterator[tuple[contract.Operation, str, int]]:
    """Each operation with each encoding that it takes, and the longest of that."""
    for operation in contract.operations():
        for encoding in sorted({one for some in operation.variants for one in some.accepts}):
            of_json = OF_JSON.get(operation.name, MIB)
            yield operation, encoding, of_json if encoding == "json" else OF_FORMS[operation.name]


@pytest.mark.parametrize(
    ("operation", "encoding", "max_bytes"),
    [pytest.param(*one, id=f"{one[0].name} {one[1]}") for one in caps()],
)
def test_caps_of_bodies(
    server: PolymuxServer, operation: contract.Operation, encoding: str, max_bytes: int
) -> None:
    """One of exactly the cap is asked to come, and one of a byte more is refused before it does."""
    endpoint = OperationEndpoint(server.state, operation)
    of_both = {"json": endpoint.max_json_bytes, "multipart": endpoint.max_form_bytes}
    assert of_both[encoding] == max_bytes
    kinds = {"json": "application/json", "multipart": "multipart/form-data; boundary=bbbb"}
    for length, status in ((max_bytes, b"100"), (max_bytes + 1, b"413")):
        lines = (
            f"POST {operation.path} HTTP/1.1", "Host: localhost", "Expect: 100-continue",
            f"Authorization: Bearer {server.key}", f"Content-Type: {kinds[encoding]}",
            f"Content-Length: {length}", "", "",
        )  # fmt: skip
        with server.connect() as connection:
            connection.sendall("\r\n".join(lines).encode())
            assert connection.recv(12) == b"HTTP/1.1 " + status


def test_caps_of_what_is_in_them(tmp_path: Path) -> None:
    """Four hours and 40 megapixels reach the process that opens files; pictures of chats too."""
    settings = ServerSettings(store=StoreSettings(tmp_path / "s"))
    media: Any = next(one for one in backends_of(settings) if one.name == "media")
    options = media._inner._options
    assert options["limits"]["duration_s"] == 4 * HOUR_S
    assert options["max_pixels"] == 40_000_000
    assert Limits().image_bytes == backend._PICTURE_BYTES
