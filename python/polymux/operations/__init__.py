"""The typed methods of all operations, made from the contract.

`Operations` and `AsyncOperations` know what every operation takes and gives, and nothing of how a
request travels: whoever derives from them says that in one method, `_call`.
"""

from __future__ import annotations

from polymux.operations.async_audio import AsyncAudioOperations
from polymux.operations.async_chat import AsyncChatOperations
from polymux.operations.async_image import AsyncImageOperations
from polymux.operations.async_text import AsyncTextOperations
from polymux.operations.async_video import AsyncVideoOperations
from polymux.operations.audio import AudioOperations
from polymux.operations.chat import ChatOperations
from polymux.operations.image import ImageOperations
from polymux.operations.text import TextOperations
from polymux.operations.video import VideoOperations

__all__ = ["AsyncOperations", "Operations"]


class Operations(ChatOperations, ImageOperations, AudioOperations, VideoOperations, TextOperations):
    """All operations as methods."""


class AsyncOperations(
    AsyncChatOperations,
    AsyncImageOperations,
    AsyncAudioOperations,
    AsyncVideoOperations,
    AsyncTextOperations,
):
    """All operations as coroutine methods."""
