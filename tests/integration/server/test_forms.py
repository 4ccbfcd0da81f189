"""Forms as nobody's program should send them: refused, bounded, and soon."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import pytest
from polymux.service.work import Upload
from support.polymux_server import CONVERT, Box, PolymuxServer, form
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TYPE = "multipart/form-data; boundary=bbbb"


@pytest.fixture(scope="module")
def box() -> Box:
    return Box()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[Scripted]:
        box.backend = Scripted(operations=["convert_to_mp3", "transcribe"], slots=4)
        return [box.backend]

    folder = tmp_path_factory.mktemp("forms") / "s"
    with PolymuxServer(folder, make) as running:
        yield running
        assert list((folder / "drafts").iterdir()) == []


def send(
    server: PolymuxServer, body: bytes, kind: str = TYPE, path: str = CONVERT, most_s: float = 2.0
) -> Any:
    began = time.monotonic()
    answer = server.ask("POST", path, body, [("Content-Type", kind)])
    assert time.monotonic() - began < most_s
    return answer


GOOD, _ = form(("file", ("a.wav", b"RIFF")))


@pytest.mark.parametrize(
    "kind",
    ["multipart/form-data", "multipart/form-data; boundary=", "multipart/form-data; boundary=\"\"",
     f"multipart/form-data; boundary={'b' * 71}", f"multipart/form-data; boundary={'b' * 10_000}",
     'multipart/form-data; !="' + "\\" * 60, "multipart/mixed; boundary=bbbb",
     "application/x-www-form-urlencoded"],
)  # fmt: skip
def test_types_that_are_no_form_s(server: PolymuxServer, kind: str) -> None:
    """M01 to M03, M20."""
    assert send(server, GOOD, kind).status in (400, 415)


@pytest.mark.parametrize("cut", [0.2, 0.5, 0.9, 0.99])
def test_forms_that_are_cut(server: PolymuxServer, cut: float) -> None:
    """M04, M05: the right length of a body that ends too soon."""
    body, _ = form(("vbr_quality", "3"), ("file", ("a.wav", b"x" * 2000)))
    assert send(server, body[: int(len(body) * cut)]).status == 400
    unended, _ = form(("file", ("a.wav", b"x" * 2000)), end=False)
    assert send(server, unended).status == 400


def test_much_before_and_behind(server: PolymuxServer) -> None:
    """M07, M08."""
    assert send(server, b"\r\n" * (4 << 20) + GOOD, most_s=5).status in (200, 400)
    assert send(server, GOOD + b"x" * (4 << 20), most_s=5).status in (200, 400)


def test_headers_of_parts(server: PolymuxServer) -> None:
    """M09, M10."""
    for head in ("X: y\r\n" * 20_000, f"X: {'y' * (8 << 20)}\r\n"):
        part = f'--bbbb\r\nContent-Disposition: form-data; name="a"\r\n{head}\r\nv\r\n--bbbb--\r\n'
        assert send(server, part.encode(), most_s=3).status == 400


def test_many_parts_and_long_fields(server: PolymuxServer) -> None:
    """M11, M12."""
    part = b'--bbbb\r\nContent-Disposition: form-data; name="a"\r\n\r\n\r\n'
    assert send(server, part * 100_000 + b"--bbbb--\r\n", most_s=5).status in (400, 413)
    body, _ = form(("start", "1" * (2 << 20)), ("file", ("a.wav", b"x")))
    assert send(server, body).status in (400, 413)


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ([("file", ("a.wav", b"x")), ("file", ("b.wav", b"y"))], "file"),
        ([("bitrate", "64k"), ("bitrate", "96k"), ("file", ("a.wav", b"x"))], "bitrate"),
        ([("file", "a text")], "file"),
        ([("bitrate", ("a.txt", b"64k")), ("file", ("a.wav", b"x"))], "bitrate"),
        ([("bitrate", "64k")], "file"),
        ([], "file"),
        ([("file", ("a.wav", b"x")), ("url", "http://files.example/a")], "url"),
    ],
)
def test_fields_that_do_not_fit(
    server: PolymuxServer, fields: list[tuple[str, Any]], word: str
) -> None:
    """M13, M15, M29."""
    body, _ = form(*fields)
    answer = send(server, body)
    assert answer.status == 400
    assert word in answer.json()["error"]


def test_unknown_parts_are_left_out_and_said(server: PolymuxServer) -> None:
    """M14."""
    body, _ = form(("other", "x"), ("thing", ("a.bin", b"y" * 1000)), ("file", ("a.wav", b"x")))
    answer = send(server, body)
    assert answer.status == 200
    [job] = server.ask("GET", "/api/v1/predictions").json()["results"][:1]
    assert "other" in job["logs"]
    many, _ = form(*((f"x{n}", "y") for n in range(900)), ("file", ("a.wav", b"x")))
    assert send(server, many).status in (200, 400)


@pytest.mark.parametrize(
    "disposition",
    ["form-data; name=\"file\"; filename*=UTF-8''x.wav", 'attachment; name="file"; filename="a"',
     "form-data", 'form-data; name="\xff"; filename="a"', "x" * 100],
)  # fmt: skip
def test_dispositions_that_smuggle(server: PolymuxServer, disposition: str) -> None:
    """M16: only the plain forms count."""
    part = f"--bbbb\r\nContent-Disposition: {disposition}\r\n\r\nx\r\n--bbbb--\r\n"
    assert send(server, part.encode("latin-1")).status == 400


@pytest.mark.parametrize("coding", ["base64", "quoted-printable", "x"])
def test_transfer_encodings_of_parts_mean_nothing(
    server: PolymuxServer, box: Box, coding: str
) -> None:
    """M17: bytes are bytes."""
    part = (
        f'--bbbb\r\nContent-Disposition: form-data; name="file"; filename="a"\r\n'
        f"Content-Transfer-Encoding: {coding}\r\n\r\nAAAA\r\n--bbbb--\r\n"
    )
    assert send(server, part.encode()).status in (200, 400)
    upload = box.backend.began[-1].values["file"]
    assert isinstance(upload, Upload)
    assert upload.size_bytes == 4


@pytest.mark.parametrize("data", [b"\r" * (8 << 20), b"\r\n--" * (2 << 20), b"\r\n--bbb" * 900_000])
def test_bytes_that_look_like_boundaries(server: PolymuxServer, box: Box, data: bytes) -> None:
    """M18: exact, and at 2 MiB/s at the least."""
    body, _ = form(("file", ("a.wav", data)))
    assert send(server, body, most_s=4).status == 200
    assert box.backend.began[-1].values["file"].size_bytes == len(data)


def test_a_form_within_a_form(server: PolymuxServer, box: Box) -> None:
    """M19: the inner one is a file's bytes."""
    inner, _ = form(("file", ("b.wav", b"y")), boundary="inner")
    body, _ = form(("file", ("a.wav", inner, "multipart/mixed; boundary=inner")))
    assert send(server, body).status == 200
    assert box.backend.began[-1].values["file"].size_bytes == len(inner)


def test_texts_that_are_no_utf8(server: PolymuxServer) -> None:
    """M21."""
    part = b'--bbbb\r\nContent-Disposition: form-data; name="start"\r\n\r\n\xff\xfe1\r\n'
    body, _ = form(("file", ("a.wav", b"x")))
    assert send(server, part + body).status == 400


@pytest.mark.parametrize(
    "name",
    ["../../etc/passwd", "..\\..\\x", "/abs", "C:\\x", "a\0.mp3", "n" * 4096, "", ".", "..", "-i",
     "file:/etc/passwd", "concat:a", "a;$(touch c).mp3", "`id`", "%2e%2e%2f", "\u202egpj.exe",
     "a%0d%0aX: y"],
)  # fmt: skip
def test_names_are_names(server: PolymuxServer, tmp_path: Path, name: str) -> None:
    """M27: whatever a file is called, it is stored under a random name, and no header breaks."""
    body, _ = form(("file", (name, b"x")))
    answer = send(server, body)
    assert answer.status in (200, 400)
    if answer.status == 200:
        link = answer.json()["response"].removeprefix(server.url)
        got = server.ask("GET", link, key=None)
        assert got.status == 200
        assert "x" not in {one.partition(":")[0].lower() for one in got.lines}
    assert not (tmp_path / "c").exists()


def test_files_at_every_edge(server: PolymuxServer, box: Box) -> None:
    """M18: boundaries at the end of every piece that is read."""
    for size in (0, 1, 65_535, 65_536, 262_143, 262_144, 262_145, 1_048_576):
        body, _ = form(("file", ("a.wav", b"z" * size)))
        answer = send(server, body)
        assert answer.status == 200, size
        assert box.backend.began[-1].values["file"].size_bytes == size
