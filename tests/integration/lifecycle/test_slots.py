"""Several clients and one place at work: who waits, in what order, and who is told to come back."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

from polymux.engines.process.supervisor import EngineBackend
from polymux.runtime.settings import Limits
from support.engines import FAMILY
from support.polymux_server import CHAT, PolymuxServer, begun, read_until
from support.served import until
from support.supervised import QUICK

if TYPE_CHECKING:
    import socket
    from pathlib import Path

IMAGES = "/api/v1/modelhost/imagegeneration"


def one_place(folder: Path, queue: int = 32) -> PolymuxServer:
    def make() -> list[EngineBackend]:
        return [EngineBackend("one", FAMILY, ["chat", "generate_image"], supervision=QUICK)]

    return PolymuxServer(folder / "s", make, limits=Limits(queue=queue))


def said(what: str, **more: Any) -> dict[str, Any]:
    return {"model": "any", "messages": [{"role": "user", "content": what}], **more}


def chat(server: PolymuxServer, what: str, **more: Any) -> socket.socket:
    """A chat that is asked for, and whose answer nobody has read."""
    fields = [("Content-Type", "application/json")]
    return begun(server.address, server.key, CHAT, json.dumps(said(what, **more)).encode(), fields)


def stream(server: PolymuxServer) -> socket.socket:
    """A stream without end of which the first piece has come."""
    connection = chat(server, "endless", stream=True)
    read_until(connection, b"data: ")
    return connection


def test_the_order_is_kept(tmp_path: Path) -> None:
    """First come, first served, whole answers and jobs alike; who leaves leaves no gap."""
    notes = tmp_path / "notes"
    with one_place(tmp_path) as server, ThreadPoolExecutor(20) as pool:
        place = server.state.service.places["one"]
        first = stream(server)
        answers, leaving = [], []
        for number in range(12):
            before = place.waiting
            what = f"note {notes} {number}"
            if number % 4 == 3:
                leaving.append(chat(server, what))
            elif number % 4 == 1:
                answers.append(pool.submit(server.json, IMAGES, {"prompt": what}))
            else:
                answers.append(pool.submit(server.json, CHAT, said(what)))
            until(lambda before=before: place.waiting == before + 1)
        for one in leaving:
            one.close()
        until(lambda: place.waiting == 9, 2)
        first.close()
        assert [one.result(30).status for one in answers] == [200] * 9
        assert notes.read_text().split() == [str(n) for n in range(12) if n % 4 != 3]


def test_a_job_that_was_taken_is_not_refused_later(tmp_path: Path) -> None:
    """Twenty at once, and room for six: who was told 202 has a place, whoever else came."""
    with one_place(tmp_path, queue=5) as server, ThreadPoolExecutor(20) as pool:
        assert server.json(CHAT, said("echo warm")).status == 200
        prefer = [("Prefer", "respond-async")]
        asked = [pool.submit(server.json, IMAGES, {"prompt": "paint 1"}, prefer) for _ in range(20)]
        answers = [one.result(60) for one in asked]
        assert {one.status for one in answers} == {202, 503}
        taken = [one.json()["id"] for one in answers if one.status == 202]
        assert len(taken) >= 6
        for job in taken:
            path = f"/api/v1/predictions/{job}"
            until(lambda path=path: "completed_at" in server.ask("GET", path).json(), 30)
            assert server.ask("GET", path).json()["status"] == "succeeded"
        place = server.state.service.places["one"]
        assert (place.running, place.waiting, place.reserved) == (0, 0, 0)
