"""Responses of a server as small immutable results.

Each result keeps the whole response: `raw` has the received bytes, `json` returns a copy of all
data, and `extra` has the members that this version of polymux does not know. Optional members that
are missing are None or empty. A member of a wrong type raises `polymux.DecodeError` with its name
when the response is decoded. If an object has duplicate members, the last one wins.

Example:
    >>> import polymux
    >>> body = b'{"status": "succeeded", "output": ["https://files.example/1.png"], "new": 1}'
    >>> job = polymux.Prediction.decode(body)
    >>> job.images, job.extra
    ((RemoteFile('https://files.example/1.png'),), {'new': 1})
"""

from polymux.client.responses.chat import (
    AnswerMessage,
    ChatCompletion,
    Choice,
    ToolCall,
    ToolFunction,
    Usage,
)
from polymux.client.responses.prediction import Prediction, TranscriptChunk
from polymux.client.responses.songs import Song, SongList
from polymux.client.responses.text import OcrText, TextResponse, media_url

__all__ = [
    "AnswerMessage",
    "ChatCompletion",
    "Choice",
    "OcrText",
    "Prediction",
    "Song",
    "SongList",
    "TextResponse",
    "ToolCall",
    "ToolFunction",
    "TranscriptChunk",
    "Usage",
    "media_url",
]
