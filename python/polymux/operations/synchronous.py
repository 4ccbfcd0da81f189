"""All operations as methods."""

from __future__ import annotations

from polymux.operations.audio import AudioOperations
from polymux.operations.chat import ChatOperations
from polymux.operations.image import ImageOperations
from polymux.operations.text import TextOperations
from polymux.operations.video import VideoOperations


class Operations(ChatOperations, ImageOperations, AudioOperations, VideoOperations, TextOperations):
    """All operations as methods."""
