"""Tool calls with a real model: its template describes tools, and calls are returned as calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.runtime.settings import EngineSettings
from support.chat_model import model_path
from support.polymux_server import PolymuxServer
from support.tool_model import with_tools

if TYPE_CHECKING:
    from collections.abc import Iterator

CITIES = ("Rome", "Oslo", "Cairo")
QUESTION = {"role": "user", "content": "What is the weather in Paris?"}
STEADY: dict[str, Any] = {"temperature": 0.0, "seed": 1, "max_completion_tokens": 40}


def tool(name: str, **city: Any) -> dict[str, Any]:
    fields = {"city": {"type": "string", **(city or {"maxLength": 12})}}
    parameters = {"type": "object", "properties": fields, "required": ["city"]}
    about = {"name": name, "description": "Tells the weather.", "parameters": parameters}
    return {"type": "function", "function": about}


WEATHER = tool("weather_of")


def called(city: str, number: int) -> list[dict[str, Any]]:
    """A question and the tool call that answered it."""
    function = {"name": "weather_of", "arguments": json.dumps({"city": city})}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    return [
        {"role": "user", "content": f"What is the weather in {city}?"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
    ]


#: Such a small model calls a tool only after it has seen an example.
TALK = [one for number, city in enumerate(CITIES) for one in called(city, number)] + [QUESTION]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[polymux.Client]:
    """A client of a server with the small model, with and without a template for tools."""
    folder = tmp_path_factory.mktemp("tools")
    knowing = {"model": str(with_tools(folder / "knowing.gguf")), "context": 1024}
    plain = {"model": str(model_path()), "context": 1024}
    engines = {
        "knowing": EngineSettings("chat", knowing, threads=1),
        "plain": EngineSettings("chat", plain, threads=1),
    }
    with (
        PolymuxServer(folder / "s", engines=engines) as running,
        polymux.Client(running.url, running.key) as made,
    ):
        yield made


def asked(client: polymux.Client, messages: Any = TALK, **more: Any) -> Any:
    """The response as JSON."""
    return client.chat(messages, **{"model": "knowing", **STEADY, **more}).json()


def tokens(answer: Any) -> int:
    count: int = answer["usage"]["prompt_tokens"]
    return count


def test_tools_reach_the_template(client: polymux.Client) -> None:
    alone = [QUESTION]
    tools = [WEATHER, tool("time_of")]
    without, one, two = (
        tokens(asked(client, alone, **more, max_completion_tokens=1))
        for more in ({}, {"tools": tools[:1]}, {"tools": tools})
    )
    # At least the name, the description and the parameters.
    assert one > without + 20
    assert two > one + 20


@pytest.mark.parametrize("choice", [None, "required"])
def test_a_call_comes_as_a_call(client: polymux.Client, choice: str | None) -> None:
    more = {} if choice is None else {"tool_choice": choice}
    (found,) = asked(client, tools=[WEATHER], **more)["choices"]
    assert found["finish_reason"] == "tool_calls"
    (call,) = found["message"]["tool_calls"]
    assert call["type"] == "function"
    assert call["id"]
    assert call["function"]["name"] == "weather_of"
    assert json.loads(call["function"]["arguments"]) == {"city": "Paris"}
    assert not found["message"].get("content")


def test_arguments_keep_to_the_tool_s_schema(client: polymux.Client) -> None:
    """A grammar enforces the schema. Without it, the model would answer "Paris"."""
    bound = tool("weather_of", enum=["Bern", "Lima"])
    (found,) = asked(client, tools=[bound], tool_choice="required")["choices"]
    (call,) = found["message"]["tool_calls"]
    assert json.loads(call["function"]["arguments"])["city"] in ("Bern", "Lima")


def test_no_tool_is_called_where_none_is_to_be(client: polymux.Client) -> None:
    (found,) = asked(client, tools=[WEATHER], tool_choice="none")["choices"]
    assert found["finish_reason"] in ("stop", "length")
    assert not found["message"].get("tool_calls")
    assert found["message"]["content"]


def test_a_call_in_pieces(client: polymux.Client) -> None:
    """The name arrives once, the arguments in pieces."""
    stream = client.chat(TALK, model="knowing", tools=[WEATHER], stream=True, **STEADY)
    choices = [choice for one in stream for choice in one.json()["choices"]]
    bits = [call for one in choices for call in one["delta"].get("tool_calls") or ()]
    names = [one["function"]["name"] for one in bits if one["function"].get("name")]
    assert names == ["weather_of"]
    arguments = [one["function"].get("arguments") or "" for one in bits]
    assert len([one for one in arguments if one]) > 2
    assert json.loads("".join(arguments)) == {"city": "Paris"}
    assert choices[-1]["finish_reason"] == "tool_calls"


def test_what_a_tool_returned_is_read(client: polymux.Client) -> None:
    before = called("Paris", 7)
    result = {"role": "tool", "tool_call_id": "call_7", "content": "sunshine and 21 degrees"}
    without = tokens(asked(client, before[:1], tools=[WEATHER]))
    answer = asked(client, [*before, result], tools=[WEATHER], tool_choice="none")
    assert tokens(answer) > without + 20
    assert answer["choices"][0]["message"]["content"]


NAMED = {"type": "function", "function": {"name": "weather_of"}}


def test_the_tool_that_is_named_is_called(client: polymux.Client) -> None:
    choice = {"type": "function", "function": {"name": "time_of"}}
    (found,) = asked(client, tools=[WEATHER, tool("time_of")], tool_choice=choice)["choices"]
    (call,) = found["message"]["tool_calls"]
    assert call["function"]["name"] == "time_of"


@pytest.mark.parametrize(
    "given",
    [
        {"tools": [tool("nothing")], "tool_choice": NAMED},
        {"model": "plain", "tools": [WEATHER], "tool_choice": NAMED},
        {"model": "plain", "tools": [WEATHER], "tool_choice": "required"},
        {"tool_choice": "required"},
    ],
    ids=["another tool", "named of a plain template", "required of it", "required of none"],
)
def test_what_cannot_be_called(client: polymux.Client, given: dict[str, Any]) -> None:
    with pytest.raises(polymux.BadRequestError) as caught:
        asked(client, [QUESTION], **given)
    assert caught.value.param == "tool_choice"
