"""The small chat model with a template that supports tools, which its own does not."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from support.chat_model import model_path

if TYPE_CHECKING:
    from pathlib import Path

#: Tool calls in the format of Qwen and Hermes.
TEMPLATE = r"""{%- if tools %}{{- '<|im_start|>system\nFunctions:' }}
{%- for tool in tools %}{{- '\n' }}{{- tool | tojson }}{%- endfor %}
{{- '\nTo call one, answer <tool_call>\n{"name": its name, "arguments": an object}' }}
{{- '\n</tool_call><|im_end|>\n' }}
{%- endif %}
{%- for message in messages %}
{%- if message.role == 'tool' %}
{{- '<|im_start|>user\n<tool_response>\n' + message.content }}
{{- '\n</tool_response><|im_end|>\n' }}
{%- else %}
{{- '<|im_start|>' + message.role }}
{%- if message.content %}{{- '\n' + message.content }}{%- endif %}
{%- for call in message.tool_calls or [] %}
{{- '\n<tool_call>\n{"name": "' }}{{- call.function.name }}{{- '", "arguments": ' }}
{{- call.function.arguments | tojson }}{{- '}\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"""
_KEY = b"tokenizer.chat_template"
_STRING = 8
_ALIGNMENT_BYTES = 32


def with_tools(path: Path) -> Path:
    """Write that model to `path` and return it.

    Weights have offsets relative to the end of the metadata, aligned to 32 bytes, so the template
    may grow in steps of 32 bytes (docs/gguf.md of https://github.com/ggml-org/ggml).
    """
    data = model_path().read_bytes()
    at = data.index(_KEY) + len(_KEY)
    kind, length = struct.unpack_from("<IQ", data, at)
    assert kind == _STRING
    template = TEMPLATE.encode()
    # A template comment of at least four characters fills the last step.
    room = (length - len(template) - 4) % _ALIGNMENT_BYTES
    template = b"{#" + b" " * room + b"#}" + template
    rest = data[at + struct.calcsize("<IQ") + length :]
    path.write_bytes(data[:at] + struct.pack("<IQ", kind, len(template)) + template + rest)
    return path
