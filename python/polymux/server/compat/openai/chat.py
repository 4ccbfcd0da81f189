"""``POST /v1/chat/completions``: the operation ``chat``, which has OpenAI's shape already."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux import contract
from polymux.server.compat.openai.errors import OpenAiEndpoint
from polymux.server.routes.operations import OperationEndpoint

if TYPE_CHECKING:
    from polymux.server.state import ServerState


class ChatCompletions(OpenAiEndpoint, OperationEndpoint):
    """Answers conversations, whole or in pieces."""

    def __init__(self, state: ServerState) -> None:
        super().__init__(state, contract.operation("chat"))
