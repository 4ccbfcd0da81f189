"""Invalid and hostile forms are rejected quickly with bounded resources. Case IDs: testing.md."""

from __future__ import annotations

import asyncio
import hashlib
import re
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import AsyncMock

import pytest
from polymux.runtime.settings import Limits
from polymux.server.http.body import read_form
from polymux.service.model import Upload
from support.conversions import wav
from support.polymux_server import CONVERT, Box, PolymuxServer, form, read_answer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.service.model import OperationRequest, OperationResult, ProgressSink

TYPE = "multipart/form-data; boundary=bbbb"


def hash_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


class Hashing(Scripted):
    """Records a hash of every file."""

    def __init__(self) -> None:
        super().__init__(operations=["convert_to_mp3", "transcribe"], max_concurrency=4)
        self.hashes: list[str] = []

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        for value in work.values.values():
            if isinstance(value, Upload):
                self.hashes.append(hash_of(value.path.read_bytes()))
        return await super().run(work, sink)


class HashingBox(Box):
    backend: Hashing


@pytest.fixture(scope="module")
def box() -> HashingBox:
    return HashingBox()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, box: HashingBox) -> Iterator[PolymuxServer]:
    def make() -> list[Scripted]:
        box.backend = Hashing()
        return [box.backend]

    folder = tmp_path_factory.mktemp("forms") / "s"
    with PolymuxServer(folder, make) as running:
        yield running
        assert list((folder / "drafts").iterdir()) == []


def send(server: PolymuxServer, body: bytes, kind: str = TYPE, path: str = CONVERT) -> Any:
    return server.ask("POST", path, body, [("Content-Type", kind)])


GOOD, _ = form(("file", ("a.wav", b"RIFF")))


@pytest.mark.parametrize(
    ("kind", "status"),
    [("multipart/form-data", 415), ("multipart/form-data; boundary=", 415),
     ('multipart/form-data; boundary=""', 415),
     (f"multipart/form-data; boundary={'b' * 71}", 400),
     (f"multipart/form-data; boundary={'b' * 10_000}", 400),
     ("multipart/form-data; boundary=b b b b", 400),
     ('multipart/form-data; boundary="bbbb', 400),
     ("multipart/form-data; boundary='bbbb'", 400),
     ("multipart/form-data; boundary=bb\rbb", 400),
     ('multipart/form-data; !="' + "\\" * 60, 415), ("multipart/mixed; boundary=bbbb", 415),
     ("application/x-www-form-urlencoded", 415),
     # Servers and proxies disagree which of two boundaries applies.
     ("multipart/form-data; boundary=cccc; boundary=bbbb", 400),
     ("multipart/form-data; boundary=bbbb; Boundary=cccc", 400),
     ("multipart/form-data; boundary=bbbb" + ";" * 60_000, 400),
     ("multipart/form-data; boundary=bbbb" + "; a=b" * 20, 400)],
)  # fmt: skip
def test_types_that_are_no_form_s(server: PolymuxServer, kind: str, status: int) -> None:
    """Cases M01 to M03 and M20."""
    assert send(server, GOOD, kind).status == status


@pytest.mark.parametrize("boundary", ["b" * 70, "a b c", "a'()+_,-./:=?z", "--"])
def test_boundaries_of_every_letter(server: PolymuxServer, box: HashingBox, boundary: str) -> None:
    """All characters of RFC 2046, 5.1.1, in quotes, with at most 70 characters (M02)."""
    body, _ = form(("file", ("a.wav", b"--\r\n" * 9)), boundary=boundary)
    assert send(server, body, f'multipart/form-data; boundary="{boundary}"').status == 200
    assert box.backend.hashes[-1] == hash_of(b"--\r\n" * 9)


@pytest.mark.parametrize("cut", [0.02, 0.2, 0.99])
def test_forms_that_are_cut(server: PolymuxServer, cut: float) -> None:
    """The Content-Length is correct, but the form is incomplete (M04 and M05)."""
    body, _ = form(("vbr_quality", "3"), ("file", ("a.wav", b"x" * 2000)))
    assert send(server, body[: int(len(body) * cut)]).status == 400
    unended, _ = form(("file", ("a.wav", b"x" * 2000)), end=False)
    assert send(server, unended).status == 400


def test_a_field_of_100_mebibytes(server: PolymuxServer) -> None:
    """Returns 413 at the field's limit, long before its end (M12)."""
    start = b'--bbbb\r\nContent-Disposition: form-data; name="start"\r\n\r\n'
    fields = [("Content-Type", TYPE), ("Content-Length", str(len(start) + (100 << 20)))]
    sent = 0
    with server.connect() as connection:
        connection.sendall(server.written("POST", CONVERT, start, fields))
        try:
            while sent < 100 << 20:
                connection.sendall(b"1" * (1 << 20))
                sent += 1 << 20
        except OSError:
            pass  # The server has answered and closed the connection.
        answer = read_answer(connection)
    assert sent < 50 << 20
    assert answer.status == 413
    assert (answer.json()["code"], "start" in answer.json()["error"]) == ("too_large", True)


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
    """Cases M13, M15 and M29."""
    body, _ = form(*fields)
    answer = send(server, body)
    assert answer.status == 400
    assert word in answer.json()["error"]


def test_unknown_parts_are_left_out_and_logged(server: PolymuxServer) -> None:
    """Case M14."""
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
     'form-data; name="file"; name="url"; filename="a.wav"',
     'form-data; name="file"; filename="a.wav"; FileName="b.wav"',
     'form-data; name="file"; filename="a.wav\r\nContent-Disposition: form-data; name="url"',
     'form-data; name="file"; filename="a.wav"\r\ncontent-disposition: form-data; name="file"; '
     'filename="b.wav"',
     'form-data; name="file"; filename="a.wav"\r\nContent-Type: a/b\r\nContent-Type: a/b',
     'form-data; name="file"; filename="a' + "a" * 5000 + '"',
     'form-data; name="file"; filename="a.wav"' + "; a" * 20,
     'form-data; name="file"; filename="a.wav"' + ";" * 20,
     'form-data; name="file"; filename="a"b.wav"',
     "form-data; name*=UTF-8''file; filename=\"a.wav\"",
     "form-data", 'form-data; name="\xff"; filename="a"', "x" * 100],
)  # fmt: skip
def test_dispositions_that_smuggle(server: PolymuxServer, disposition: str) -> None:
    """Only simple Content-Disposition forms are accepted (M16)."""
    part = f"--bbbb\r\nContent-Disposition: {disposition}\r\n\r\nx\r\n--bbbb--\r\n"
    assert send(server, part.encode("latin-1")).status == 400


def test_dispositions_that_are_plain(server: PolymuxServer, box: HashingBox) -> None:
    """The forms that real clients send (M16)."""
    # The encoding header is ignored (M17).
    coded = "\r\nContent-Transfer-Encoding: base64"
    for disposition, name in (
        ('form-data; name="file"; filename="a;b.wav"', "a;b.wav"),
        ("Form-Data;name=file;FILENAME=a.wav;", "a.wav"),
        (r'form-data; name="file" ; filename="a\"b\\c.wav"', 'a"b\\c.wav'),
        (r'form-data; name="file"; filename="C:\music\a.wav"', "a.wav"),
        ('form-data; name="file"; filename="a.wav"; filename*=utf-8\'\'b.wav', "a.wav"),
        (f'form-data; name="file"; filename="a.wav"{coded}', "a.wav"),
    ):
        part = f"--bbbb\r\nContent-Disposition: {disposition}\r\n\r\nx\r\n--bbbb--\r\n"
        assert send(server, part.encode()).status == 200, disposition
        assert box.backend.began[-1].values["file"].file_name == name
        assert box.backend.hashes[-1] == hash_of(b"x")


@pytest.mark.parametrize("kind", ["audio/wav", "application/octet-stream", "Image/PNG; a=b"])
def test_a_file_without_a_name(server: PolymuxServer, box: HashingBox, kind: str) -> None:
    """Its content type tells it from text (RFC 7578, 4.2)."""
    data = b"RIFF\xff\xfe"
    head = f"--bbbb\r\nContent-Disposition: form-data; name=file\r\nContent-Type: {kind}\r\n\r\n"
    assert send(server, head.encode() + data + b"\r\n--bbbb--\r\n").status == 200
    assert box.backend.began[-1].values["file"].file_name == "file"
    assert box.backend.hashes[-1] == hash_of(data)


def test_an_empty_file_without_a_name(server: PolymuxServer) -> None:
    """It means that no file was chosen, so the request is valid; this server has no engine."""
    head = b"--bbbb\r\nContent-Disposition: form-data; name=mask\r\nContent-Type: image/png\r\n\r\n"
    body, _ = form(("prompt", "x"), boundary="bbbb")
    path = "/api/v1/modelhost/imagegeneration?model=lorenzomarines/astra"
    assert send(server, head + b"\r\n" + body, path=path).json()["code"] == "no_backend"


def test_a_file_without_a_name_and_a_type(server: PolymuxServer) -> None:
    """The error says how to send it."""
    head = b"--bbbb\r\nContent-Disposition: form-data; name=file\r\n\r\n"
    answer = send(server, head + b"RIFF\xff\xfe\r\n--bbbb--\r\n")
    assert (answer.status, answer.json()["param"]) == (400, "file")
    assert "filename=" in answer.json()["error"]


INNER, _ = form(("file", ("b.wav", b"y")), boundary="inner")
HOSTILE = [
    INNER,
    b"\r" * (1 << 20),
    b"\r\n--" * (1 << 18),
    b"\r\n--bbb\r" * 100_000,
    b"-" * (1 << 20),
]


@pytest.mark.parametrize("data", HOSTILE)
def test_bytes_that_look_like_boundaries(
    server: PolymuxServer, box: HashingBox, data: bytes
) -> None:
    """The file arrives exactly, even if it is a form (M18, M19). Speed: test_hostile_bodies.py."""
    body, _ = form(("file", ("a.wav", data)))
    assert send(server, body).status == 200
    assert box.backend.hashes[-1] == hash_of(data)


def test_boundaries_at_every_edge(server: PolymuxServer) -> None:
    """The result does not depend on how the form is split into reads (M18)."""
    data = b"\r\n--bbb\r\r\n--bbbX\n--bbbb-" * 3
    body, _ = form(("bitrate", "64k"), ("file", ("a.wav", data)), ("start", "1"))
    store = server.state.service.store.media
    pieces = [(body[:at], body[at:]) for at in range(1, len(body))]
    pieces.append(tuple(bytes([one]) for one in body))  # type: ignore[arg-type]

    async def read() -> None:
        for some in pieces:
            messages = [{"type": "http.request", "body": one, "more_body": True} for one in some]
            receive = AsyncMock(side_effect=[*messages, {"type": "http.request"}])
            with closing(await read_form(receive, TYPE, len(body), Limits(), store, "it")) as found:
                (_, bitrate), (_, file), (_, start) = found.fields
                assert (bitrate, start, file.path.read_bytes()) == ("64k", "1", data)

    asyncio.run(read())


@pytest.mark.parametrize(
    ("kind", "text", "status"),
    [
        ("", b"\xff\xfe1", 400),
        ("text/plain; charset=utf-16", "1".encode("utf-16"), 400),
        ("text/plain; charset=utf-7", b"+ADE-", 400),
        ("text/plain; charset=utf-7", b"1", 200),
        ("application/json", b'"1"', 400),
    ],
)
def test_texts_that_are_no_utf8(
    server: PolymuxServer, box: HashingBox, kind: str, text: bytes, status: int
) -> None:
    """Texts of a form must be UTF-8, whatever charset the form declares (M21)."""
    head = f"Content-Type: {kind}\r\n" if kind else ""
    part = (
        b'--bbbb\r\nContent-Disposition: form-data; name="start"\r\n%s\r\n' % head.encode() + text
    )
    charset, _ = form(("_charset_", "utf-16"), end=False)
    body, _ = form(("file", ("a.wav", b"x")))
    answer = send(server, charset + part + b"\r\n" + body)
    assert answer.status == status, answer.body
    if status == 200:
        assert box.backend.began[-1].values["start"] == "1"


NAMES = ["../../etc/passwd", "..\\..\\x", "a\0.mp3", "n" * 4096, "", "..", "-i", "`touch canary`",
         "\u202egpj.exe", "a%0d%0aX: y", "a\r\nX: y", "\xff\xfe"]  # fmt: skip


@pytest.fixture(scope="module")
def converting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """A server with real conversions."""
    folder = tmp_path_factory.mktemp("names")
    with PolymuxServer(folder / "s") as running:
        yield running
    assert [one.name for one in folder.iterdir()] == ["s"]


@pytest.mark.parametrize("name", NAMES)
def test_names_are_names(converting: PolymuxServer, name: str) -> None:
    """The file is stored under a random name, and its original name cannot break a header (M27)."""
    here = {one.name for one in Path.cwd().iterdir()}
    folder = converting.settings.store.folder
    body, headers = form(("file", (name, wav(0.1))))
    body = body.replace(b"\xc3\xbf\xc3\xbe", b"\xff\xfe")  # Invalid UTF-8 instead of its encoding.
    answer = converting.ask("POST", CONVERT, body, headers)
    assert answer.status in (200, 400), answer.body
    if answer.status == 200:
        link = answer.json()["response"].removeprefix(converting.url)
        assert re.fullmatch(r"/media/[0-9a-f]{40}\.mp3", link.partition("?")[0])
        got = converting.ask("GET", link, key=None)
        assert got.status == 200
        names = [one.partition(":")[0].lower() for one in got.lines]
        assert "x" not in names
        assert len(names) == len(set(names))
        header = got.headers["content-disposition"]
        plain = re.match(r'inline; filename="([A-Za-z0-9._ -]*)"; ', header)
        assert plain, header
        assert "/" not in plain[1]
        assert not re.search(r"%0[0-9ad]|%2f", header.partition("filename*=")[2], re.IGNORECASE)
    assert {one.name for one in Path.cwd().iterdir()} == here
    assert all(
        re.fullmatch(r"[0-9a-f]{40}\.mp3", one.name) for one in (folder / "media").glob("*/*")
    )


def test_a_file_of_no_bytes(server: PolymuxServer, box: HashingBox) -> None:
    """The error names the empty file (M29). A file field without a selected file is ignored."""
    before = len(box.backend.hashes)
    answer = send(server, form(("file", ("a.wav", b"")))[0])
    body = answer.json()
    assert (answer.status, body["param"], "a.wav" in body["error"]) == (400, "file", True)
    answer = send(server, form(("file", ("", b"")))[0])
    assert answer.status == 400
    assert "param" not in answer.json()
    assert len(box.backend.hashes) == before
    assert send(server, form(("file", ("a.wav", b"x")), ("other", ("", b"")))[0]).status == 200


def test_files_at_every_edge(server: PolymuxServer, box: HashingBox) -> None:
    """Boundaries at the end of every read (M18)."""
    for size in (1, 65_535, 65_536, 262_144, 262_145):
        data = b"z" * size
        body, _ = form(("file", ("a.wav", data)))
        answer = send(server, body)
        assert answer.status == 200, size
        assert box.backend.hashes[-1] == hash_of(data)
