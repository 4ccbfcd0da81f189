"""Fields of a request in OpenAI's format: unknown or repeated fields are errors."""

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
    """The fields of a request by name. Each method consumes a field.

    Args:
        fields: Names and values. Ignores nulls and empty strings; ``x[]`` means ``x``.
    """

    def __init__(self, fields: Iterable[tuple[str, Any]]) -> None:
        self._left: dict[str, list[Any]] = {}
        for name, value in fields:
            if value is not None and value != "":
                self._left.setdefault(name.removesuffix("[]"), []).append(value)

    def one(self, name: str) -> Any:
        """Return the only value of a field, or None."""
        values = self._left.pop(name, [])
        if len(values) > 1:
            raise bad_request(f"{name}: sent more than once", name)
        return values[0] if values else None

    def text(self, name: str) -> str | None:
        value = self.one(name)
        if value is None or isinstance(value, str):
            return value
        what = "a file" if isinstance(value, Upload) else shown(value)
        raise bad_request(f"{name}: must be a string (got {what})", name)

    def texts(self, name: str) -> list[str]:
        values = self._left.pop(name, [])
        if all(isinstance(one, str) for one in values):
            return values
        raise bad_request(f"{name}: must be a string, not a file", name)

    def file(self, name: str) -> Upload | None:
        value = self.one(name)
        if value is None or isinstance(value, Upload):
            return value
        raise bad_request(f"{name}: must be a file (got {shown(value)})", name)

    def choice(self, name: str, choices: tuple[str, ...], default: str) -> str:
        value = self.text(name) or default
        if value not in choices:
            raise bad_request(
                f"{name}={shown(value)}: not supported (supported: {', '.join(choices)})", name
            )
        return value

    def only(self, name: str, values: tuple[Any, ...] = (), *, why: str) -> None:
        """Consume a field that must be missing or have one of the values.

        Args:
            name: The field.
            values: Accepted values. Default: the field must be missing.
            why: Message for other values.
        """
        if any(one.startswith(f"{name}[") for one in self._left):
            # Forms contain the members of an object as ``name[member]``.
            raise bad_request(f"{name}: {why}", name)
        value = self.one(name)
        fits = any(value == one and type(value) is type(one) for one in values)
        if value is not None and not fits:
            what = "a file" if isinstance(value, Upload) else shown(value)
            raise bad_request(f"{name}={what}: {why}", name)

    def left(self, known: Iterable[str] = ()) -> list[tuple[str, Any]]:
        """Return the remaining fields, which must be in `known`."""
        rest, self._left = self._left, {}
        unknown = [name for name in rest if name not in frozenset(known)]
        if unknown:
            names = ", ".join(shown(one) for one in unknown[:_MAX_NAMED_FIELDS])
            raise bad_request(
                f"{names}: unknown field{'' if len(unknown) == 1 else 's'}",
                unknown[0][:_MAX_PARAM_CHARACTERS],
            )
        return [(name, value) for name, values in rest.items() for value in values]


def checked(
    operation: str,
    fields: Iterable[tuple[str, Any]],
    model: str,
    names: Mapping[str, str],
) -> CheckedRequest:
    """Check a request in OpenAI's format against the contract.

    Args:
        operation: Such as ``"transcribe"``.
        fields: Fields of the operation, as in a form.
        model: Model selector of the operation.
        names: OpenAI's names of the operation's fields, if different.
    """
    try:
        return contract.read_form(operation, fields, model=model)
    except InvalidRequestError as error:
        if not error.problems:
            raise
        messages = [
            f"{names[one.field]}: {one.message}" if one.field in names else one.message
            for one in error.problems
        ]
        first = error.problems[0].field
        raise bad_request(
            "; ".join(messages[:_MAX_NAMED_FIELDS]), names.get(first, first) or None
        ) from None
