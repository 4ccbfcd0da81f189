"""Members of answers: what each must be, checked when it is decoded, read where it is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import shown
from polymux.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.client.responses._base import Result

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
