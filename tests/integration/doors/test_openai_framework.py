"""A framework on top of the package openai, pydantic-ai, against /v1: agents, tools, streams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import BaseModel
from pydantic_ai import Agent, NativeOutput
from pydantic_ai.models.openai import OpenAIChatModel
from pydantic_ai.providers.openai import OpenAIProvider
from support.openai_door import ScriptedDoor, of_asyncio, real_chat
from support.polymux_server import Box, PolymuxServer

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import Asked


class Colour(BaseModel):
    name: str
    warm: bool


async def with_model(server: Asked, name: str, body: Any) -> Any:
    """Runs `body` with a model of the framework; its connections end with it."""
    async with of_asyncio(server) as client:
        return await body(OpenAIChatModel(name, provider=OpenAIProvider(openai_client=client)))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    with real_chat(tmp_path_factory.mktemp("chat")) as running:
        yield running


def test_an_agent_and_a_stream(server: PolymuxServer) -> None:
    """The stream's pieces are the whole answer, and the counts of tokens come with both."""

    async def body(model: OpenAIChatModel) -> None:
        agent = Agent(model, instructions="Be brief.")
        settings: Any = {"max_tokens": 12, "temperature": 0.0, "seed": 1}
        whole = await agent.run("Name three colours.", model_settings=settings)
        assert whole.output
        assert 0 < whole.usage.output_tokens <= 12
        async with agent.run_stream("Name three colours.", model_settings=settings) as stream:
            pieces = [one async for one in stream.stream_text(delta=True, debounce_by=None)]
        assert "".join(pieces) == whole.output
        assert len(pieces) > 3
        assert stream.usage.output_tokens == whole.usage.output_tokens

    asyncio.run(with_model(server, "smollm2", body))


def test_an_output_of_a_schema(server: PolymuxServer) -> None:
    async def body(model: OpenAIChatModel) -> None:
        agent = Agent(model, output_type=NativeOutput(Colour), retries=3)
        settings: Any = {"max_tokens": 200, "temperature": 0.0}
        made = await agent.run("Describe the colour red.", model_settings=settings)
        assert isinstance(made.output, Colour)
        assert made.output.name

    asyncio.run(with_model(server, "smollm2", body))


def test_a_tool(tmp_path: Path) -> None:
    """The framework calls it with what the model said, and tells the model what came of it."""
    box = Box()
    call = {"id": "call_1", "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Paris"}'}}  # fmt: skip

    def make() -> list[ScriptedDoor]:
        box.backend = ScriptedDoor()
        box.backend.message = {"role": "assistant", "content": None, "tool_calls": [call]}
        return [box.backend]

    async def body(model: OpenAIChatModel) -> str:
        agent = Agent(model)
        asked: list[str] = []

        @agent.tool_plain
        def weather(city: str) -> str:
            """The weather of a city."""
            asked.append(city)
            box.backend.message = {"role": "assistant", "content": "Take an umbrella."}
            return "It rains."

        made = await agent.run("What is the weather in Paris?")
        assert asked == ["Paris"]
        return made.output

    with PolymuxServer(tmp_path / "s", make) as server:
        assert asyncio.run(with_model(server, "default", body)) == "Take an umbrella."
    first, second = (one.values for one in box.backend.began)
    assert first["tools"][0]["function"]["name"] == "weather"
    told = second["messages"][-1]
    assert (told["role"], told["tool_call_id"], told["content"]) == ("tool", "call_1", "It rains.")
