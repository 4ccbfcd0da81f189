"""``/v1`` in OpenAI's shape: what was written for that interface finds chats, speech and pictures.

Each address hands its request to an operation, in the operation's own words: the contract checks it
there, and the same keys, scopes, quotas and limits hold.
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

#: What all addresses begin with.
PREFIX = "/v1/"
#: Names of models follow, in which a slash may be encoded.
MODELS = "/v1/models/"


class ChatCompletions(OpenAiEndpoint, OperationEndpoint):
    """``POST /v1/chat/completions``: the operation ``chat``, which has OpenAI's shape already."""


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
