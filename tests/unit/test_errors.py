"""The exception tree: bases, attributes, text, pickling and copying."""

from __future__ import annotations

import copy
import errno
import inspect
import pickle
import re

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

#: Every name of the native core's ErrorCode, with the class and built-in base it becomes.
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


def full(kind: type[polymux.PolymuxError]) -> polymux.PolymuxError:
    return kind(
        "the stream is broken",
        code="special",
        input_name="a.mp4",
        position_s=12.5,
        ffmpeg_code=-1094995529,
        ffmpeg_text="Invalid data found",
        errno=errno.EIO,
    )


def attributes(error: polymux.PolymuxError) -> dict[str, object]:
    names = ("message", "code", "input_name", "position_s", "ffmpeg_code", "ffmpeg_text", "errno")
    return {name: getattr(error, name) for name in names}


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_pickles_and_copies_with_everything(kind: type[polymux.PolymuxError]) -> None:
    error = full(kind)
    error.add_note("seen in a test")
    copies = [pickle.loads(pickle.dumps(error, protocol)) for protocol in range(6)]
    for twin in [*copies, copy.copy(error), copy.deepcopy(error)]:
        assert type(twin) is kind
        assert attributes(twin) == attributes(error)
        assert str(twin) == str(error)
        assert twin.args == error.args == ("the stream is broken",)
        assert twin.__notes__ == ["seen in a test"]


@pytest.mark.parametrize("kind", CLASSES, ids=lambda kind: kind.__name__)
def test_defaults_of_attributes(kind: type[polymux.PolymuxError]) -> None:
    error = kind("something")
    assert str(error) == "something"
    assert error.code == kind.code
    assert (error.position_s, error.ffmpeg_code, error.errno) == (None, None, None)
    assert (error.input_name, error.ffmpeg_text) == ("", "")


def test_the_drawn_tree_is_the_real_one() -> None:
    lines = re.findall(r"^([│ ├└─]*)(\w+Error)(?: \((\w+)\))?", errors.__doc__ or "", re.MULTILINE)
    parents: list[str] = []
    drawn = []
    for branches, name, builtin in lines:
        depth = len(branches) // 4 - 1
        del parents[depth:]
        kind = getattr(errors, name)
        if parents:
            assert issubclass(kind, getattr(errors, parents[-1])), name
        if builtin:
            assert issubclass(kind, __builtins__[builtin]), name  # type: ignore[index]
        parents.append(name)
        drawn.append(name)
    assert sorted(drawn) == sorted(kind.__name__ for kind in PUBLIC)


def test_codes_are_unique() -> None:
    codes = [kind.code for kind in PUBLIC]
    assert len(set(codes)) == len(codes)


@pytest.mark.parametrize("code", NATIVE)
def test_native_errors_become_their_class(code: str) -> None:
    kind, base = NATIVE[code]
    error = native_errors.from_native(code, "no good", "x.wav", 1.5, -2, "FFmpeg says", 5, "send")
    assert type(error) is kind
    assert isinstance(error, base)
    assert (error.code, error.input_name, error.position_s) == (code, "x.wav", 1.5)
    assert (error.ffmpeg_code, error.ffmpeg_text, error.errno) == (-2, "FFmpeg says", 5)
    bare = native_errors.from_native(code, "no good", None, None, None, None, None, "")
    assert str(bare) == "no good"


def test_a_transport_error_names_its_stage_and_a_timeout_its_limit() -> None:
    lost = native_errors.from_native(
        "connection_lost", "it is gone", None, None, None, None, errno.ECONNRESET, "receive"
    )
    assert isinstance(lost, polymux.ConnectionLostError)
    assert (lost.stage, lost.errno) == ("receive", errno.ECONNRESET)
    late = native_errors.from_native(
        "timed_out", "too late", None, None, None, None, None, "first_byte"
    )
    assert isinstance(late, polymux.RequestTimeoutError)
    assert late.limit == "first_byte"
    assert pickle.loads(pickle.dumps(late)).limit == "first_byte"


def test_operating_system_errors_carry_what_handlers_look_at() -> None:
    error = native_errors.from_native(
        "input_not_found", "cannot read 'x.wav'", "x.wav", None, None, None, errno.ENOENT, ""
    )
    assert isinstance(error, FileNotFoundError)
    assert error.filename == "x.wav"
    assert error.strerror == "No such file or directory"
    assert str(error) == "cannot read 'x.wav'"


def test_text_names_input_and_ffmpeg_once() -> None:
    assert str(full(polymux.UndecodableError)) == (
        "a.mp4: the stream is broken (FFmpeg: Invalid data found)"
    )
    told = polymux.UndecodableError(
        "cannot decode a.mp4: Invalid data found",
        input_name="a.mp4",
        ffmpeg_text="Invalid data found",
    )
    assert str(told) == "cannot decode a.mp4: Invalid data found"


def test_input_names_are_bounded_and_printable() -> None:
    error = polymux.InputNotFoundError("gone", input_name="a\x1b[31m" + "x" * 5000 + ".wav")
    assert len(str(error)) < 300
    assert "\x1b" not in str(error)
    assert error.input_name.endswith(".wav")


def test_to_dict_is_plain_and_leaves_out_what_is_not_known() -> None:
    assert polymux.NoAudioError("silent", input_name="a.mkv").to_dict() == {
        "type": "NoAudioError",
        "code": "no_audio",
        "message": "a.mkv: silent",
        "input_name": "a.mkv",
    }
    assert full(polymux.OutputFailedError).to_dict()["position_s"] == 12.5
