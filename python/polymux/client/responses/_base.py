"""What all results share: checked members over the parsed answer, immutable, kept whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

from polymux._native import core
from polymux._util.redaction import redact
from polymux._util.text import shown
from polymux.client.responses._members import (
    Member,
    Part,
    Shape,
    error_of,
    fresh,
    joined,
    shape_of,
    wrong,
)
from polymux.errors import DecodeError

if TYPE_CHECKING:
    from polymux.client.answer import Answer
    from polymux.media.media_file import MediaFile

ResultT = TypeVar("ResultT", bound="Result")
AnsweredT = TypeVar("AnsweredT", bound="Answered")

#: Of all results that have none.
_NO_PARTS: dict[str, Any] = {}


class Result:
    """A JSON object of an answer, checked and immutable. Base class.

    Two are equal when they are of one class and their JSON is; they can be hashed, copied and
    pickled.
    """

    __slots__ = ("_made", "_value")
    _value: dict[str, Any]
    #: Parts that were asked for, by name: there from the start, so that threads share it.
    _made: dict[str, Any]
    _members: ClassVar[tuple[Member | Part, ...]] = ()
    _also_known: ClassVar[frozenset[str]] = frozenset()
    _shown: ClassVar[tuple[str, ...]] = ()
    _shape: ClassVar[Shape]
    _has_parts: ClassVar[bool]

    def __init_subclass__(cls) -> None:
        own = [value for value in vars(cls).values() if isinstance(value, (Member, Part))]
        cls._members = (*cls._members, *own)
        cls._shape = shape_of(cls._members)
        cls._has_parts = any(isinstance(one, Part) for one in cls._members)

    def __init__(self, value: Any, *, path: str = "") -> None:
        """Takes over a parsed object; `path` is its place in the answer, for messages."""
        if not core.fits(value, self._shape):
            if not isinstance(value, dict):
                raise wrong(path, f"an object ({type(self).__name__})", value)
            for one in self._members:
                one.check(value, path)
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_made", {} if self._has_parts else _NO_PARTS)

    @classmethod
    def _checked(cls, value: dict[str, Any]) -> Self:
        """Of what was looked at already, with the answer that it is a part of."""
        made = object.__new__(cls)
        object.__setattr__(made, "_value", value)
        object.__setattr__(made, "_made", {} if cls._has_parts else _NO_PARTS)
        return made

    def json(self) -> Any:
        """The whole JSON as plain dicts and lists, unknown members too; a new copy each time."""
        return fresh(self._value)

    @property
    def extra(self) -> dict[str, Any]:
        """The members that this version of polymux does not know, as a new dict."""
        known = self._also_known.union(one.name for one in self._members)
        return {name: fresh(one) for name, one in self._value.items() if name not in known}

    def __setattr__(self, name: str, value: object) -> None:
        """Refused: results are immutable."""
        raise AttributeError(f"a {type(self).__name__} cannot be changed; json() gives a copy")

    def __delattr__(self, name: str) -> None:
        """Refused: results are immutable."""
        raise AttributeError(f"a {type(self).__name__} cannot be changed; json() gives a copy")

    def __eq__(self, other: object) -> bool:
        """Whether the other is of the same class and has the same JSON."""
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._value == other._value)

    def __hash__(self) -> int:
        """Equal results hash alike."""
        return hash((type(self), frozenset(_scalars(self._value))))

    def __repr__(self) -> str:
        """The telling members, shortened."""
        if not hasattr(self, "_value"):
            # In the frames of a failed `__init__`, which tools print with their variables.
            return f"<{type(self).__name__} of an answer that is none>"
        shown_members = ", ".join(f"{name}={shown(getattr(self, name))}" for name in self._shown)
        return redact(f"{type(self).__name__}({shown_members})")

    def __copy__(self) -> Self:
        """Itself, being immutable."""
        return self

    def __deepcopy__(self, memo: object) -> Self:
        """Itself, being immutable."""
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the answer; it is checked again when it is read back."""
        return type(self), (self._value,)


def _scalars(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """What a hash may look at: values that hash alike when they are equal."""
    return [(name, one) for name, one in value.items() if not isinstance(one, (dict, list))]


class Answered:
    """How an answer came about. Empty and None for what no server answered."""

    __slots__ = ()
    _answer: Answer | None

    @classmethod
    def of_answer(cls, answer: Answer) -> Self:
        """Decodes an answer; raises what `decode` raises."""
        return cls.of_value(parsed(answer.body), answer, answer.body)

    @classmethod
    def of_value(cls, value: Any, answer: Answer, raw: bytes = b"", *, path: str = "") -> Self:
        """The result that a parsed answer, or a part of one, is; raises what `decode` raises."""
        place = {"path": path} if path else {}  # Only parts of an answer have one.
        made: Self = cls(value, raw, **place)  # type: ignore[call-arg]
        object.__setattr__(made, "_answer", answer)
        return made

    def _file(self, url: str) -> MediaFile:
        """A file that the answer names, which its server may have as well as anybody."""
        from polymux.client.remote_file import RemoteFile

        return RemoteFile(url) if self._answer is None else self._answer.file(url)

    @property
    def headers(self) -> dict[str, str]:
        """Header fields of the answer, names in lower case; empty for what no server answered."""
        return {} if self._answer is None else self._answer.headers

    @property
    def request_id(self) -> str | None:
        """Names the request in the server's log; None where the server has none."""
        return None if self._answer is None else self._answer.request_id

    @property
    def elapsed_s(self) -> float | None:
        """Seconds that the exchange took, all tries included; None for what no server answered."""
        return None if self._answer is None else self._answer.elapsed_s

    @property
    def retries(self) -> int:
        """How often the request was sent again."""
        return 0 if self._answer is None else self._answer.tries - 1


class Response(Result, Answered):
    """A whole answer. Base class."""

    __slots__ = ("_answer", "_raw")
    _raw: bytes
    _answer: Answer | None

    def __init__(self, value: Any, raw: bytes = b"", *, path: str = "") -> None:
        """Takes over the parsed answer and the bytes it came in."""
        super().__init__(value, path=path)
        object.__setattr__(self, "_raw", raw)
        object.__setattr__(self, "_answer", None)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Decodes the body of an answer.

        Raises:
            DecodeError: No JSON, a member of a wrong type, or one missing that must be there.
        """
        return cls(parsed(body), bytes(body))

    @property
    def raw(self) -> bytes:
        """The bytes as they came; empty for what was part of a larger answer."""
        return self._raw

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickles the answer; it is checked again when it is read back."""
        return restored, (type(self), self._value, self._raw, self._answer)


def restored(kind: type[AnsweredT], value: Any, raw: bytes, answer: Answer | None) -> AnsweredT:
    """An answer out of a pickle."""
    made = kind(value, raw)  # type: ignore[call-arg]
    object.__setattr__(made, "_answer", answer)
    return made


def parsed(body: bytes) -> Any:
    """The body's JSON as Python values. Of members that come twice the last counts.

    Half a surrogate pair, which is no character, becomes U+FFFD.

    Raises:
        DecodeError: It is no JSON.
    """
    try:
        return core.parse_json(body)
    except DecodeError:
        from polymux._native.json_numbers import mended

        whole = mended(body)
        if whole is None:
            raise
        return core.parse_json(whole)


def all_nested(kind: type[ResultT], values: list[Any] | None, path: str) -> tuple[ResultT, ...]:
    """Results for the objects of an array."""
    found = enumerate(values or ())
    return tuple(kind(value, path=joined(path, index)) for index, value in found)


def required_array(value: dict[str, Any], name: str, path: str) -> list[Any]:
    """An array that must be there.

    Raises:
        DecodeError: It is missing, or something else.
    """
    items = value.get(name)
    at = joined(path, name)
    if items is None:
        raise DecodeError(f"{at}: is missing{error_of(value)}")
    if not isinstance(items, list):
        raise wrong(at, "an array", items)
    return items


def required_text(value: dict[str, Any], names: tuple[str, ...], path: str = "") -> str:
    """The text of the first of these members that is there; an array of texts is joined.

    Raises:
        DecodeError: None is there, or it is something else.
    """
    for name in names:
        text = value.get(name)
        if isinstance(text, list) and all(isinstance(one, str) for one in text):
            return "".join(text)
        if text is not None and not isinstance(text, str):
            raise wrong(joined(path, name), "a text", text)
        if text is not None:
            return text
    raise DecodeError(f"{joined(path, names[0])}: is missing{error_of(value)}")


def keep(result: Result, name: str, value: object) -> None:
    """Sets an attribute of a result that is being made."""
    object.__setattr__(result, name, value)
