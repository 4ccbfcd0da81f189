"""Chat with a real small model, by route, by Local, and by the client."""

from __future__ import annotations

import asyncio
import json
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.errors import BadRequestError, NoBackendError
from polymux.runtime.settings import EngineSettings
from support.chat_model import model_path
from support.polymux_server import CHAT, HELLO, PolymuxServer
from support.services import chat_of, running

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterator
    from pathlib import Path

QUESTION = [{"role": "user", "content": "Name three colours."}]


def engine(max_concurrency: int = 2) -> EngineBackend:
    options = {"model": str(model_path()), "max_concurrency": max_concurrency, "context": 2048}
    how = Supervision(threads=1)
    return EngineBackend(
        "chat",
        "chat",
        ["chat", "free_chat"],
        options,
        max_concurrency=max_concurrency,
        supervision=how,
    )


def go(body: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(body, 120))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    options = {"model": str(model_path()), "context": 512}
    engines = {"chat": EngineSettings("chat", options, max_concurrency=2, threads=1)}
    folder = tmp_path_factory.mktemp("chat") / "s"
    with PolymuxServer(folder, engines=engines) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key) as made:
        yield made


def test_an_answer_has_everything_that_the_interface_names(client: polymux.Client) -> None:
    answer = client.chat(QUESTION, model="chat", max_completion_tokens=24, seed=1)
    assert len(answer.choices) == 1
    assert len(answer.choices[0].message.content or "") > 10
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.model == "chat"
    assert answer.usage is not None
    assert answer.usage.prompt_tokens > 5
    assert 1 <= answer.usage.completion_tokens <= 24
    assert answer.usage.json()["completion_time"] > 0


def test_a_stream_says_what_the_whole_answer_says(client: polymux.Client) -> None:
    wanted = {"max_completion_tokens": 24, "seed": 1, "temperature": 0.0}
    whole = client.chat(QUESTION, **wanted)
    stream = client.chat(QUESTION, stream=True, stream_options={"include_usage": True}, **wanted)
    pieces = [one.content for one in stream]
    assert "".join(pieces) == whole.choices[0].message.content
    assert len([one for one in pieces if one]) > 5
    assert stream.finished
    assert stream.usage is not None


def test_seeds_stops_and_several(client: polymux.Client) -> None:
    def ask(**more: Any) -> str:
        answer = client.chat(QUESTION, max_completion_tokens=16, temperature=1.5, **more)
        return answer.choices[0].message.content or ""

    assert ask(seed=7) == ask(seed=7)
    text = ask(seed=7)
    stop = text[4:7]
    assert stop not in ask(seed=7, stop=[stop])
    two = client.chat(QUESTION, max_completion_tokens=8, n=2)
    assert [one.index for one in two.choices] == [0, 1]


def test_whole_numbers_of_any_size_mean_what_they_say(client: polymux.Client) -> None:
    """The library reads 32 bits of them: it would take one as another, or as none."""

    def ask(**more: Any) -> str:
        answer = client.chat(QUESTION, temperature=1.5, **more)
        return answer.choices[0].message.content or ""

    seeds = (7, -1, 2**32 - 1, 2**32 + 7, 2**63 - 1)
    said = [ask(seed=seed, max_completion_tokens=12) for seed in seeds]
    assert said == [ask(seed=seed, max_completion_tokens=12) for seed in seeds]
    assert len(set(said)) > 3
    plain = ask(seed=7, stop=[","])
    assert len(plain) > 8
    for longest in (2**31, 2**32, 2**32 + 1, 2**63 - 1):
        assert ask(seed=7, stop=[","], max_completion_tokens=longest) == plain


def test_seeds_of_several_answers_are_never_any(client: polymux.Client) -> None:
    """The library counts on from a seed, and its largest number stands for one by chance."""

    def ask() -> list[str]:
        answer = client.chat(QUESTION, seed=-1, n=8, temperature=1.5, max_completion_tokens=6)
        return [one.message.content or "" for one in answer.choices]

    assert ask() == ask()


def test_json_of_a_schema(client: polymux.Client) -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string", "maxLength": 10}, "age": {"type": "integer"}},
        "required": ["name", "age"],
    }
    form = {"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}
    answer = client.chat("A person.", response_format=form, max_completion_tokens=64, seed=3)
    found = json.loads(answer.choices[0].message.content or "")
    assert isinstance(found["name"], str)
    assert isinstance(found["age"], int)


def test_models_have_names(server: PolymuxServer, client: polymux.Client) -> None:
    own = model_path().stem
    for wanted, called in ((None, own), ("default", own), (own, own), ("chat", "chat")):
        assert client.chat("Hi", model=wanted, max_completion_tokens=1).model == called
    for unknown in ("gpt-9", "../../etc/passwd", "x" * 256, f"{own}.gguf"):
        with pytest.raises(BadRequestError, match="no such chat model") as refused:
            client.chat("Hi", model=unknown)
        assert refused.value.code == "model_not_found"
        assert refused.value.param == "model"
        assert repr(own) in str(refused.value)
        assert len(str(refused.value)) < 1000
    for unnamed in ("", "x" * 1_000_000):
        asked = {"model": unnamed, "messages": QUESTION}
        assert server.json(CHAT, asked).status == 400


def test_freellm(client: polymux.Client) -> None:
    assert client.free_chat("Say hello.").text
    assert "".join(client.free_chat("Say hello.", stream=True).texts())
    assert client.free_chat("Say hello.", model="gpt-4").text


def test_what_it_cannot_do(client: polymux.Client) -> None:
    picture = [{"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}]
    with pytest.raises(BadRequestError, match="no pictures"):
        client.chat([{"role": "user", "content": picture}])
    linked = [{"type": "image_url", "image_url": {"url": "http://127.0.0.1:9/a.png"}}]
    with pytest.raises(BadRequestError, match="no pictures"):
        client.chat([{"role": "user", "content": linked}])
    with pytest.raises(BadRequestError, match="no pictures"):
        client.free_chat("x", image_url="http://127.0.0.1:9/a.png")
    with pytest.raises(BadRequestError, match="context"):
        client.chat("word " * 4000)
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": {"type": "nonsense"}}}
    with pytest.raises(BadRequestError):
        client.chat("x", response_format=form)
    assert client.chat("x", max_completion_tokens=2).choices


def test_a_schema_that_would_hold_up_everybody_is_refused(client: polymux.Client) -> None:
    many = {"enum": [f"x{number}" for number in range(4000)]}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": many}}
    began = time.monotonic()
    with pytest.raises(BadRequestError, match="4000 choices") as refused:
        client.chat("x", response_format=form, timeout=30)
    assert refused.value.param == "response_format"
    parameters = {"type": "object", "properties": {"word": many}}
    tool = {"type": "function", "function": {"name": "say", "parameters": parameters}}
    with pytest.raises(BadRequestError, match="4000 choices"):
        client.chat("x", tools=[tool], tool_choice="required", timeout=30)
    assert time.monotonic() - began < 5


def test_patterns_that_the_grammar_lacks_are_checked_afterwards(client: polymux.Client) -> None:
    """Grammars of them made strings that are not JSON, which the library could not read itself."""
    odd = {"type": "string", "pattern": '^say "hi"$', "maxLength": 8}
    schema = {"$ref": "#/components/schemas/S", "components": {"schemas": {"S": odd}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = client.chat("Say hi.", response_format=form, max_completion_tokens=32, seed=1)
    assert isinstance(json.loads(answer.choices[0].message.content or ""), str)
    assert "breaks the schema" in answer.headers["polymux-warnings"]


def test_fields_that_it_does_not_know_are_told(
    server: PolymuxServer, client: polymux.Client
) -> None:
    """Whoever asks sees what was left out: in the header, whole and streamed, and of `Local`."""
    extra = {"service_tier": "flex", "max_completion_tokens": 4, "seed": 1}
    expected = '"service_tier: the local engine does not know it and leaves it out"'
    for stream in (False, True):
        given = {**HELLO, **extra, "stream": stream}
        answer = server.json(CHAT, given)
        assert (answer.status, answer.headers["polymux-warnings"]) == (200, expected)
    assert "polymux-warnings" not in server.json(CHAT, {**HELLO, "max_tokens": 4}).headers
    found = client.chat("Hi", max_completion_tokens=4, service_tier="flex")
    assert found.headers["polymux-warnings"] == expected


def test_several_at_once_share_the_model(client: polymux.Client) -> None:
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(5) as pool:
        answers = list(pool.map(lambda _: client.chat(QUESTION, max_completion_tokens=8), range(5)))
    assert all(one.choices for one in answers)


def test_leaving_ends_the_work_while_the_prompt_is_read(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path / "s", engine()) as service:
            await service.call(chat_of(max_completion_tokens=1))
            for wait_s in (0.3, 0.0):
                long = [{"role": "user", "content": "word " * 1800}]
                task = asyncio.create_task(service.call(chat_of(messages=long)))
                await asyncio.sleep(wait_s)
                began = time.monotonic()
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                assert time.monotonic() - began < 2
                assert service.places["chat"].running == 0
            # The model is there still, and answers at once.
            assert (await service.call(chat_of(max_completion_tokens=2))).output["choices"]

    go(body())


def test_who_waits_behind_several_answers_leaves_without_harm(tmp_path: Path) -> None:
    """It is told by nothing but its own end; what others have begun goes on."""

    async def body() -> None:
        async with running(tmp_path / "s", backend := engine()) as service:
            await service.call(chat_of(max_completion_tokens=1))
            process = backend.process
            odd = {"messages": QUESTION, "logit_bias": {"2": -100, "0": -100}}
            both = asyncio.create_task(
                service.call(chat_of(n=2, max_completion_tokens=400, seed=1, **odd))
            )
            await asyncio.sleep(0.4)
            behind = asyncio.create_task(service.call(chat_of(max_completion_tokens=4, **odd)))
            await asyncio.sleep(0.2)
            assert not both.done()
            assert not behind.done()
            began = time.monotonic()
            behind.cancel()
            with pytest.raises(asyncio.CancelledError):
                await behind
            assert time.monotonic() - began < 1
            assert not both.done()
            assert backend.process is process
            both.cancel()
            with pytest.raises(asyncio.CancelledError):
                await both
            # Both places are free again.
            two = await service.call(chat_of(n=2, max_completion_tokens=2))
            assert len(two.output["choices"]) == 2
            assert backend.process is process

    go(body())


def test_leaving_a_stream_does_not_touch_another(tmp_path: Path) -> None:
    async def body() -> None:
        async with running(tmp_path / "s", engine()) as service:
            first = service.stream(chat_of(stream=True, messages=QUESTION, temperature=1.2))
            second = service.stream(
                chat_of(stream=True, messages=QUESTION, max_completion_tokens=40, seed=5)
            )
            await anext(first)
            await anext(second)
            began = time.monotonic()
            await first.aclose()
            assert time.monotonic() - began < 0.5
            pieces = [one async for one in second]
            assert pieces[-1]["choices"][0]["finish_reason"] in ("stop", "length")

    go(body())


def test_local_and_its_missing_parts(tmp_path: Path) -> None:
    settings = EngineSettings("chat", {"model": str(model_path())}, threads=1)
    with polymux.Local(engines={"chat": settings}) as local:
        text = "".join(local.chat("Hello", stream=True, max_completion_tokens=8).texts())
        assert text
        found = local.chat("Hi", max_completion_tokens=4, service_tier="flex")
        assert "service_tier" in found.headers["polymux-warnings"]
    missing = EngineSettings("chat", {"model": str(tmp_path / "nothing.gguf")})
    with polymux.Local(engines={"chat": missing}) as local, pytest.raises(NoBackendError):
        local.chat("Hello")
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF" + bytes(1000))
    settings = EngineSettings("chat", {"model": str(broken)})
    with (
        polymux.Local(engines={"chat": settings}) as local,
        pytest.raises(polymux.InternalServerError) as failed,
    ):
        local.chat("Hello")
    assert failed.value.code == "engine_failed"


def test_a_stream_has_the_shape_of_groq_s(server: PolymuxServer) -> None:
    """The role first, the counts in the last chunk, and `usage` in each where it is asked for."""
    for with_usage in (False, True):
        body = {**HELLO, "stream": True, "max_completion_tokens": 6, "seed": 1}
        body |= {"stream_options": {"include_usage": True}} if with_usage else {}
        lines = server.json(CHAT, body).body.decode().split("\n\n")
        chunks = [json.loads(one[6:]) for one in lines if one.startswith("data: {")]
        answers = [one for one in chunks if one["choices"]]
        first, *_, last = answers
        assert first["choices"][0]["delta"] == {"role": "assistant", "content": ""}
        assert first["x_groq"]["id"] == last["x_groq"]["id"]
        assert last["choices"][0]["finish_reason"] == "length"
        assert last["x_groq"]["usage"]["completion_tokens"] == 6
        assert [one for one in answers[1:-1] if "x_groq" in one] == []
        assert len({(one["id"], one["created"], one["system_fingerprint"]) for one in chunks}) == 1
        if with_usage:
            (counts,) = chunks[len(answers) :]
            assert counts["usage"] == last["x_groq"]["usage"]
            assert all(one["usage"] is None for one in answers)
        else:
            assert chunks == answers
            assert not any("usage" in one for one in chunks)


def test_a_job_tells_its_model_s_version_while_it_works(tmp_path: Path) -> None:
    """SHA-256 of the file, not only once it is done."""
    import hashlib

    async def body() -> None:
        async with running(tmp_path, engine()) as service:
            work = chat_of(
                stream=True, messages=QUESTION, max_completion_tokens=400, temperature=1.2, seed=3
            )
            job, _ = await service.submit(work)
            seen = set()
            while job.status in ("starting", "processing"):
                await asyncio.sleep(0.02)
                job = await service.jobs.find(job.id, job.owner)
                if job.status == "processing" and job.output:
                    seen.add(job.version)
            assert seen == {hashlib.sha256(model_path().read_bytes()).hexdigest()}

    go(body())
