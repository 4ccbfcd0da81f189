"""Streams of upstreams that arrive in odd pieces or take long. Case IDs: testing.md."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from polymux.runtime.settings import Limits
from servers import steps
from support.polymux_server import CHAT
from support.upstreams import (
    ASKED,
    FREE,
    MESSAGES,
    chat,
    chunk,
    event,
    events_of,
    gateway,
    upstream,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer
    from support.polymux_server import PolymuxServer

#: The upstream's timeout between two bytes of a stream.
IDLE_S = 2.5
CHUNKS = [chunk("Grüß"), chunk(" 🎵\n\n"), chunk("", "stop")]
#: Includes all fields that may appear between events.
EVENTS = [event(json.dumps(one, ensure_ascii=False)) for one in CHUNKS]
STREAM = b": hello\n\nretry: 9\nid: 1\n" + b"".join([*EVENTS, event("[DONE]")])
ENDS = {"LF": b"\n", "CRLF": b"\r\n", "CR": b"\r"}


@pytest.fixture(scope="module")
def server(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("pieces")
    models = {"fast": "their-model", "gpt-4o": "their-model"}
    upstreams = {"groq": upstream(folder, bad.url, models=models, idle_s=IDLE_S)}
    with gateway(folder, upstreams) as running:
        yield running


def received_events(server: PolymuxServer, path: str) -> list[object]:
    asked = dict(ASKED) if path == CHAT else {"messages": MESSAGES}
    return events_of(server.json(path, asked | {"stream": True}))


@pytest.mark.parametrize("end", ENDS)
def test_every_split(server: PolymuxServer, bad: MisbehavingServer, end: str) -> None:
    """Splits at every byte, including within line ends and characters (C24)."""
    data = STREAM.replace(b"\n", ENDS[end])
    for at in range(1, len(data), 9 if end == "LF" else 23):
        pieces = steps.send(data[:at]), steps.sleep(0.001), steps.send(data[at:])
        bad.script(steps.event_stream(), *pieces)
        assert received_events(server, CHAT) == [*CHUNKS, "[DONE]"], at


@pytest.mark.parametrize(("path", "size_bytes"), [(CHAT, 1), (FREE, 3)])
def test_pieces_of_one_length(
    server: PolymuxServer, bad: MisbehavingServer, path: str, size_bytes: int
) -> None:
    """Pieces of a few bytes, which also split characters (C24)."""
    bad.script(steps.event_stream(), steps.split(size_bytes, 0.0005), steps.send(STREAM))
    found = received_events(server, path)
    if path == CHAT:
        assert found == [*CHUNKS, "[DONE]"]
    else:
        assert [one["response"] for one in found if isinstance(one, dict)] == ["Grüß", " 🎵\n\n"]


def test_a_slow_stream_is_no_silent_one(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """A stream may last as long as data continues to arrive (C37)."""
    pieces = [chunk(f"{number} ") for number in range(4)]
    play = [step for one in pieces for step in (steps.sleep(IDLE_S / 2), steps.send(event(one)))]
    bad.script(steps.event_stream(), *play, steps.send(event("[DONE]")))
    assert events_of(chat(server, stream=True)) == [*pieces, "[DONE]"]


@pytest.mark.parametrize(("max_bytes", "comes"), [(1 << 20, False), (2 << 20, True)])
def test_how_long_an_event_may_be(
    bad: MisbehavingServer, tmp_path: Path, max_bytes: int, comes: bool
) -> None:
    """The limits for events from an upstream and to a client are two settings."""
    found = upstream(tmp_path, bad.url, event_bytes=max_bytes)
    long = chunk("x" * (3 << 19))
    bad.script(
        steps.event_stream(), *(steps.send(event(one)) for one in (chunk("a"), long)),
        steps.send(event("[DONE]")), times=2,
    )  # fmt: skip
    for sent in (1 << 20, 2 << 20):
        with gateway(tmp_path / f"{sent}", {"groq": found}, limits=Limits(event_bytes=sent)) as one:
            first, *rest = events_of(chat(one, stream=True))
        assert first == chunk("a")
        if comes and sent > max_bytes // 2:
            assert rest == [long, "[DONE]"]
        else:
            (failure,) = rest
            assert failure["error"]["code"] == ("engine_failed" if comes else "upstream_failed")
