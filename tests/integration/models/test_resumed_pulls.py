"""Interrupted pulls: the next one resumes, but never mixes different files."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING

import pytest
from polymux.errors import ConnectionLostError
from polymux.fetch.fetcher import FetchPolicy
from polymux.models import download
from polymux.models.errors import ModelError
from polymux.models.folder import ModelsFolder
from support.http_server import Exchange, Server
from support.models import contents, sha256
from support.range_server import RangeServer
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    from polymux.models.folder import Installed

DATA = b"GGUF" + bytes(range(251)) * 1200
OTHER = b"GGUF" + bytes(reversed(range(251))) * 1300
#: The length of the first response.
HALF = len(DATA) // 2
REST = f"bytes={HALF}-"


class Place:
    """A models folder, and a server with one file."""

    def __init__(self, folder: ModelsFolder, web: Server, there: RangeServer) -> None:
        self.folder, self.web, self.there = folder, web, there
        self.reports: list[tuple[int, int | None]] = []
        self.unfinished = folder.path / ".mine.part" / "unfinished"

    def pull(self, path: str = "/m.gguf", data: bytes = DATA) -> Installed:
        self.reports.clear()
        model = download.of_url("mine", self.web.url(path), sha256(data))
        policy = FetchPolicy(allowed_hosts=(self.web.authority,))
        return download.pull(
            model, self.folder, policy=policy, on_progress=lambda _, *one: self.reports.append(one)
        )

    def break_off(self, at: int = HALF) -> None:
        """Start a pull that is interrupted after `at` bytes."""
        self.there.stops = [at]
        with pytest.raises(ConnectionLostError):
            self.pull()
        assert self.kept() == self.there.data[:at]

    def kept(self) -> bytes | None:
        """The stored part of the file, or None."""
        path = self.unfinished / sha256(DATA)
        return path.read_bytes() if path.exists() else None

    def check(self) -> None:
        """Check that the folder has the model and nothing else."""
        kept = contents(self.folder.path)
        assert kept.keys() == {"mine/mine.gguf", "mine/polymux-model.json"}
        assert kept["mine/mine.gguf"] == DATA


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    there = RangeServer(DATA)
    with Server(there) as web:
        yield Place(ModelsFolder(tmp_path / "models"), web, there)


def answering(status: int, body: bytes, *headers: str) -> Callable[[Exchange], Awaitable[None]]:
    async def answer(exchange: Exchange) -> None:
        await exchange.answer(status, body, *headers)

    return answer


def test_a_file_goes_on_where_it_broke_off(place: Place) -> None:
    place.break_off()
    assert place.folder.is_begun("mine")
    place.pull()
    place.check()
    assert place.there.asked == [("", ""), (REST, '"one"')]
    assert place.there.sent == len(DATA)
    # Progress starts at the stored length.
    assert place.reports[0] == (HALF, None)
    assert {total for _, total in place.reports[1:-1]} <= {len(DATA)}
    assert place.reports[-1][0] == len(DATA)
    assert min(done for done, _ in place.reports) == HALF


COUNT = len(DATA)
PART = f"Content-Range: bytes {HALF}-{COUNT - 1}/{COUNT}"
#: Case -> (next response, whether the whole file is requested again).
ANSWERS = {
    "no ranges": ((200, DATA), False),
    "another file": ((206, DATA[HALF:], PART, 'ETag: "two"'), True),
    "no place": ((206, DATA[HALF:]), True),
    "another place": ((206, DATA[HALF:], f"Content-Range: bytes 0-{COUNT - 1}/{COUNT}"), True),
    "another length": ((206, DATA[HALF:], f"Content-Range: bytes {HALF}-{COUNT - 1}/*5"), True),
    "beyond": ((206, DATA[HALF:], f"Content-Range: bytes {HALF}-{COUNT}/{COUNT}"), True),
    "encoded": ((206, DATA[HALF:], PART, "Content-Encoding: gzip"), True),
    "refused": ((412, b"", "Content-Range: bytes */7"), True),
    "out of range": ((416, b"", "Content-Range: bytes */7"), True),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_is_not_the_rest(place: Place, name: str) -> None:
    """A rejected range does not mean that the file is missing, so the whole file is requested."""
    answer, again = ANSWERS[name]
    if name == "another file":
        place.there.data = OTHER[: len(DATA)]
    place.break_off()
    place.there.data = DATA
    place.there.instead = answering(*answer)
    place.pull()
    place.check()
    assert place.there.asked[1:] == [(REST, '"one"'), ("", "")][: 1 + again]


def test_the_file_has_changed(place: Place) -> None:
    """If-Range returns the whole new file, which may be longer."""
    place.there.data = OTHER[: len(DATA) - 1000]
    place.break_off()
    place.there.data, place.there.etag = DATA, '"two"'
    place.pull()
    place.check()
    assert place.there.asked[1:] == [(REST, '"one"')]


def test_the_file_has_changed_and_nothing_says_so(place: Place) -> None:
    """The hash check fails, nothing is kept, and the next pull starts from the beginning."""
    place.there.data, place.there.etag = OTHER[: len(DATA)], ""
    place.break_off()
    place.there.data = DATA
    with pytest.raises(ModelError, match="SHA-256"):
        place.pull()
    assert contents(place.folder.path) == {}
    assert not place.folder.is_begun("mine")
    place.pull()
    place.check()
    assert place.there.asked[1:] == [(REST, ""), ("", "")]


def test_from_another_place(place: Place) -> None:
    """The hash is equal, but the other server does not know the ETag."""
    place.break_off()
    place.there.etag = '"mirror"'
    place.pull("/mirror/m.gguf")
    place.check()
    assert place.there.asked[1:] == [(REST, "")]
    assert place.there.sent == len(DATA)


def test_whole_but_never_looked_at(place: Place) -> None:
    """The pull was killed after the last byte. No request is needed to complete it."""
    place.break_off(len(DATA) - 1)
    (place.unfinished / sha256(DATA)).write_bytes(DATA)
    place.pull()
    place.check()
    assert len(place.there.asked) == 1


@pytest.mark.parametrize("damage", ["other bytes", "longer"])
def test_what_is_there_is_damaged(place: Place, damage: str) -> None:
    place.break_off(len(DATA) - 1)
    data = DATA[:-1] + b"?" if damage == "other bytes" else DATA + b"?"
    (place.unfinished / sha256(DATA)).write_bytes(data)
    if damage == "other bytes":
        with pytest.raises(ModelError, match="SHA-256"):
            place.pull()
        assert place.kept() is None
    place.pull()
    place.check()
    assert place.there.asked[1:] == [("", "")]


@pytest.mark.parametrize(
    "note",
    [
        None, b"", b"[]", b"{}", b"[" * 100_000, b"\xff",
        b'{"url_sha256": 5, "etag": "", "bytes": null}',
        b'{"url_sha256": "", "etag": null, "bytes": null}',
        b'{"url_sha256": "", "etag": "", "bytes": -1}',
        b'{"url_sha256": "", "etag": "", "bytes": true}',
        b'{"url_sha256": "", "etag": "\\ud800", "bytes": 1}',
    ],
)  # fmt: skip
def test_a_note_that_is_none(place: Place, note: bytes | None) -> None:
    place.break_off()
    path = place.unfinished / f"{sha256(DATA)}.json"
    assert json.loads(path.read_bytes())["etag"] == '"one"'
    path.unlink() if note is None else path.write_bytes(note)
    place.pull()
    place.check()
    assert place.there.asked[1:] == [("", "")]


def test_nothing_holds_the_query_of_an_address(place: Place) -> None:
    """The query may contain a secret, and other users may read the folder."""
    path = "/m.gguf?token=very-secret#part"
    place.there.stops = [HALF]
    with pytest.raises(ConnectionLostError):
        place.pull(path)
    assert not [one for one, data in contents(place.folder.path).items() if b"secret" in data]
    made = place.pull(path)
    place.check()
    assert place.there.asked[1:] == [(REST, '"one"')]
    assert not [one for one, data in contents(place.folder.path).items() if b"secret" in data]
    assert made.manifest.source == place.web.url("/m.gguf")
    place.folder.remove("mine")
    with pytest.raises(ModelError, match=r"/m\.gguf") as failed:
        place.pull("/m.gguf?token=very-secret", b"another")
    assert "secret" not in str(failed.value)


def test_only_what_belongs_there_stays(place: Place, tmp_path: Path) -> None:
    place.break_off()
    victim = tmp_path / "victim"
    victim.mkdir()
    (victim / "file").write_bytes(b"somebody's")
    (place.unfinished / "old").write_bytes(b"of another registry")
    (place.unfinished / "link").symlink_to(victim)
    (place.unfinished / "folder").mkdir()
    kept = place.unfinished / sha256(DATA)
    kept.rename(victim / "part")
    kept.symlink_to(victim / "part")
    place.there.stops = [5]
    with pytest.raises(ConnectionLostError):
        place.pull()
    assert {one.name for one in place.unfinished.iterdir()} == {kept.name, f"{kept.name}.json"}
    assert place.kept() == DATA[:5]
    assert contents(victim) == {"file": b"somebody's", "part": DATA[:HALF]}
    place.folder.remove("mine")
    place.folder.path.joinpath(".mine.part").mkdir()
    place.unfinished.symlink_to(victim)
    place.pull()
    place.check()
    assert contents(victim).keys() == {"file", "part"}


def test_two_at_once(place: Place) -> None:
    place.there.stops, place.there.stalls = [HALF], True
    outcome: list[BaseException] = []

    def first() -> None:
        try:
            place.pull()
        except BaseException as error:
            outcome.append(error)

    thread = threading.Thread(target=first)
    thread.start()
    until(lambda: place.kept() == DATA[:HALF])
    for work in (place.pull, lambda: place.folder.remove("mine")):
        with pytest.raises(ModelError, match=r"\bmine\b"):
            work()
    assert place.kept() == DATA[:HALF]
    place.web.call(place.web.requests[0].writer.close)
    thread.join(30)
    assert isinstance(outcome[0], ConnectionLostError)
    place.pull()
    place.check()
    assert place.there.sent == len(DATA)
