"""All operations as coroutine methods."""

from __future__ import annotations

from polymux.operations.async_audio import AsyncAudioOperations
from polymux.operations.async_chat import AsyncChatOperations
from polymux.operations.async_image import AsyncImageOperations
from polymux.operations.async_text import AsyncTextOperations
from polymux.operations.async_video import AsyncVideoOperations


class AsyncOperations(
    AsyncChatOperations,
    AsyncImageOperations,
    AsyncAudioOperations,
    AsyncVideoOperations,
    AsyncTextOperations,
):
    """All operations as coroutine methods."""
