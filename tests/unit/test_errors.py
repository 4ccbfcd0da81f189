from __future__ import annotations

import builtins
import copy
import errno
import inspect
import pickle
import re
from typing import Any

import polymux
import pytest
from polymux import errors
from polymux._native import errors as native_errors

CLASSES = [
    value
    for value in vars(errors).values()
    if inspect.isclass(value) and issubclass(value, errors.PolymuxError)
]
PUBLIC = [value for value in CLASSES if not value.__name__.startswith("_")]

#: Every ErrorCode of the native core, with its exception class and built-in base class.
NATIVE = {
    "invalid_argument": (polymux.InvalidRequestError, ValueError),
    "unsupported_encoding": (polymux.UnsupportedEncodingError, polymux.InvalidRequestError),
    "input_not_found": (polymux.InputNotFoundError, FileNotFoundError),
    "input_unreadable": (polymux.InputUnreadableError, OSError),
    "input_changed": (polymux.InputChangedError, OSError),
    "unsupported_media": (polymux.UnsupportedMediaError, polymux.MediaError),
    "undecodable": (polymux.UndecodableError, polymux.MediaError),
    "no_audio": (polymux.NoAudioError, polymux.MediaError),
    "encrypted": (polymux.EncryptedMediaError, polymux.MediaError),
    "limit_exceeded": (polymux.LimitExceededError, polymux.MediaError),
    "output_exists": (polymux.OutputExistsError, FileExistsError),
    "output_refused": (polymux.OutputRefusedError, OSError),
    "output_failed": (polymux.OutputFailedError, OSError),
    "cancelled": (polymux.OperationCancelledError, polymux.PolymuxError),
    "callback_failed": (polymux.InternalError, polymux.PolymuxError),
    "encoder_failed": (polymux.EncoderError, polymux.MediaError),
    "url_refused": (polymux.URLRefusedError, ValueError),
    "connect_failed": (polymux.ConnectError, ConnectionError),
    "tls_failed": (polymux.TLSError, polymux.ConnectError),
    "connection_lost": (polymux.ConnectionLostError, ConnectionError),
    "timed_out": (polymux.RequestTimeoutError, TimeoutError),
    "answer_too_large": (polymux.AnswerTooLargeError, polymux.PolymuxError),
    "undecodable_answer": (polymux.DecodeError, ValueError),
    "out_of_memory": (polymux.OutOfMemoryError, MemoryError),
    "internal": (polymux.InternalError, polymux.PolymuxError),
}


FULL = {"code": "special", "input_name": "a.mp4", "position_s": 12.5, "ffmpeg_code": -1094995529,
        "ffmpeg_text": "Invalid data found", "errno": errno.EIO}  # fmt: skip
NONE = {"input_name": "", "position_s": None, "ffmpeg_code": None, "ffmpeg_text": "", "errno": None}


def attributes(error: polymux.PolymuxError) -> dict[str, object]:
    return {name: getattr(error, name) for name in FULL}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_pickles_and_copies_with_everything(kind: type[polymux.PolymuxError]) -> None:
    bare = kind("something")
    assert (str(bare), attributes(bare)) == ("something", {"code": kind.code, **NONE})
    given: dict[str, Any] = FULL
    error = kind("the stream is broken", **given)
    error.add_note("seen in a test")
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(6)]
    for twin in [*copies, copy.copy(error), copy.deepcopy(error)]:
        assert type(twin) is kind
        assert attributes(twin) == attributes(error) == FULL
        assert str(twin) == str(error)
        assert twin.args == error.args == ("the stream is broken",)
        assert twin.__notes__ == ["seen in a test"]


def test_the_drawn_tree_is_the_real_one() -> None:
    lines = re.findall(r"^([│ ├└─]*)(\w+Error)(?: \((\w+)\))?", errors.__doc__ or "", re.MULTILINE)
    parents: list[str] = []
    for branches, name, builtin in lines:
        del parents[len(branches) // 4 - 1 :]
        kind = getattr(errors, name)
        if parents:
            assert issubclass(kind, getattr(errors, parents[-1])), name
        if builtin:
            assert issubclass(kind, getattr(builtins, builtin)), name
        parents.append(name)
    assert sorted(name for _, name, _ in lines) == sorted(kind.__name__ for kind in PUBLIC)


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in PUBLIC]
    assert len(set(codes)) == len(codes)


def native(code: str, *given: Any) -> Any:
    """An error with input, position, FFmpeg code, FFmpeg text and errno; missing ones are None."""
    return native_errors.from_native(code, "no good", *given, *[None] * (5 - len(given)), "send")


@pytest.mark.parametrize("code", NATIVE)
def test_native_errors_become_their_class(code: str) -> None:
    kind, base = NATIVE[code]
    error = native(code, "x.wav", 1.5, -2, "FFmpeg says", 5)
    assert type(error) is kind
    assert isinstance(error, base)
    assert list(attributes(error).values()) == [code, "x.wav", 1.5, -2, "FFmpeg says", 5]
    assert str(native(code)) == "no good"


def test_a_transport_error_names_its_stage_and_a_timeout_its_limit() -> None:
    lost = native("connection_lost", None, None, None, None, errno.ECONNRESET)
    assert (lost.stage, lost.errno) == ("send", errno.ECONNRESET)
    late = native("timed_out")
    assert late.limit == pickle.loads(pickle.dumps(late)).limit == "send"


def test_operating_system_errors_carry_what_handlers_look_at() -> None:
    error = native("input_not_found", "x.wav", None, None, None, errno.ENOENT)
    assert error.filename == "x.wav"
    assert error.strerror == "No such file or directory"


def test_text_names_input_and_ffmpeg_once() -> None:
    given: dict[str, Any] = FULL
    for message in ("it is broken", "cannot decode a.mp4: Invalid data found"):
        text = str(polymux.UndecodableError(message, **given))
        assert message in text
        assert text.count("a.mp4") == text.count("Invalid data found") == 1
    error = polymux.InputNotFoundError("gone", input_name="a\x1b[31m" + "x" * 5000 + ".wav")
    assert len(str(error)) < 300
    assert "\x1b" not in str(error)
    assert error.input_name.endswith(".wav")


def test_to_dict_is_plain_and_leaves_out_what_is_not_known() -> None:
    assert polymux.NoAudioError("silent", input_name="a.mkv", position_s=1.5).to_dict() == {
        "type": "NoAudioError",
        "code": "no_audio",
        "message": "a.mkv: silent",
        "input_name": "a.mkv",
        "position_s": 1.5,
    }
