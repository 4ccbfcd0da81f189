"""The base of all results: immutable, validated views of a parsed response.

Members are checked when a response is decoded, and converted on access.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from polymux._native import core
from polymux._util.imports import IMPORTING
from polymux._util.redaction import redact
from polymux._util.text import shown
from polymux.client.chunk_fields import whole
from polymux.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from polymux.client.answer import Answer
    from polymux.media.media_file import MediaFile

ResultT = TypeVar("ResultT", bound="Result")
ResponseT = TypeVar("ResponseT", bound="Response")
Converted = tuple[type, "Callable[[Any], Any]"]

_KINDS: dict[str, tuple[type, ...]] = {
    "a string": (str,),
    # Some servers send 1.0.
    "an integer": (int, float),
    "a number": (int, float),
    "an object": (dict,),
    "an array": (list,),
}
#: Bits of the types for the native check.
_BITS = {str: 1, int: 2, float: 4, dict: 8, list: 16}


class Shape(NamedTuple):
    """The rules of the native check.

    Attributes:
        kinds: Sum of the allowed type bits, by member name.
        required: Names of required members.
        parts: By member name: shape, whether it is an array, and whether the array may be empty.
    """

    kinds: dict[str, int]
    required: tuple[str, ...]
    parts: dict[str, tuple[Shape, bool, bool]]


def kind_of(value: object) -> str:
    """Return the name of a JSON value's type, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    if isinstance(value, float):
        return "a number"
    return next(
        (name for name, types in _KINDS.items() if isinstance(value, types)),
        "a value that is not JSON",
    )


def is_kind(value: object, kind: str) -> bool:
    """Return whether a value has the given kind. Booleans are not numbers."""
    if kind == "anything":
        return True
    return isinstance(value, _KINDS[kind]) and not isinstance(value, bool)


def wrong(path: str, must: str, value: object) -> DecodeError:
    """Return the exception for a member of a wrong type."""
    return DecodeError(f"{path or 'response'}: invalid type (got {kind_of(value)}, allowed {must})")


def fresh(value: Any) -> Any:
    """Return a deep copy of a parsed value."""
    if isinstance(value, dict):
        return {name: fresh(member) for name, member in value.items()}
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value


def joined(path: str, name: str | int) -> str:
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def error_of(value: dict[str, Any]) -> str:
    """Return the error in a response as a suffix for messages."""
    error = value.get("error")
    return "" if error is None else f" (the response contains error={shown(error)})"


class Member:
    """A member of the response.

    Null counts as absent. Arrays and objects are copied on access, so the response stays unchanged.
    """

    __slots__ = ("absent", "converted", "kind", "name", "required")

    def __init__(
        self,
        kind: str,
        *,
        name: str = "",
        absent: Any = None,
        required: bool = False,
        converted: Converted | None = None,
    ) -> None:
        """Describe a member.

        Args:
            kind: Its kind, a key of `_KINDS` or "anything".
            name: Its name in the response, if it differs from the attribute's.
            absent: Its value if it is missing.
            required: Whether it must exist.
            converted: A type that some servers send instead, and how to convert it.
        """
        self.kind = kind
        self.converted: Converted | None = (float, whole) if kind == "an integer" else converted
        self.name = name
        self.absent = absent
        self.required = required

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, instance: Result | None, owner: type) -> Any:
        if instance is None:
            return self
        value = instance._value.get(self.name)  # noqa: SLF001
        if self.converted is not None and isinstance(value, self.converted[0]):
            value = self.converted[1](value)
        return self.absent if value is None else fresh(value)

    def check(self, value: dict[str, Any], path: str) -> None:
        """Raise DecodeError if the member is invalid or missing."""
        member = value.get(self.name)
        if member is None:
            if self.required:
                raise DecodeError(f"{joined(path, self.name)}: missing{error_of(value)}")
        elif not is_kind(member, self.kind) and type(member) not in (self.converted or ()):
            raise wrong(joined(path, self.name), self.kind, member)


class Part:
    """A member that is a nested result, or an array of results.

    It is checked together with the whole response, and created once, on first access.
    """

    __slots__ = ("kind", "made_of_nothing", "many", "name", "required")

    def __init__(
        self, kind: type[Result], *, many: bool, required: bool, made_of_nothing: bool = False
    ) -> None:
        """`required`: the member must exist; an array must not be empty."""
        self.kind = kind
        self.many = many
        self.required = required
        self.made_of_nothing = made_of_nothing
        self.name = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def __get__(self, instance: Result | None, owner: type) -> Any:
        if instance is None:
            return self
        made = instance._made  # noqa: SLF001
        found = made.get(self.name, made)
        if found is made:  # `setdefault`: concurrent threads get the same object.
            found = made.setdefault(self.name, self._make(instance._value.get(self.name)))  # noqa: SLF001
        return found

    def _make(self, value: Any) -> Any:
        checked = self.kind._checked  # noqa: SLF001
        if self.many:
            return tuple([checked(one) for one in value or ()])
        if value is None:
            return checked({}) if self.made_of_nothing else None
        return checked(value)

    def check(self, value: dict[str, Any], path: str) -> None:
        """Raise DecodeError if the member is invalid or missing."""
        part, at = value.get(self.name), joined(path, self.name)
        if part is None:
            if self.required:
                raise DecodeError(f"{at}: missing{error_of(value)}")
        elif not self.many:
            self.kind(part, path=at)
        elif not isinstance(part, list):
            raise wrong(at, "an array", part)
        elif self.required and not part:
            raise DecodeError(f"{at}: must not be empty")
        else:
            for index, one in enumerate(part):
                self.kind(one, path=joined(at, index))


def member(kind: str, **options: Any) -> Any:
    """Return a `Member`, typed as its value for type checkers."""
    return Member(kind, **options)


def part(kind: type[Result], *, required: bool = False, made_of_nothing: bool = False) -> Any:
    """Return a nested result; a missing one is None, or an empty result if `made_of_nothing`."""
    return Part(kind, many=False, required=required, made_of_nothing=made_of_nothing)


def parts(kind: type[Result], *, required: bool = False) -> Any:
    """Return a tuple of nested results; if `required`, at least one."""
    return Part(kind, many=True, required=required)


def shape_of(members: Sequence[Member | Part]) -> Shape:
    """Return the rules of the native check for these members."""
    leaves = [one for one in members if isinstance(one, Member) and one.kind != "anything"]
    nested = [one for one in members if isinstance(one, Part)]
    return Shape(
        {one.name: sum(_BITS[kind] for kind in _kinds_of(one)) for one in leaves},
        tuple(one.name for one in members if one.required),
        {one.name: (one.kind._shape, one.many, not one.required) for one in nested},  # noqa: SLF001
    )


def _kinds_of(one: Member) -> set[type]:
    also = () if one.converted is None else (one.converted[0],)
    return {*_KINDS[one.kind], *also}


#: Shared by all results without parts.
_NO_PARTS: dict[str, Any] = {}


class Result:
    """A JSON object of a response, validated and immutable. Base class.

    Results are equal if their class and JSON are equal. They can be hashed, copied and pickled.
    """

    __slots__ = ("_made", "_value")
    _value: Any
    #: Created parts by name. It exists from the start because threads share it.
    _made: dict[str, Any]
    _members: ClassVar[tuple[Member | Part, ...]] = ()
    _also_known: ClassVar[frozenset[str]] = frozenset()
    _shown: ClassVar[tuple[str, ...]] = ()
    _shape: ClassVar[Shape]
    _has_parts: ClassVar[bool]
    #: How to get a modifiable copy, for messages.
    _copied_by: ClassVar[str] = "Use json() to get a copy"

    def __init_subclass__(cls) -> None:
        own = [value for value in vars(cls).values() if isinstance(value, (Member, Part))]
        cls._members = (*cls._members, *own)
        cls._shape = shape_of(cls._members)
        cls._has_parts = any(isinstance(one, Part) for one in cls._members)

    def __init__(self, value: Any, *, path: str = "") -> None:
        """Wrap a parsed object. `path`: its position in the response, for messages."""
        if not core.fits(value, self._shape):
            if not isinstance(value, dict):
                raise wrong(path, f"an object ({type(self).__name__})", value)
            for one in self._members:
                one.check(value, path)
        object.__setattr__(self, "_value", value)
        object.__setattr__(self, "_made", {} if self._has_parts else _NO_PARTS)

    @classmethod
    def _checked(cls, value: dict[str, Any]) -> Self:
        """Wrap an object that was validated together with the response that contains it."""
        made = object.__new__(cls)
        object.__setattr__(made, "_value", value)
        object.__setattr__(made, "_made", {} if cls._has_parts else _NO_PARTS)
        return made

    def json(self) -> Any:
        """Return the whole JSON, including unknown members, as new dicts and lists."""
        return fresh(self._value)

    @property
    def extra(self) -> dict[str, Any]:
        """The members that this version of polymux does not know, as a new dict."""
        known = self._also_known.union(one.name for one in self._members)
        return {name: fresh(one) for name, one in self._value.items() if name not in known}

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}: cannot be changed. {self._copied_by}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}: cannot be changed. {self._copied_by}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(_scalars(self._value))))

    def __repr__(self) -> str:
        if not hasattr(self, "_value"):
            # Debuggers print the local variables of a failed `__init__`.
            return f"<{type(self).__name__} of an invalid response>"
        shown_members = ", ".join(f"{name}={shown(getattr(self, name))}" for name in self._shown)
        return redact(f"{type(self).__name__}({shown_members})")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


def _scalars(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """Return the members that can be hashed so that equal results have equal hashes."""
    return [(name, one) for name, one in value.items() if not isinstance(one, (dict, list))]


class Response(Result):
    """A complete response with its metadata. Base class."""

    __slots__ = ("_answer", "_raw")
    _raw: bytes
    _answer: Answer | None

    def __init__(self, value: Any, raw: bytes = b"", *, path: str = "") -> None:
        """Wrap a parsed response and its bytes."""
        super().__init__(value, path=path)
        object.__setattr__(self, "_raw", raw)
        object.__setattr__(self, "_answer", None)

    @classmethod
    def decode(cls, body: bytes) -> Self:
        """Decode the body of a response.

        Raises:
            DecodeError: Invalid JSON, a member of a wrong type, or a missing required member.
        """
        return cls(parsed(body), bytes(body))

    @classmethod
    def of_answer(cls, answer: Answer) -> Self:
        """Decode a response; see `decode` for the exceptions."""
        return cls.of_value(parsed(answer.body), answer, answer.body)

    @classmethod
    def of_value(cls, value: Any, answer: Answer, raw: bytes = b"", *, path: str = "") -> Self:
        """Create a result from a parsed response or a part of it; see `decode`."""
        made = cls(value, raw, path=path)
        object.__setattr__(made, "_answer", answer)
        return made

    def _file(self, url: str) -> MediaFile:
        """Return a file that the response refers to and that its server may host."""
        with IMPORTING:
            from polymux.client.remote_file import RemoteFile

        return RemoteFile(url) if self._answer is None else self._answer.file(url)

    @property
    def headers(self) -> dict[str, str]:
        """Header fields with lower-case names; empty if the result is not from a server."""
        return {} if self._answer is None else self._answer.headers

    @property
    def request_id(self) -> str | None:
        """The ID of the request in the server's log; None if the server does not send one."""
        return None if self._answer is None else self._answer.request_id

    @property
    def elapsed_s(self) -> float | None:
        """Duration in seconds including all attempts; None if the result is not from a server."""
        return None if self._answer is None else self._answer.elapsed_s

    @property
    def retries(self) -> int:
        """Number of retries of the request."""
        return 0 if self._answer is None else self._answer.tries - 1

    @property
    def retry_reasons(self) -> tuple[str, ...]:
        """For each time that the request was sent again: why, and after which delay.

        A server that refused the request, or closed the connection before it received it, gets it
        again at once. `retries` does not count that.
        """
        return () if self._answer is None else self._answer.retry_reasons

    @property
    def raw(self) -> bytes:
        """The received bytes; empty for a part of a larger response."""
        return self._raw

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self._value, self._raw, self._answer)


def restored(kind: type[ResponseT], value: Any, raw: bytes, answer: Answer | None) -> ResponseT:
    """Restore a result from a pickle."""
    made = kind(value, raw)
    object.__setattr__(made, "_answer", answer)
    return made


def parsed(body: bytes) -> Any:
    """Parse the body's JSON. If an object has duplicate members, the last one wins.

    Lone surrogates become U+FFFD.

    Raises:
        DecodeError: Invalid JSON.
    """
    try:
        return core.parse_json(body)
    except DecodeError:
        with IMPORTING:
            from polymux._native.json_numbers import mended

        whole = mended(body)
        if whole is None:
            raise
        return core.parse_json(whole)


def all_nested(kind: type[ResultT], values: list[Any] | None, path: str) -> tuple[ResultT, ...]:
    """Create results for the objects of an array."""
    found = enumerate(values or ())
    return tuple(kind(value, path=joined(path, index)) for index, value in found)


def required_array(value: dict[str, Any], name: str, path: str) -> list[Any]:
    """Return a required array.

    Raises:
        DecodeError: It is missing or not an array.
    """
    items = value.get(name)
    at = joined(path, name)
    if items is None:
        raise DecodeError(f"{at}: missing{error_of(value)}")
    if not isinstance(items, list):
        raise wrong(at, "an array", items)
    return items


def keep(result: Result, name: str, value: object) -> None:
    """Set an attribute of a result during its construction."""
    object.__setattr__(result, name, value)
