"""Chat with a small real model through the HTTP API, Local and the client."""

from __future__ import annotations

import asyncio
import hashlib
import json
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.errors import BadRequestError
from polymux.models import registry
from polymux.runtime.settings import EngineSettings
from support.chat_model import model_path
from support.polymux_server import CHAT, HELLO, PolymuxServer
from support.services import chat_of, running

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator
    from pathlib import Path

    from polymux.service.service import Service

    Chatting = tuple[asyncio.Runner, Service, EngineBackend]

QUESTION = [{"role": "user", "content": "Name three colours."}]


def reply(client: polymux.Client, **more: Any) -> str:
    answer = client.chat(QUESTION, temperature=1.5, **more)
    return answer.choices[0].message.content or ""


def usage_is_whole(usage: Any) -> None:
    times = [usage[name] for name in ("prompt_time", "completion_time", "total_time")]
    assert all(isinstance(one, float) and one > 0 for one in times), usage
    assert times[0] + times[1] == pytest.approx(times[2], abs=2e-6)
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]


def test_an_answer_whole_and_streamed(chat_client: polymux.Client) -> None:
    wanted = {"max_completion_tokens": 12, "seed": 1, "temperature": 0.0}
    whole = chat_client.chat(QUESTION, model="chat", **wanted)
    (choice,) = whole.choices
    assert len(choice.message.content or "") > 10
    assert choice.finish_reason in ("stop", "length")
    assert whole.model == "chat"
    assert whole.usage is not None
    assert whole.usage.prompt_tokens > 5
    assert 1 <= whole.usage.completion_tokens <= 12
    usage_is_whole(whole.usage.json())
    include = {"include_usage": True}
    stream = chat_client.chat(QUESTION, stream=True, stream_options=include, **wanted)
    pieces = [one.content for one in stream]
    assert "".join(pieces) == choice.message.content
    assert len([one for one in pieces if one]) > 5
    assert stream.finished
    assert stream.usage is not None
    usage_is_whole(stream.usage)


def test_tokens_of_the_cache_are_counted(chat_client: polymux.Client) -> None:
    def cached(word: str, *, stream: bool = False) -> tuple[int, int]:
        text = f"{word} are two colors of a flag. " * 3
        more: dict[str, Any] = {"max_completion_tokens": 1}
        if stream:
            include = {"include_usage": True}
            with chat_client.chat(text, stream=True, stream_options=include, **more) as chunks:
                usage = [one.json()["usage"] for one in chunks][-1]
        else:
            usage = chat_client.chat(text, **more).json()["usage"]
        return usage["prompt_tokens_details"]["cached_tokens"], usage["prompt_tokens"]

    new, prompt = cached("Ocher and teal")
    assert 0 <= new < prompt // 2
    for stream in (False, True):
        again, prompt = cached("Ocher and teal", stream=stream)
        assert prompt // 2 < again < prompt


def test_the_system_message_of_the_model_list(tmp_path: Path) -> None:
    model = registry.find("smollm2-135m-instruct")
    assert model is not None
    options = {"model": str(model_path()), "context": 512}
    engines = {
        name: EngineSettings("chat", options | more, threads=1)
        for name, more in (("own", model.options), ("plain", {}))
    }
    question = {"role": "user", "content": "What is the capital of France?"}
    with (
        PolymuxServer(tmp_path / "s", engines=engines) as server,
        polymux.Client(server.url, server.key) as client,
    ):

        def prompt_tokens(name: str, *messages: Any) -> int:
            usage = client.chat([*messages, question], model=name, max_completion_tokens=1).usage
            return usage.prompt_tokens or 0 if usage else 0

        default = {"role": "system", "content": model.options["system_prompt"]}
        assert prompt_tokens("own") == prompt_tokens("plain", default) != prompt_tokens("plain")
        for role in ("system", "developer"):
            given = {"role": role, "content": "Speak like a pirate."}
            assert prompt_tokens("own", given) == prompt_tokens("plain", given)
        answer = client.chat([question], model="own", temperature=0, max_completion_tokens=40)
        assert "Paris" in answer.text


def test_stops_and_limits_of_any_size_mean_what_they_say(chat_client: polymux.Client) -> None:
    """The library reads integers as 32 bits, so larger values must not be truncated or ignored."""
    plain = reply(chat_client, seed=7, max_completion_tokens=12)
    stop = plain[4:7]
    stopped = reply(chat_client, seed=7, max_completion_tokens=12, stop=[stop])
    assert stop not in stopped
    assert plain.startswith(stopped)
    unlimited = reply(chat_client, seed=7, stop=[","])
    assert len(unlimited) > 8
    for longest in (2**31, 2**32 + 1, 2**63 - 1):
        limited = reply(chat_client, seed=7, stop=[","], max_completion_tokens=longest)
        assert limited == unlimited


def test_seeds_of_any_size_repeat(chat_client: polymux.Client) -> None:
    seeds = (7, -1, 2**32 - 1, 2**32 + 7, 2**63 - 1)
    found = [reply(chat_client, seed=seed, max_completion_tokens=8) for seed in seeds]
    assert found == [reply(chat_client, seed=seed, max_completion_tokens=8) for seed in seeds]
    assert len(set(found)) > 3


def test_models_have_names(chat_server: PolymuxServer, chat_client: polymux.Client) -> None:
    own = model_path().stem
    for wanted, called in ((None, own), ("default", own), (own, own), ("chat", "chat")):
        answer = chat_client.chat("Hi", model=wanted, max_completion_tokens=1)
        assert (answer.model, answer.engine_model) == (called, own)
    streamed = list(chat_client.chat("Hi", model="chat", max_completion_tokens=3, stream=True))
    assert [one.engine_model for one in streamed if one.engine_model] == [own]
    for unknown in ("gpt-9", "../../etc/passwd", "x" * 256, f"{own}.gguf"):
        with pytest.raises(BadRequestError) as refused:
            chat_client.chat("Hi", model=unknown)
        assert refused.value.code == "model_not_found"
        assert refused.value.param == "model"
        assert repr(own) in str(refused.value)
        assert len(str(refused.value)) < 1000
    for unnamed in ("", "x" * 1_000_000):
        asked = {"model": unnamed, "messages": QUESTION}
        assert chat_server.json(CHAT, asked).status == 400


def test_freellm(chat_client: polymux.Client) -> None:
    for name in ("gpt-4o", "gpt-3.5-turbo", "gpt-4"):
        answer = chat_client.free_chat("Say hello.", model=name)
        assert answer.text
        assert answer.engine_model == model_path().stem
    ask = [{"role": "user", "content": "Say hello."}]
    assert "".join(chat_client.free_chat(ask, stream=True).texts())


def test_what_it_cannot_do(chat_client: polymux.Client) -> None:
    gif = "data:image/gif;base64,R0lGODlhAQABAIAAAAAAAP///yH5BAEAAAAALAAAAAABAAEAAAIBRAA7"
    for url in (gif, "http://127.0.0.1:9/a.png"):
        picture = [{"type": "image_url", "image_url": {"url": url}}]
        with pytest.raises(BadRequestError) as refused:
            chat_client.chat([{"role": "user", "content": picture}])
        assert (refused.value.code, refused.value.param) == ("invalid_request", "messages")
    with pytest.raises(BadRequestError) as refused:
        chat_client.free_chat("x", image_url=gif)
    assert refused.value.param == "image_url"
    with pytest.raises(BadRequestError, match="context"):
        chat_client.chat("word " * 4000)
    assert chat_client.chat("x", max_completion_tokens=2).choices


def test_patterns_that_the_grammar_lacks_are_checked(
    chat_client: polymux.Client,
) -> None:
    """The library's grammars for these produced invalid JSON, so polymux checks the answer."""
    odd = {"type": "string", "pattern": '^say "hi"$', "maxLength": 8}
    schema = {"$ref": "#/components/schemas/S", "components": {"schemas": {"S": odd}}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": schema}}
    answer = chat_client.chat("Say hi.", response_format=form, max_completion_tokens=32, seed=1)
    assert isinstance(json.loads(answer.choices[0].message.content or ""), str)
    assert "response_format" in answer.headers["polymux-warnings"]


def test_fields_that_it_does_not_know_are_reported(chat_server: PolymuxServer) -> None:
    """In the response header, with and without streaming. `Local` is tested below."""
    given = {**HELLO, "max_completion_tokens": 4, "seed": 1}
    for stream in (False, True):
        answer = chat_server.json(CHAT, given | {"service_tier": "flex", "stream": stream})
        assert answer.status == 200
        assert "service_tier" in answer.headers["polymux-warnings"]
    assert "polymux-warnings" not in chat_server.json(CHAT, given).headers


@pytest.fixture(scope="module")
def chatting(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chatting]:
    """A service in its own event loop, whose model stays loaded over several tests."""
    options = {"model": str(model_path()), "max_concurrency": 2, "context": 1024}
    how = Supervision(threads=1)
    names = ["chat", "free_chat"]
    backend = EngineBackend("chat", "chat", names, options, max_concurrency=2, supervision=how)
    context = running(tmp_path_factory.mktemp("chatting") / "s", backend)
    with asyncio.Runner() as runner:
        service = runner.run(context.__aenter__())
        yield runner, service, backend
        runner.run(context.__aexit__(None, None, None))


def in_chat(
    body: Callable[[Service, EngineBackend], Coroutine[Any, Any, None]],
) -> Callable[[Chatting], None]:
    """Decorator that runs a coroutine test with this service and its engine."""

    def test(chatting: Chatting) -> None:
        runner, service, backend = chatting

        async def loaded() -> None:
            await service.call(chat_of(max_completion_tokens=1))
            await asyncio.wait_for(body(service, backend), 120)

        runner.run(loaded())

    return test


async def leave(task: asyncio.Task[Any], within_s: float) -> None:
    began = time.monotonic()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert time.monotonic() - began < within_s


@in_chat
async def test_leaving_while_the_prompt_is_read(service: Service, backend: EngineBackend) -> None:
    for wait_s in (0.3, 0.0):
        long = [{"role": "user", "content": "word " * 900}]
        task = asyncio.create_task(service.call(chat_of(messages=long)))
        await asyncio.sleep(wait_s)
        await leave(task, 10)
        assert service.places["chat"].running == 0
    # The model is still loaded.
    answer = await service.call(chat_of(max_completion_tokens=2))
    assert answer.output["choices"]


@in_chat
async def test_leaving_one_of_two_streams(service: Service, backend: EngineBackend) -> None:
    wanted = {"stream": True, "messages": QUESTION}
    first = service.stream(chat_of(**wanted, temperature=1.2))
    second = service.stream(chat_of(**wanted, max_completion_tokens=20, seed=5))
    await anext(first)
    await anext(second)
    await first.aclose()
    pieces = [one async for one in second]
    assert pieces[-1]["choices"][0]["finish_reason"] in ("stop", "length")


@in_chat
async def test_a_job_at_work_tells_its_version(service: Service, backend: EngineBackend) -> None:
    """The version is the SHA-256 of the model file and is known before the job ends."""
    work = chat_of(
        stream=True, messages=QUESTION, max_completion_tokens=100, seed=3,
        logit_bias={"2": -100, "0": -100},
    )  # fmt: skip
    job, _ = await service.submit(work)
    seen = set()
    while job.status in ("starting", "processing"):
        await asyncio.sleep(0.02)
        job = await service.jobs.find(job.id, job.owner)
        if job.status == "processing" and job.output:
            seen.add(job.version)
    assert seen == {hashlib.sha256(model_path().read_bytes()).hexdigest()}


def test_local_and_its_missing_parts(tmp_path: Path) -> None:
    def local(path: object) -> polymux.Local:
        return polymux.Local(engines={"chat": EngineSettings("chat", {"model": str(path)})})

    with local(model_path()) as whole:
        assert "".join(whole.chat("Hello", stream=True, max_completion_tokens=4).texts())
        found = whole.chat("Hi", max_completion_tokens=1, service_tier="flex")
        assert "service_tier" in found.headers["polymux-warnings"]
    (tmp_path / "broken.gguf").write_bytes(b"GGUF" + bytes(1000))
    with (
        local(tmp_path / "broken.gguf") as broken,
        pytest.raises(polymux.InternalServerError) as failed,
    ):
        broken.chat("Hello")
    assert failed.value.code == "engine_failed"


@pytest.mark.parametrize("with_usage", [False, True])
def test_a_stream_has_the_shape_of_groq_s(chat_server: PolymuxServer, with_usage: bool) -> None:
    """The role comes first and the token counts last. `usage` is in each chunk if requested."""
    body = {**HELLO, "stream": True, "max_completion_tokens": 6, "seed": 1}
    body |= {"stream_options": {"include_usage": True}} if with_usage else {}
    lines = chat_server.json(CHAT, body).body.decode().split("\n\n")
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
