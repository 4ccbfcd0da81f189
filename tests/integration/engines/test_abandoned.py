"""Work that nobody waits for and that does not stop: its process ends, and costs others little."""

from __future__ import annotations

import asyncio
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.engines.chat.schemas import MAX_BYTES, MAX_CHOICES, check_schemas
from polymux.engines.media.engine import DECODE_AUDIO, MEASURE_SOUND
from polymux.engines.process.supervisor import EngineBackend
from polymux.errors import BadRequestError
from polymux.service.model import OperationRequest, ProgressSink, Upload
from polymux.service.store import Store
from support.conversions import wav
from support.supervised import QUICK, asked, engine, go, until

if TYPE_CHECKING:
    from pathlib import Path


def test_two_that_do_not_stop_do_not_wait_for_each_other(tmp_path: Path) -> None:
    async def body() -> None:
        async with engine(tmp_path, max_concurrency=2) as (service, backend):
            deaf = [service.stream(asked("deaf 30", stream=True)) for _ in range(2)]
            for one in deaf:
                await anext(one)
            pid = backend.process and backend.process.pid
            began = time.monotonic()
            await asyncio.gather(*(one.aclose() for one in deaf))
            assert time.monotonic() - began < 2
            assert service.places["faulty"].running == 0
            assert (await service.call(asked("echo x"))).output["pid"] != pid
            assert backend.health().state == "ready"  # That was no crash.

    go(body())


def test_what_waits_in_the_process_does_not_keep_it(tmp_path: Path) -> None:
    """It was not begun, so that the next process does it."""

    async def body() -> None:
        async with engine(tmp_path) as (_, backend):
            deaf = asyncio.create_task(
                backend.run(asked("deaf 30"), ProgressSink(lambda: None, None))
            )
            await until(lambda: backend.process is not None and backend.process.told_at)
            waiting = asyncio.create_task(
                backend.run(asked("echo x"), ProgressSink(lambda: None, None))
            )
            await asyncio.sleep(0.1)
            deaf.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await deaf
            assert time.monotonic() - began < 2
            assert (await waiting).output["text"] == "x"

    go(body())


def test_others_are_not_kept_by_a_process_that_is_mute(tmp_path: Path) -> None:
    """What does not stop holds up everybody: another process does what they wait for."""

    async def body() -> None:
        how = QUICK._replace(silence_s=1.5)
        async with engine(tmp_path, how, max_concurrency=2) as (service, backend):
            deaf = service.stream(asked("deaf 30", stream=True))
            await anext(deaf)
            process = backend.process
            mark = tmp_path / "mark"
            other = asyncio.create_task(service.call(asked(f"second {mark}")))
            while not mark.exists():
                await asyncio.sleep(0.01)
            began = time.monotonic()
            await deaf.aclose()
            assert 1.4 < time.monotonic() - began < 6
            assert backend.process is not process
            assert (await other).output["text"] == "done"

    go(body())


@pytest.mark.parametrize("others", [False, True])
def test_work_that_asks_for_a_file_hears_that_nobody_waits(tmp_path: Path, others: bool) -> None:
    """It waited a minute for an answer that nobody gave, and then its process was ended."""

    async def body() -> None:
        how = QUICK._replace(cancel_timeout_s=4.0)
        async with engine(tmp_path, how, max_concurrency=2) as (service, backend):
            pid = (await service.call(asked("echo x"))).output["pid"]
            other = asyncio.create_task(service.call(asked("tell 0.1 60"))) if others else None
            sink = ProgressSink(lambda: None, None)
            late = asyncio.create_task(backend.run(asked("late 0.5"), sink))
            await until(lambda: sink.progress == 0.1)
            late.cancel()
            began = time.monotonic()
            with pytest.raises(asyncio.CancelledError):
                await late
            assert time.monotonic() - began < 3
            if other is not None:
                assert not other.done()
                assert (await other).output["text"] == "done"
            assert (await service.call(asked("echo x"))).output["pid"] == pid

    go(body())


@pytest.fixture(scope="module")
def hours(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four hours of sound, which take many seconds to decode: frames of MP3 one after another."""
    made = polymux.convert_to_mp3(wav(60), bitrate="32k", channels=1, tags="none").read()
    path = tmp_path_factory.mktemp("hours") / "hours.mp3"
    path.write_bytes(made * 240)
    return path


def test_a_decoding_stops_though_others_wait(tmp_path: Path, hours: Path) -> None:
    """By itself: its process goes on with what waits in it."""

    def asked_for(operation: str) -> OperationRequest:
        file = Upload(hours, "hours.mp3", "", hours.stat().st_size)
        return OperationRequest(operation, "", "", {"file": file}, frozenset())

    async def body() -> None:
        store = Store(tmp_path / "s")
        media = EngineBackend("media", "media", ["convert_to_mp3"], supervision=QUICK)
        sink = ProgressSink(lambda: None, store.media.draft)
        await media._ready()
        process = media.process
        decoding = asyncio.create_task(media.run(asked_for(DECODE_AUDIO), sink))
        await asyncio.sleep(0.5)
        waiting = asyncio.create_task(media.run(asked_for(MEASURE_SOUND), sink))
        await asyncio.sleep(0.1)
        assert not decoding.done()
        decoding.cancel()
        began = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await decoding
        assert time.monotonic() - began < QUICK.cancel_timeout_s
        assert (await waiting).output["duration_s"] > 4 * 3600 - 60
        assert media.process is process
        await media.close()
        store.close()

    go(body())


def enum_of(count: int) -> dict[str, Any]:
    return {"enum": [f"x{number}" for number in range(count)]}


def chained(count: int) -> dict[str, Any]:
    """Alternatives of alternatives by reference: few words, and very many ways."""
    definitions = {
        f"d{number}": {"anyOf": [{"$ref": f"#/$defs/d{number + 1}"}] * 10}
        for number in range(count)
    }
    return {"$ref": "#/$defs/d0", "$defs": definitions | {f"d{count}": enum_of(2)}}


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


def deep(levels: int) -> list[Any]:
    found: list[Any] = []
    for _ in range(levels):
        found = [found]
    return found


TOO_MUCH = {
    "an enum": enum_of(MAX_CHOICES + 1),
    "an enum within": {"type": "object", "properties": {"a": {"items": enum_of(50_000)}}},
    "a pattern": {"type": "string", "pattern": f"^({'|'.join(['a'] * 5000)})$"},
    "optional pieces": {"type": "string", "pattern": "^" + "a?" * 600 + "$"},
    "properties": {"type": "object", "properties": {f"p{n}": {} for n in range(600)}},
    "references": chained(3),
    "optional properties beside names that are none": {
        "properties": {f"p{n}": {} for n in range(600)}, "required": [f"q{n}" for n in range(600)],
    },
    "places of an array": {"type": "array", "items": [enum_of(300), enum_of(300)]},
    "an enum in a list": {"$ref": "#/x/0", "x": [enum_of(MAX_CHOICES + 1)]},
    "an enum under an odd name": {"$ref": "#/x/a~1b", "x": {"a~1b": enum_of(MAX_CHOICES + 1)}},
    "levels": nested(70),
    "levels in lists": {"type": "array", "items": [nested(70)]},
    "levels of something else": {"default": deep(400)},
    "bytes": {"type": "string", "description": "x" * MAX_BYTES},
}  # fmt: skip
ENOUGH = {
    "an enum": enum_of(MAX_CHOICES),
    "a reference to itself": {
        "$ref": "#/$defs/tree",
        "$defs": {"tree": {"anyOf": [{"type": "null"}, {"items": {"$ref": "#/$defs/tree"}}]}},
    },
    "properties that are needed": {
        "type": "object",
        "properties": {f"p{n}": {"type": "string"} for n in range(600)},
        "required": [f"p{n}" for n in range(600)],
    },
    "nonsense": {"enum": 3, "properties": [], "anyOf": {}, "$ref": "#/nowhere", "pattern": None},
    "nothing": None,
    "a reference into a list": {"$ref": "#/x/1", "x": [enum_of(600), enum_of(2)]},
    "two kinds": {"type": ["array", "null"], "items": enum_of(MAX_CHOICES)},
}


def forms(schema: Any) -> list[dict[str, Any]]:
    """The three places that chats have for a schema."""
    named = {"name": "x", "schema": schema}
    tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
    return [
        {"response_format": {"type": "json_schema", "json_schema": named}},
        {"response_format": {"type": "json_object", "schema": schema}},
        {"tools": [tool]},
    ]


@pytest.mark.parametrize("name", TOO_MUCH)
def test_schemas_that_would_hold_up_everybody_are_refused(name: str) -> None:
    for values in forms(TOO_MUCH[name]):
        with pytest.raises(BadRequestError, match=r"more than .*\d+") as refused:
            check_schemas(values)
        (param,) = values
        assert (refused.value.status, refused.value.param) == (400, param)


@pytest.mark.parametrize("name", ENOUGH)
def test_schemas_of_a_usual_size_are_taken(name: str) -> None:
    for values in forms(ENOUGH[name]):
        check_schemas(values)
    check_schemas({"response_format": {"type": "text"}, "tools": [None, {"function": 3}]})


def twice(levels: int) -> dict[str, Any]:
    """Of each level twice as much would be made as of the one above."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": ["array", "array"], "items": schema}
    return schema


NOTHING_FITS = {
    "integers": ({"type": "integer", "minimum": 10, "exclusiveMaximum": 10}, "no number fits"),
    "open on both sides": ({"exclusiveMinimum": 5, "exclusiveMaximum": 5}, "no number fits"),
    "between integers": ({"type": "integer", "exclusiveMinimum": 5, "maximum": 5.9}, "no number"),
    "the tighter of two": (
        {"minimum": 1, "exclusiveMinimum": 9, "maximum": 9, "exclusiveMaximum": 20},
        "no number fits minimum 1 and exclusiveMinimum 9 and maximum 9",
    ),
    "draft 4": ({"minimum": 5, "exclusiveMinimum": True, "maximum": 5}, "no number fits"),
    "in a list": ({"items": [{"minimum": 5, "maximum": 4}]}, "no number fits"),
    "a kind twice": (twice(40), "names a kind twice"),
    "no place in a list": ({"$ref": "#/x/0x", "x": [{}]}, "'0x', which is no number"),
}


@pytest.mark.parametrize("name", NOTHING_FITS)
def test_schemas_that_nothing_fits_are_refused(name: str) -> None:
    schema, words = NOTHING_FITS[name]
    for values in forms(schema):
        with pytest.raises(BadRequestError, match=words):
            check_schemas(values)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "integer", "minimum": 10, "exclusiveMaximum": 11},
        {"type": "number", "exclusiveMinimum": 5, "maximum": 5.1},
        {"type": "integer", "exclusiveMinimum": 5, "maximum": 6},
        {"type": "integer", "minimum": 5, "exclusiveMinimum": False, "maximum": 5},
        {"type": "integer", "exclusiveMinimum": True, "maximum": -(10**400)},
        {"type": "integer", "minimum": 1e308, "maximum": 10**400},
        {"minimum": "5", "exclusiveMaximum": 5},
    ],
)
def test_ranges_with_numbers_in_them_are_taken(schema: Any) -> None:
    for values in forms(schema):
        check_schemas(values)
