"""The fields of a request in OpenAI's shape: each is taken once, and what is left is an error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._util.text import shown
from polymux.errors import InvalidRequestError
from polymux.service.errors import bad_request
from polymux.service.model import Upload

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from polymux.contract import CheckedRequest

_MAX_NAMED_FIELDS = 20
_MAX_PARAM_CHARACTERS = 100


class GivenFields:
    """What a request has, by name.

    Args:
        fields: Names and values. Null, and the empty text of a form, are as good as none; ``x[]``
            is ``x``.
    """

    def __init__(self, fields: Iterable[tuple[str, Any]]) -> None:
        self._left: dict[str, list[Any]] = {}
        for name, value in fields:
            if value is not None and value != "":
                self._left.setdefault(name.removesuffix("[]"), []).append(value)

    def one(self, name: str) -> Any:
        """A field's only value; None where there is none."""
        values = self._left.pop(name, [])
        if len(values) > 1:
            raise bad_request(f"{name}: is there more than once", name)
        return values[0] if values else None

    def text(self, name: str) -> str | None:
        value = self.one(name)
        if value is None or isinstance(value, str):
            return value
        what = "a file" if isinstance(value, Upload) else shown(value)
        raise bad_request(f"{name}: must be a text, not {what}", name)

    def texts(self, name: str) -> list[str]:
        values = self._left.pop(name, [])
        if all(isinstance(one, str) for one in values):
            return values
        raise bad_request(f"{name}: must be texts, not files", name)

    def file(self, name: str) -> Upload | None:
        value = self.one(name)
        if value is None or isinstance(value, Upload):
            return value
        raise bad_request(f"{name}: must be a file", name)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name) or default
        if value not in choices:
            raise bad_request(f"{name}={shown(value)}: this server has {', '.join(choices)}", name)
        return value

    def only(self, name: str, values: tuple[Any, ...] = (), *, why: str) -> None:
        """Takes a field that may say what happens anyway, and nothing else.

        Args:
            name: The field.
            values: What it may be. Default: nothing at all.
            why: What this server does, for people.
        """
        if any(one.startswith(f"{name}[") for one in self._left):
            # The members of an object, as forms have them.
            raise bad_request(f"{name}: {why}", name)
        value = self.one(name)
        fits = any(value == one and type(value) is type(one) for one in values)
        if value is not None and not fits:
            what = "a file" if isinstance(value, Upload) else shown(value)
            raise bad_request(f"{name}={what}: {why}", name)

    def left(self, known: Iterable[str] = ()) -> list[tuple[str, Any]]:
        """What nobody has taken, as long as it is known."""
        rest, self._left = self._left, {}
        unknown = [name for name in rest if name not in frozenset(known)]
        if unknown:
            names = ", ".join(shown(one) for one in unknown[:_MAX_NAMED_FIELDS])
            raise bad_request(
                f"{names}: this server does not know that field here",
                unknown[0][:_MAX_PARAM_CHARACTERS],
            )
        return [(name, value) for name, values in rest.items() for value in values]


def checked(
    operation: str,
    fields: Iterable[tuple[str, Any]],
    model: str,
    names: Mapping[str, str],
) -> CheckedRequest:
    """Has the contract check what a request in OpenAI's shape means.

    Args:
        operation: Such as ``"transcribe"``.
        fields: The operation's, as a form has them.
        model: The operation's selector.
        names: What the operation's fields are called in OpenAI's shape, where that differs.
    """
    try:
        return contract.read_form(operation, fields, model=model)
    except InvalidRequestError as error:
        if not error.problems:
            raise
        told = [
            f"{names[one.field]}: {one.message}" if one.field in names else one.message
            for one in error.problems
        ]
        first = error.problems[0].field
        raise bad_request(
            "; ".join(told[:_MAX_NAMED_FIELDS]), names.get(first, first) or None
        ) from None
