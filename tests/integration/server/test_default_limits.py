"""The default limits: sizes, times and counts, as reported and as enforced."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from polymux.engines.chat import backend
from polymux.runtime.build import backends_of
from polymux.runtime.settings import Limits, StoreSettings
from polymux.server.routes.operations import OperationEndpoint
from polymux.server.settings.settings import ServerSettings
from support.polymux_server import PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MIB, GIB = 1 << 20, 1 << 30
HOUR_S = 3600.0
EVERY = tuple(one.name for one in contract.operations())
#: Maximum form size per operation, and maximum JSON size if it is not 1 MiB.
OF_FORMS = {
    "transcribe": 2 * GIB, "convert_to_mp3": 2 * GIB, "generate_image": 20 * MIB,
    "upscale_image": 20 * MIB, "read_text": 20 * MIB, "identify_song": 30 * MIB,
    "generate_video": 200 * MIB, "generate_music": 200 * MIB,
}  # fmt: skip
OF_JSON = {"chat": 32 * MIB, "free_chat": 32 * MIB}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("caps") / "s"
    with PolymuxServer(folder, lambda: [Scripted(operations=EVERY)]) as running:
        yield running


def caps() -> Iterator[tuple[contract.Operation, str, int]]:
    """Every operation with every encoding that it accepts and the size limit."""
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
    """With Expect: 100-continue, exactly the limit is accepted and one byte more rejected."""
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
    """Four hours and 40 megapixels, in the media process. Images in chats have the same limit."""
    settings = ServerSettings(store=StoreSettings(tmp_path / "s"))
    media: Any = next(one for one in backends_of(settings) if one.name == "media")
    options = media._inner._options
    assert options["limits"]["duration_s"] == 4 * HOUR_S
    assert options["max_pixels"] == 40_000_000
    assert Limits().image_bytes == backend._PICTURE_BYTES
