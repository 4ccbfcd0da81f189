"""Types inside requests. Made by scripts/generate from contract/; do not edit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, Required, TypeAlias, TypedDict


class ImagePart(TypedDict, total=False):
    """An image in a message."""

    url: Required[str]
    detail: Literal["auto", "low", "high"]


class ContentPart(TypedDict, total=False):
    """A part of a message: text or an image."""

    type: Required[Literal["text", "image_url"]]
    text: str
    image_url: ImagePart | Mapping[str, Any]


class CalledFunction(TypedDict, total=False):
    """A function call: the function's name and its arguments."""

    name: Required[str]
    arguments: Required[str]


class ToolCall(TypedDict, total=False):
    """A tool call that a model made."""

    id: Required[str]
    type: Required[Literal["function"]]
    function: Required[CalledFunction | Mapping[str, Any]]


class ChatMessage(TypedDict, total=False):
    """One message of a conversation."""

    role: Required[Literal["system", "user", "assistant", "tool", "function", "developer"]]
    content: str | Sequence[ContentPart | Mapping[str, Any]] | None
    name: str
    tool_calls: Sequence[ToolCall | Mapping[str, Any]]
    tool_call_id: str
    function_call: CalledFunction | Mapping[str, Any]


class NamedSchema(TypedDict, total=False):
    """A JSON Schema with a name."""

    name: Required[str]
    description: str
    schema: Mapping[str, Any]
    strict: bool


class ResponseFormat(TypedDict, total=False):
    """The format of the answer."""

    type: Required[Literal["text", "json_object", "json_schema"]]
    json_schema: NamedSchema | Mapping[str, Any]


class Function(TypedDict, total=False):
    """A function that a model may call."""

    name: Required[str]
    description: str
    parameters: Mapping[str, Any]
    strict: bool


class Tool(TypedDict, total=False):
    """A tool that a model may call."""

    type: Required[Literal["function"]]
    function: Required[Function | Mapping[str, Any]]


class FunctionName(TypedDict, total=False):
    """The name of a function."""

    name: Required[str]


class NamedToolChoice(TypedDict, total=False):
    """The tool that the model must call."""

    type: Required[Literal["function"]]
    function: Required[FunctionName | Mapping[str, Any]]


class StreamOptions(TypedDict, total=False):
    """Options for streamed answers."""

    include_usage: bool


class TextMessage(TypedDict, total=False):
    """One plain-text message of a conversation."""

    role: Required[Literal["system", "user", "assistant"]]
    content: Required[str]


ChatReasoningEffort: TypeAlias = "Literal['none', 'default', 'low', 'medium', 'high']"


GenerateImageAScheduler: TypeAlias = "Literal['DDIM', 'DPMSolverMultistep', 'HeunDiscrete', 'KarrasDPM', 'K_EULER_ANCESTRAL', 'K_EULER', 'PNDM', 'DPM++2MSDE']"


GenerateImageBScheduler: TypeAlias = "Literal['DDIM', 'DPMSolverMultistep', 'HeunDiscrete', 'KarrasDPM', 'K_EULER_ANCESTRAL', 'K_EULER', 'PNDM']"


GenerateImageCScheduler: TypeAlias = "Literal['DDIM', 'DPMSolverMultistep', 'HeunDiscrete', 'K_EULER_ANCESTRAL', 'K_EULER', 'PNDM', 'DPM++2MKarras', 'DPMSolver++']"


UpscaleImageAScheduler: TypeAlias = "Literal['DPM++ 2M', 'DPM++ 2M Karras', 'DPM++ SDE', 'DPM++ SDE Karras', 'DPM++ 2M SDE', 'DPM++ 2M SDE Karras', 'DPM++ 2M SDE Exponential', 'DPM++ 2M SDE Heun', 'DPM++ 2M SDE Heun Karras', 'DPM++ 2M SDE Heun Exponential', 'DPM++ 3M SDE', 'DPM++ 3M SDE Karras', 'DPM++ 3M SDE Exponential', 'DPM++ 2S a', 'DPM++ 2S a Karras', 'DPM2', 'DPM2 Karras', 'DPM2 a', 'DPM2 a Karras', 'DPM fast', 'DPM adaptive', 'Euler', 'Euler a', 'Heun', 'LMS', 'LMS Karras', 'Restart', 'DDIM', 'PLMS', 'UniPC']"


GenerateMusicSeedImageId: TypeAlias = "Literal['agile', 'marim', 'mask_beat_lines_80', 'mask_gradient_dark', 'mask_gradient_top_70', 'mask_gradient_top_fifth_75', 'mask_top_third_75', 'mask_top_third_95', 'motorway', 'og_beat', 'vibes']"


ConvertToMp3SampleRate: TypeAlias = "Literal[8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000]"
