"""All operations as coroutine methods."""

from __future__ import annotations

from polymux.client.methods.async_audio import AsyncAudioOperations
from polymux.client.methods.async_chat import AsyncChatOperations
from polymux.client.methods.async_image import AsyncImageOperations
from polymux.client.methods.async_text import AsyncTextOperations
from polymux.client.methods.async_video import AsyncVideoOperations


class AsyncOperations(
    AsyncChatOperations,
    AsyncImageOperations,
    AsyncAudioOperations,
    AsyncVideoOperations,
    AsyncTextOperations,
):
    """All operations as coroutine methods."""
