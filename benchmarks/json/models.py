"""The chat request as pydantic models, with the contract's types, choices, bounds and nesting.

The models do not check duplicate names, names that control the transport, and rules between fields.
polymux checks these, which costs it some time.
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field


class Strict(BaseModel):
    """A model without type conversion that keeps unknown fields."""

    model_config = ConfigDict(strict=True, extra="allow")


class ImagePart(Strict):
    url: Annotated[str, Field(pattern=r"^(https?://|data:image/)")]
    detail: Literal["auto", "low", "high"] | None = None


class ContentPart(Strict):
    type: Literal["text", "image_url"]
    text: str | None = None
    image_url: ImagePart | None = None


class CalledFunction(Strict):
    name: str
    arguments: str


class ToolCall(Strict):
    id: str
    type: Literal["function"]
    function: CalledFunction


class Message(Strict):
    role: Literal["system", "user", "assistant", "tool", "function", "developer"]
    content: str | list[ContentPart] | None = None
    name: str | None = None
    tool_calls: list[ToolCall] | None = None
    tool_call_id: str | None = None


class Function(Strict):
    name: Annotated[str, Field(min_length=1, max_length=64)]
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


class Tool(Strict):
    type: Literal["function"]
    function: Function


class ChatRequest(Strict):
    model: Annotated[str, Field(min_length=1, max_length=256)]
    messages: Annotated[list[Message], Field(min_length=1)]
    stream: bool | None = None
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1)] | None = None
    stop: str | Annotated[list[str], Field(max_length=4)] | None = None
    seed: int | None = None
    n: Annotated[int, Field(ge=1, le=8)] | None = None
    tools: Annotated[list[Tool], Field(max_length=128)] | None = None
    tool_choice: Literal["none", "auto", "required"] | dict[str, Any] | None = None
    parallel_tool_calls: bool | None = None
    user: str | None = None
