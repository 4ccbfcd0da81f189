"""What can go wrong, as one tree.

::

    PolymuxError
    ├── InvalidRequestError (ValueError)          an option or argument is out of its range
    │   └── UnsupportedEncodingError              a body's Content-Type is not taken
    ├── MediaError                                the content of the input is the problem
    │   ├── UnsupportedMediaError                 not one of the accepted containers or codecs
    │   ├── UndecodableError                      broken, or nothing in it can be decoded
    │   ├── NoAudioError                          no audio stream, or not the one asked for
    │   ├── EncryptedMediaError                   protected by DRM or encryption
    │   ├── LimitExceededError                    a limit of `Limits` was passed
    │   └── EncoderError                          the MP3 encoder refused or failed
    ├── InputError (OSError)                      the input cannot be read
    │   ├── InputNotFoundError (FileNotFoundError)
    │   ├── InputUnreadableError                  folder, pipe, device, no permission, read error
    │   └── InputChangedError                     changed while it was being sent
    ├── OutputError (OSError)                     the output cannot be written
    │   ├── OutputExistsError (FileExistsError)   exists, and overwriting was not allowed
    │   ├── OutputRefusedError                    a symlink, folder, device, or the input itself
    │   └── OutputFailedError                     disk full, no permission, write error
    ├── URLRefusedError (ValueError)              a URL that must not be fetched
    ├── TransportError (ConnectionError)          the exchange with a server failed, at `stage`
    │   ├── ConnectError                          no connection: the name, the address, the proxy
    │   │   └── TLSError                          its certificate was refused, or no TLS agreed on
    │   └── ConnectionLostError                   broke off before the answer was whole
    ├── RequestTimeoutError (TimeoutError)        a deadline passed; `limit` says which
    ├── AnswerTooLargeError                       an answer passed a limit of its size
    ├── StreamInterruptedError (ConnectionError)  a streamed answer broke off before its end
    ├── DecodeError (ValueError)                  an answer is not what the interface sends
    ├── APIError                                  the server reported a failure
    │   └── APIStatusError                        by HTTP's status; `request_id`, `body`
    │       ├── BadRequestError                   400
    │       ├── AuthenticationError               401
    │       ├── PermissionDeniedError             403
    │       ├── NotFoundError                     404
    │       ├── ConflictError                     409
    │       ├── RequestTooLargeError              413
    │       ├── UnprocessableEntityError          422
    │       ├── RateLimitError                    429
    │       └── InternalServerError               500 and above
    │           ├── NoBackendError                501
    │           └── OverloadedError               503
    ├── PredictionFailedError                     the model's job failed or was cancelled
    ├── CatalogueError                            a catalogue of songs cannot be read or written
    ├── NoMatchError                              no song is like the recording
    ├── OperationCancelledError                   somebody asked for the end of the operation
    ├── OutOfMemoryError (MemoryError)            an allocation failed
    ├── MissingDependencyError (ImportError)      a part of this installation is missing
    └── InternalError                             a defect of polymux

An exception raised by the caller's own file object or callback is passed on unchanged and is
not in this tree.

Example:
    >>> import polymux
    >>> try:
    ...     polymux.convert_to_mp3("missing.wav")
    ... except polymux.InputNotFoundError as error:
    ...     print(error.code, error.input_name)
    input_not_found missing.wav
"""

from polymux.errors._answers import (
    APIError,
    DecodeError,
    NoMatchError,
    PredictionFailedError,
    RequestTimeoutError,
    StreamInterruptedError,
)
from polymux.errors._base import (
    InternalError,
    InvalidRequestError,
    MissingDependencyError,
    OperationCancelledError,
    OutOfMemoryError,
    PolymuxError,
    Problem,
    UnsupportedEncodingError,
)
from polymux.errors._catalogue import CatalogueError
from polymux.errors._files import (
    InputChangedError,
    InputError,
    InputNotFoundError,
    InputUnreadableError,
    OutputError,
    OutputExistsError,
    OutputFailedError,
    OutputRefusedError,
)
from polymux.errors._media import (
    EncoderError,
    EncryptedMediaError,
    LimitExceededError,
    MediaError,
    NoAudioError,
    UndecodableError,
    UnsupportedMediaError,
)
from polymux.errors._status import (
    APIStatusError,
    AuthenticationError,
    BadRequestError,
    ConflictError,
    InternalServerError,
    NoBackendError,
    NotFoundError,
    OverloadedError,
    PermissionDeniedError,
    RateLimitError,
    RequestTooLargeError,
    UnprocessableEntityError,
)
from polymux.errors._transport import (
    AnswerTooLargeError,
    ConnectError,
    ConnectionLostError,
    TLSError,
    TransportError,
    URLRefusedError,
)

__all__ = [
    "APIError",
    "APIStatusError",
    "AnswerTooLargeError",
    "AuthenticationError",
    "BadRequestError",
    "CatalogueError",
    "ConflictError",
    "ConnectError",
    "ConnectionLostError",
    "DecodeError",
    "EncoderError",
    "EncryptedMediaError",
    "InputChangedError",
    "InputError",
    "InputNotFoundError",
    "InputUnreadableError",
    "InternalError",
    "InternalServerError",
    "InvalidRequestError",
    "LimitExceededError",
    "MediaError",
    "MissingDependencyError",
    "NoAudioError",
    "NoBackendError",
    "NoMatchError",
    "NotFoundError",
    "OperationCancelledError",
    "OutOfMemoryError",
    "OutputError",
    "OutputExistsError",
    "OutputFailedError",
    "OutputRefusedError",
    "OverloadedError",
    "PermissionDeniedError",
    "PolymuxError",
    "PredictionFailedError",
    "Problem",
    "RateLimitError",
    "RequestTimeoutError",
    "RequestTooLargeError",
    "StreamInterruptedError",
    "TLSError",
    "TransportError",
    "URLRefusedError",
    "UndecodableError",
    "UnprocessableEntityError",
    "UnsupportedEncodingError",
    "UnsupportedMediaError",
]

# Where people find them, and import them from.
for _name in __all__:
    globals()[_name].__module__ = __name__
del _name
