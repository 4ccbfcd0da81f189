"""Errors of media: the content of an input is the problem."""

from __future__ import annotations

from polymux.errors._base import PolymuxError


class MediaError(PolymuxError):
    """The content of the input is the problem. Base class."""

    code = "media_error"


class UnsupportedMediaError(MediaError):
    """The content is not one of the accepted containers or codecs."""

    code = "unsupported_media"


class UndecodableError(MediaError):
    """An accepted container that is broken, or that holds nothing decodable."""

    code = "undecodable"


class NoAudioError(MediaError):
    """The media holds no audio stream, or not the one asked for."""

    code = "no_audio"


class EncryptedMediaError(MediaError):
    """The media is protected by DRM or encryption."""

    code = "encrypted"


class LimitExceededError(MediaError):
    """A limit of `polymux.Limits` was passed; the message gives both numbers."""

    code = "limit_exceeded"


class EncoderError(MediaError):
    """The MP3 encoder refused the settings or failed while encoding."""

    code = "encoder_failed"
