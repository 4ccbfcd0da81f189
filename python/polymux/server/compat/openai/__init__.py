"""The OpenAI compatibility API under ``/v1``: chats, speech to text and images.

Each route converts its request to an operation. The contract checks it, and the same API keys,
scopes, quotas and limits apply.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux import contract
from polymux.server.compat.openai.audio import Transcriptions, Translations
from polymux.server.compat.openai.errors import OpenAiEndpoint
from polymux.server.compat.openai.images import ImageEdits, ImageGenerations
from polymux.server.compat.openai.models import ModelItem, ModelList
from polymux.server.routes.operations import OperationEndpoint

if TYPE_CHECKING:
    from polymux.server.routes.endpoint import Endpoint
    from polymux.server.state import ServerState

#: Prefix of all routes.
PREFIX = "/v1/"
#: Followed by a model name, which may contain an encoded slash.
MODELS = "/v1/models/"


class ChatCompletions(OpenAiEndpoint, OperationEndpoint):
    """``POST /v1/chat/completions``: the operation ``chat``, which has the same format."""


def routes(state: ServerState) -> list[tuple[str, Endpoint]]:
    return [
        ("/v1/chat/completions", ChatCompletions(state, contract.operation("chat"))),
        ("/v1/models", ModelList(state)),
        (f"{MODELS}{{model:path}}", ModelItem(state)),
        ("/v1/audio/transcriptions", Transcriptions(state)),
        ("/v1/audio/translations", Translations(state)),
        ("/v1/images/generations", ImageGenerations(state)),
        ("/v1/images/edits", ImageEdits(state)),
    ]
