"""Answers of a server, decoded into small immutable results.

Each keeps the whole answer: `raw` is the bytes as they came, `json` a copy of all of it, `extra`
what this version of polymux does not know. What a server may leave out is None or empty; a member
of a wrong type is a `polymux.DecodeError` that names it, when the answer is decoded. Of members
that come twice in an object the last counts.

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
