"""Required tool calls: the model can only write a call.

With llama.cpp's own format a model may write any text before a required call, and a small model
never ends that text. Therefore a schema makes the model write the call as a JSON object, and this
module converts it. The chat template still describes the tools to the model.
"""

from __future__ import annotations

import json
import re
import secrets
from typing import TYPE_CHECKING, Any

from polymux.engines.chat.json_schema import for_grammar, functions_of
from polymux.engines.chat.requests import named_tool, requires_call

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polymux.engines.base import Request

_MAX_PARALLEL_CALLS = 16
_NO_PARAMETERS = {"type": "object", "properties": {}, "additionalProperties": False}
#: The text before the arguments of a call, after the end of the previous call.
_HEAD = re.compile(
    r'[\s,\[\]]*\{\s*"name"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"arguments"\s*:\s*(?=\S)'
)


class RequiredCalls:
    """The calls that a request requires.

    Attributes:
        tools: The tools that the model may call, in the format of the request.
        schema: JSON schema of what the model writes.
        finish_reason: Why a complete response ends. For a named function it is ``"stop"``, as in
            OpenAI's API.
    """

    def __init__(self, values: Mapping[str, Any], *, parallel: bool = False) -> None:
        is_named = isinstance(values["tool_choice"], dict)
        self.tools: Sequence[Any] = named_tool(values) if is_named else values["tools"]
        self.finish_reason = "stop" if is_named else "tool_calls"
        self.schema = _schema(self.tools, several=parallel and not is_named)

    @classmethod
    def of(cls, request: Request) -> RequiredCalls | None:
        """Return the calls that a request requires, or None.

        Several calls must be requested, because a small model would write as many as it can.

        Raises:
            BadRequestError: `tool_choice` names an unknown function.
        """
        values, name = request.values, "parallel_tool_calls"
        if not requires_call(values):
            return None
        return cls(values, parallel=name in request.given and values[name] is True)


def _schema(tools: Sequence[Any], *, several: bool) -> dict[str, Any]:
    """Return the schema of a call, or of a list of calls."""
    parameters: dict[str, Any] = {}
    calls = []
    for number, function in enumerate(functions_of(tools)):
        key = f"tool{number}"
        own = function.get("parameters") or _NO_PARAMETERS
        parameters[key] = for_grammar(own, root=f"#/$defs/{key}")
        properties = {"name": {"const": function["name"]}, "arguments": {"$ref": f"#/$defs/{key}"}}
        calls.append(
            {"type": "object", "properties": properties, "required": ["name", "arguments"],
             "additionalProperties": False}
        )  # fmt: skip
    call: dict[str, Any] = calls[0] if len(calls) == 1 else {"anyOf": calls}
    if several:
        call = {"type": "array", "items": call, "minItems": 1, "maxItems": _MAX_PARALLEL_CALLS}
    return {**call, "$defs": parameters}


class CallReader:
    """Converts the text of a response to tool calls, part by part.

    Example:
        >>> from polymux.engines.chat.calls import CallReader
        >>> reader = CallReader()
        >>> reader.read('{"name": "time_of", "argum')
        []
        >>> [one["function"] for one in reader.read('ents": {"city": "Rome"')]
        [{'name': 'time_of', 'arguments': '{"city": "Rome"'}]
        >>> [one["function"] for one in reader.read("}}")]
        [{'arguments': '}'}]
    """

    def __init__(self) -> None:
        #: Number of calls that have begun.
        self.count = 0
        self._head = ""
        self._in_arguments = False
        self._depth = 0
        self._in_string = self._is_escaped = False

    def read(self, text: str) -> list[dict[str, Any]]:
        """Return the parts of calls in the next part of the text."""
        found: list[dict[str, Any]] = []
        while text:
            if not self._in_arguments:
                text = self._read_head(text, found)
                continue
            arguments, text = self._read_arguments(text)
            if found:
                found[-1]["function"]["arguments"] += arguments
            elif arguments:
                part = {"index": self.count - 1, "function": {"arguments": arguments}}
                found.append(part)
        return found

    def _read_head(self, text: str, found: list[dict[str, Any]]) -> str:
        """Read up to the arguments of the next call, and return the rest of the text."""
        self._head += text
        head = _HEAD.match(self._head)
        if head is None:
            return ""
        function = {"name": json.loads(head[1]), "arguments": ""}
        call_id = f"call_{secrets.token_hex(12)}"
        found.append({"index": self.count, "id": call_id, "type": "function", "function": function})
        self.count += 1
        rest, self._head, self._in_arguments = self._head[head.end() :], "", True
        return rest

    def _read_arguments(self, text: str) -> tuple[str, str]:
        """Return the arguments in the text, without spaces around them, and the rest."""
        kept: list[str] = []
        for at, sign in enumerate(text):
            if self._in_string:
                self._in_string = self._is_escaped or sign != '"'
                self._is_escaped = sign == "\\" and not self._is_escaped
            elif sign == '"':
                self._in_string = True
            elif sign in "[{":
                self._depth += 1
            elif sign in "]}":
                if self._depth == 0:  # The end of the call.
                    self._in_arguments = False
                    return "".join(kept), text[at + 1 :]
                self._depth -= 1
            elif self._depth == 0 and sign.isspace():
                continue
            kept.append(sign)
        return "".join(kept), ""
