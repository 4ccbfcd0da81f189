"""All operations as methods."""

from __future__ import annotations

from polymux.client.methods.audio import AudioOperations
from polymux.client.methods.chat import ChatOperations
from polymux.client.methods.image import ImageOperations
from polymux.client.methods.text import TextOperations
from polymux.client.methods.video import VideoOperations


class Operations(ChatOperations, ImageOperations, AudioOperations, VideoOperations, TextOperations):
    """All operations as methods."""
