"""polymux: AI and media operations behind one API, with a native core.

Media in this process:
    `convert_to_mp3`, `convert_many`: Convert audio and video files to MP3.
    `probe`, `decode_audio`: Read the format, tags and samples of media files.
    `aio`: The same functions for asyncio.

Fourteen operations, such as `chat`, `transcribe`, `generate_image` and `read_text`:
    `Local`, `AsyncLocal`: Run them with engines on this machine.
    `Client`, `AsyncClient`: Run them on a server, started with ``polymux serve``.
    `batch`: Run one of them on many inputs, and resume it after an interruption.

More:
    `SongIndex`: Identify and find songs of your music library.
    `PolymuxError`: Base class of all errors; `polymux.errors` lists them.
    `contract`, `notebook`: Operations with their fields; progress bars and ``%%polymux``.

In a shell, ``polymux --help`` lists the commands, and ``polymux doctor`` shows what is missing.

Example:
    >>> import polymux
    >>> converted = polymux.convert_to_mp3("talk.mp4", "talk.mp3", bitrate="128k")
    >>> converted.content_type
    'audio/mpeg'

The names are loaded on first use. ``import polymux`` is therefore fast: it imports no extension
module, no event loop and no third-party package.
"""

import sys

from polymux._util.imports import IMPORTING

# Type checkers know the name. Jedi reads this block, unlike one under a literal False. Importing
# `typing` instead would take about 20 times as long as importing polymux.
TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from importlib.machinery import ModuleSpec

    from IPython.core.interactiveshell import InteractiveShell

    from polymux import aio, contract, notebook
    from polymux._native.version import __version__
    from polymux.batches.api import batch
    from polymux.batches.results import BatchItem, BatchProgress, BatchReport
    from polymux.client.async_client import AsyncClient
    from polymux.client.chat_stream import (
        AsyncChatStream,
        ChatChunk,
        ChatStream,
        decode_chat_stream,
    )
    from polymux.client.options import Retry, Timeout
    from polymux.client.responses import (
        AnswerMessage,
        ChatCompletion,
        Choice,
        OcrText,
        Prediction,
        Song,
        SongList,
        TextResponse,
        ToolCall,
        ToolFunction,
        TranscriptChunk,
        Usage,
    )
    from polymux.client.sync_client import Client
    from polymux.errors import (
        AnswerTooLargeError,
        APIError,
        APIStatusError,
        AuthenticationError,
        BadRequestError,
        ConflictError,
        ConnectError,
        ConnectionLostError,
        DecodeError,
        EncoderError,
        EncryptedMediaError,
        InputChangedError,
        InputError,
        InputNotFoundError,
        InputUnreadableError,
        InternalError,
        InternalServerError,
        InvalidRequestError,
        LimitExceededError,
        MediaError,
        MissingDependencyError,
        NoAudioError,
        NoBackendError,
        NoMatchError,
        NotFoundError,
        OperationCancelledError,
        OutOfMemoryError,
        OutputError,
        OutputExistsError,
        OutputFailedError,
        OutputRefusedError,
        OverloadedError,
        PermissionDeniedError,
        PolymuxError,
        PredictionFailedError,
        Problem,
        RateLimitError,
        RequestTimeoutError,
        RequestTooLargeError,
        SongIndexError,
        StreamInterruptedError,
        TLSError,
        TransportError,
        UndecodableError,
        UnprocessableEntityError,
        UnsupportedEncodingError,
        UnsupportedMediaError,
        URLRefusedError,
    )
    from polymux.local.async_local import AsyncLocal
    from polymux.local.sync_local import Local
    from polymux.media.conversion import convert_many, convert_to_mp3
    from polymux.media.media_file import ConversionOutcome, MediaFile
    from polymux.media.options import Limits
    from polymux.media.probe import decode_audio, probe
    from polymux.media.results import (
        Chapter,
        ConversionReport,
        ConversionWarning,
        Cover,
        MediaInfo,
        PcmAudio,
        Progress,
        StreamInfo,
    )
    from polymux.songs.results import IndexedSong, Match
    from polymux.songs.song_index import SongIndex

__all__ = [
    "APIError",
    "APIStatusError",
    "AnswerMessage",
    "AnswerTooLargeError",
    "AsyncChatStream",
    "AsyncClient",
    "AsyncLocal",
    "AuthenticationError",
    "BadRequestError",
    "BatchItem",
    "BatchProgress",
    "BatchReport",
    "Chapter",
    "ChatChunk",
    "ChatCompletion",
    "ChatStream",
    "Choice",
    "Client",
    "ConflictError",
    "ConnectError",
    "ConnectionLostError",
    "ConversionOutcome",
    "ConversionReport",
    "ConversionWarning",
    "Cover",
    "DecodeError",
    "EncoderError",
    "EncryptedMediaError",
    "IndexedSong",
    "InputChangedError",
    "InputError",
    "InputNotFoundError",
    "InputUnreadableError",
    "InternalError",
    "InternalServerError",
    "InvalidRequestError",
    "LimitExceededError",
    "Limits",
    "Local",
    "Match",
    "MediaError",
    "MediaFile",
    "MediaInfo",
    "MissingDependencyError",
    "NoAudioError",
    "NoBackendError",
    "NoMatchError",
    "NotFoundError",
    "OcrText",
    "OperationCancelledError",
    "OutOfMemoryError",
    "OutputError",
    "OutputExistsError",
    "OutputFailedError",
    "OutputRefusedError",
    "OverloadedError",
    "PcmAudio",
    "PermissionDeniedError",
    "PolymuxError",
    "Prediction",
    "PredictionFailedError",
    "Problem",
    "Progress",
    "RateLimitError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "Retry",
    "Song",
    "SongIndex",
    "SongIndexError",
    "SongList",
    "StreamInfo",
    "StreamInterruptedError",
    "TLSError",
    "TextResponse",
    "Timeout",
    "ToolCall",
    "ToolFunction",
    "TranscriptChunk",
    "TransportError",
    "URLRefusedError",
    "UndecodableError",
    "UnprocessableEntityError",
    "UnsupportedEncodingError",
    "UnsupportedMediaError",
    "Usage",
    "__version__",
    "aio",
    "batch",
    "contract",
    "convert_many",
    "convert_to_mp3",
    "decode_audio",
    "decode_chat_stream",
    "notebook",
    "probe",
]

_HOMES = {
    "_native.version": ("__version__",),
    "client.async_client": ("AsyncClient",),
    "local.async_local": ("AsyncLocal",),
    "batches.api": ("batch",),
    "batches.results": ("BatchItem", "BatchProgress", "BatchReport"),
    "client.options": ("Retry", "Timeout"),
    "client.sync_client": ("Client",),
    "client.chat_stream": ("AsyncChatStream", "ChatChunk", "ChatStream", "decode_chat_stream"),
    "media.conversion": ("convert_many", "convert_to_mp3"),
    "local.sync_local": ("Local",),
    "media.media_file": ("ConversionOutcome", "MediaFile"),
    "media.options": ("Limits",),
    "media.probe": ("decode_audio", "probe"),
    "client.responses": (
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
    ),
    "media.results": (
        "Chapter",
        "ConversionReport",
        "ConversionWarning",
        "Cover",
        "MediaInfo",
        "PcmAudio",
        "Progress",
        "StreamInfo",
    ),
    "songs.song_index": ("SongIndex",),
    "songs.results": ("IndexedSong", "Match"),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}
#: Class names of 0.1 and their new names; using an old one warns.
_NEW_NAMES = {
    "Catalogue": "SongIndex",
    "CatalogueError": "SongIndexError",
    "CatalogueSong": "IndexedSong",
}


class _RenamedModules:
    """An importer for the import paths of 0.1, which warns. It comes last in `sys.meta_path`."""

    def find_spec(self, name: str, *_: object) -> "ModuleSpec | None":
        if not name.startswith("polymux."):
            return None
        from polymux._util.deprecation import spec_of

        return spec_of(name)


sys.meta_path.append(_RenamedModules())


def load_ipython_extension(shell: "InteractiveShell") -> None:
    """Register the cell magic ``%%polymux``; ``%load_ext polymux`` calls it."""
    from polymux.notebook import load_ipython_extension as load

    load(shell)


if not TYPE_CHECKING:  # Otherwise type checkers would accept misspelled names.

    def __getattr__(name: str) -> object:
        """Load a public name on first use (PEP 562)."""
        from importlib import import_module

        if name in _NEW_NAMES:
            from polymux._util.deprecation import warn_of_old_name

            warn_of_old_name("polymux", name, _NEW_NAMES[name])
            name = _NEW_NAMES[name]
        if name not in __all__:
            raise AttributeError(f"module 'polymux' has no attribute {name!r}")
        if name in {"aio", "contract", "notebook"}:
            with IMPORTING:
                return import_module(f"polymux.{name}")
        # All names that are not listed above are exception classes.
        with IMPORTING:
            value = getattr(import_module(f"polymux.{_HOME_OF.get(name, 'errors')}"), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    """Return all public names, loaded or not, for completion."""
    return sorted({*globals(), *__all__})
