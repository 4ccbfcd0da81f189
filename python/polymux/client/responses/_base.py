"""What all results share: checked members over the parsed answer, immutable, kept whole.

A member is checked when an answer is decoded, and read where it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Self, TypeVar

from polymux._native import core
from polymux._util.redaction import redact
from polymux._util.text import shown
from polymux.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.client.answer import Answer
    from polymux.media.media_file import MediaFile

ResultT = TypeVar("ResultT", bound="Result")
ResponseT = TypeVar("ResponseT", bound="Response")

_KINDS: dict[str, tuple[type, ...]] = {
    "a text": (str,),
    "an integer": (int,),
    "a number": (int, float),
    "an object": (dict,),
    "an array": (list,),
}
#: For the native check.
_BITS = {str: 1, int: 2, float: 4, dict: 8, list: 16}


class Shape(NamedTuple):
    """What the native check looks at.

    Attributes:
        kinds: Name to the sum of the bits of its kinds.
        required: Names that must be there.
        parts: Name to shape, whether it is an array of such, and whether that may be empty.
    """

    kinds: dict[str, int]
    required: tuple[str, ...]
    parts: dict[str, tuple[Shape, bool, bool]]


def kind_of(value: object) -> str:
    """What a value of JSON is, for messages."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "a boolean"
    return next((name for name, types in _KINDS.items() if isinstance(value, types)), "no JSON")


def is_kind(value: object, kind: str) -> bool:
    """Whether a value is of that kind; true and false are no numbers."""
    if kind == "anything":
        return True
    return isinstance(value, _KINDS[kind]) and not isinstance(value, bool)


def wrong(path: str, must: str, value: object) -> DecodeError:
    """The exception for a member of a wrong type."""
    return DecodeError(f"{path or 'the answer'}: must be {must}, not {kind_of(value)}")


def fresh(value: Any) -> Any:
    """A copy of a parsed value that shares nothing that can be changed."""
    if isinstance(value, dict):
        return {name: fresh(member) for name, member in value.items()}
    if isinstance(value, list):
        return [fresh(item) for item in value]
    return value


def joined(path: str, name: str | int) -> str:
    """The path of a member or item."""
    if isinstance(name, int):
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name


def error_of(value: dict[str, Any]) -> str:
    """What an answer says that went wrong, to be added to a message."""
    error = value.get("error")
    return "" if error is None else f"; the answer says error={shown(error)}"


class Member:
    """A member of the answer.

    Null counts as absent. Arrays and objects come as copies, so that nobody changes the answer.
    """

    __slots__ = ("absent", "kind", "name", "required")

    def __init__(
        self, kind: str, *, name: str = "", absent: Any = None, required: bool = False
    ) -> None:
        """`name` is the one in the answer, where it is not that of the attribute."""
        self.kind = kind
        self.name = name
        self.absent = absent
        self.required = required

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = self.name or name

    def __get__(self, instance: Result | None, owner: type) -> Any:
        if instance is None:
            return self
        value = instance._value.get(self.name)  # noqa: SLF001
        return self.absent if value is None else fresh(value)

    def check(self, value: dict[str, Any], path: str) -> None:
        """Raises DecodeError where the member is not as it must be."""
        member = value.get(self.name)
        if member is None:
            if self.required:
                raise DecodeError(f"{joined(path, self.name)}: is missing{error_of(value)}")
        elif not is_kind(member, self.kind):
            raise wrong(joined(path, self.name), self.kind, member)


class Part:
    """A member that is an answer of a class of its own, or an array of such.

    Checked with the whole; made when it is asked for, once.
    """

    __slots__ = ("kind", "made_of_nothing", "many", "name", "required")

    def __init__(
        self, kind: type[Result], *, many: bool, required: bool, made_of_nothing: bool = False
    ) -> None:
        """A required array has one at least."""
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
        if found is made:  # Two threads at once take what the first has made.
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
        """Raises DecodeError where it is not as it must be."""
        part, at = value.get(self.name), joined(path, self.name)
        if part is None:
            if self.required:
                raise DecodeError(f"{at}: is missing{error_of(value)}")
        elif not self.many:
            self.kind(part, path=at)
        elif not isinstance(part, list):
            raise wrong(at, "an array", part)
        elif self.required and not part:
            raise DecodeError(f"{at}: must not be empty")
        else:
            for index, one in enumerate(part):
                self.kind(one, path=joined(at, index))


def member(kind: str, *, name: str = "", absent: Any = None, required: bool = False) -> Any:
    """A `Member` that type checkers take for what it gives."""
    return Member(kind, name=name, absent=absent, required=required)


def part(kind: type[Result], *, required: bool = False, made_of_nothing: bool = False) -> Any:
    """An answer within the answer; None where there is none, unless it is `made_of_nothing`."""
    return Part(kind, many=False, required=required, made_of_nothing=made_of_nothing)


def parts(kind: type[Result], *, required: bool = False) -> Any:
    """Answers within the answer, a tuple; with `required` at least one."""
    return Part(kind, many=True, required=required)


def shape_of(members: Sequence[Member | Part]) -> Shape:
    """What the native check is to look at."""
    leaves = [one for one in members if isinstance(one, Member) and one.kind != "anything"]
    nested = [one for one in members if isinstance(one, Part)]
    return Shape(
        {one.name: sum(_BITS[kind] for kind in _KINDS[one.kind]) for one in leaves},
        tuple(one.name for one in members if one.required),
        {one.name: (one.kind._shape, one.many, not one.required) for one in nested},  # noqa: SLF001
    )


#: Of all results that have none.
_NO_PARTS: dict[str, Any] = {}


class Result:
    """A JSON object of an answer, checked and immutable. Base class.

    Two are equal when they are of one class and their JSON is; they can be hashed, copied and
    pickled.
    """

    __slots__ = ("_made", "_value")
    _value: Any
    #: Parts that were asked for, by name: there from the start, so that threads share it.
    _made: dict[str, Any]
    _members: ClassVar[tuple[Member | Part, ...]] = ()
    _also_known: ClassVar[frozenset[str]] = frozenset()
    _shown: ClassVar[tuple[str, ...]] = ()
    _shape: ClassVar[Shape]
    _has_parts: ClassVar[bool]
    #: How a result is changed after all, for messages.
    _copied_by: ClassVar[str] = "json() gives a copy"

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
        raise AttributeError(f"a {type(self).__name__} cannot be changed; {self._copied_by}")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a {type(self).__name__} cannot be changed; {self._copied_by}")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return bool(self._value == other._value)

    def __hash__(self) -> int:
        return hash((type(self), frozenset(_scalars(self._value))))

    def __repr__(self) -> str:
        if not hasattr(self, "_value"):
            # In the frames of a failed `__init__`, which tools print with their variables.
            return f"<{type(self).__name__} of an answer that is none>"
        shown_members = ", ".join(f"{name}={shown(getattr(self, name))}" for name in self._shown)
        return redact(f"{type(self).__name__}({shown_members})")

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self._value,)


def _scalars(value: dict[str, Any]) -> list[tuple[str, Any]]:
    """What a hash may look at: values that hash alike when they are equal."""
    return [(name, one) for name, one in value.items() if not isinstance(one, (dict, list))]


class Response(Result):
    """A whole answer, and how it came about. Base class."""

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

    @classmethod
    def of_answer(cls, answer: Answer) -> Self:
        """Decodes an answer; raises what `decode` raises."""
        return cls.of_value(parsed(answer.body), answer, answer.body)

    @classmethod
    def of_value(cls, value: Any, answer: Answer, raw: bytes = b"", *, path: str = "") -> Self:
        """The result that a parsed answer, or a part of one, is; raises what `decode` raises."""
        made = cls(value, raw, path=path)
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

    @property
    def raw(self) -> bytes:
        """The bytes as they came; empty for what was part of a larger answer."""
        return self._raw

    def __reduce__(self) -> tuple[Any, ...]:
        return restored, (type(self), self._value, self._raw, self._answer)


def restored(kind: type[ResponseT], value: Any, raw: bytes, answer: Answer | None) -> ResponseT:
    """An answer out of a pickle."""
    made = kind(value, raw)
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


def keep(result: Result, name: str, value: object) -> None:
    """Sets an attribute of a result that is being made."""
    object.__setattr__(result, name, value)
