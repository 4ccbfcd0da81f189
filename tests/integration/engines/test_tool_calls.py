"""Tool calls with a real model: its template describes tools, and calls are returned as calls."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.runtime.settings import EngineSettings
from pydantic import BaseModel
from support.chat_model import model_path
from support.lazy_imports import openai
from support.openai_compat import of
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
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """A server with the small model, with and without a template for tools."""
    folder = tmp_path_factory.mktemp("tools")
    knowing = {"model": str(with_tools(folder / "knowing.gguf")), "context": 1024}
    plain = {"model": str(model_path()), "context": 1024}
    engines = {
        "knowing": EngineSettings("chat", knowing, threads=1),
        "plain": EngineSettings("chat", plain, threads=1),
    }
    with PolymuxServer(folder / "s", engines=engines) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key) as made:
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


REQUIRED: dict[str, Any] = {
    "required": {"tool_choice": "required"},
    "named": {"tool_choice": NAMED, "parallel_tool_calls": False},
    "with a form": {"tool_choice": "required", "response_format": {"type": "json_object"}},
}


@pytest.mark.parametrize("name", REQUIRED)
def test_a_model_that_would_write_text_must_call(client: polymux.Client, name: str) -> None:
    """Without an example, the model would write text until the limit."""
    given = {"tools": [WEATHER, tool("time_of")], **REQUIRED[name]}
    (found,) = asked(client, [QUESTION], **given, max_completion_tokens=60)["choices"]
    assert found["finish_reason"] == ("stop" if name == "named" else "tool_calls")
    assert found["message"]["content"] is None
    (call,) = found["message"]["tool_calls"]
    names = {"weather_of"} if name == "named" else {"weather_of", "time_of"}
    assert call["function"]["name"] in names
    (argument,) = json.loads(call["function"]["arguments"]).values()
    assert len(argument) <= 12


def test_required_calls_in_pieces(client: polymux.Client) -> None:
    given: dict[str, Any] = {"tools": [WEATHER], "tool_choice": "required", "n": 2, **STEADY}
    stream = client.chat([QUESTION], model="knowing", stream=True, **given)
    choices = [choice for one in stream for choice in one.json()["choices"]]
    assert not any(one["delta"].get("content") for one in choices)
    for index in range(2):
        own = [one for one in choices if one["index"] == index]
        bits = [call for one in own for call in one["delta"].get("tool_calls") or ()]
        assert [one["function"]["name"] for one in bits if "id" in one] == ["weather_of"]
        arguments = "".join(one["function"]["arguments"] for one in bits)
        assert set(json.loads(arguments)) == {"city"}
        assert len(bits) > 2
        assert own[-1]["finish_reason"] == "tool_calls"


def test_several_required_calls(client: polymux.Client) -> None:
    tools = [tool("weather_of", enum=["Rome"]), tool("time_of", enum=["Oslo"])]
    more = {"parallel_tool_calls": True, "tool_choice": "required", "max_completion_tokens": 400}
    (found,) = asked(client, [QUESTION], tools=tools, **more)["choices"]
    calls = found["message"]["tool_calls"]
    cities = {"weather_of": "Rome", "time_of": "Oslo"}
    for one in (one["function"] for one in calls):
        assert json.loads(one["arguments"]) == {"city": cities[one["name"]]}
    assert 1 <= len({one["id"] for one in calls}) == len(calls) <= 16


class Place(BaseModel):
    warm: bool


class Weather(BaseModel):
    """The weather of two cities, with a schema that contains references."""

    first: Place
    second: Place


class Time(BaseModel):
    first: int


@pytest.mark.parametrize(
    "choice", ["required", {"type": "function", "function": {"name": "Weather"}}]
)
def test_the_openai_package_parses_required_calls(server: PolymuxServer, choice: Any) -> None:
    """LangChain and instructor send the same tools, with a named function."""
    tools = [openai.pydantic_function_tool(one) for one in (Weather, Time)]
    with of(server) as made:
        answer = made.chat.completions.parse(
            model="knowing", messages=[QUESTION], tools=tools, tool_choice=choice, temperature=0
        )
    (call,) = answer.choices[0].message.tool_calls
    parsed = call.function.parsed_arguments
    assert isinstance(parsed, Weather if choice != "required" else Weather | Time)


def test_a_form_goes_before_calls_of_choice(client: polymux.Client) -> None:
    given = {"tools": [WEATHER], "response_format": {"type": "json_object"}}
    answer = client.chat(TALK, model="knowing", **given, **STEADY)
    assert not answer.choices[0].message.tool_calls
    assert "tools" in answer.headers["polymux-warnings"]


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
