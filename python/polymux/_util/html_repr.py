"""Results that show themselves in notebooks as a table of what they hold."""

from __future__ import annotations

from typing import Any, ClassVar

__all__ = ["HtmlReprMixin"]


class HtmlReprMixin:
    """Shows its fields. Base class of results; of one that is no dataclass, those in `_shown`."""

    __slots__ = ()
    _shown: ClassVar[tuple[str, ...]] = ()

    def _repr_html_(self) -> str:
        """A table for notebooks."""
        # Here: it takes a quarter of a first request, and answers are no dataclasses.
        from dataclasses import fields

        from polymux.notebook.cards import facts

        own: Any = self
        return facts(self, self._shown or [one.name for one in fields(own)])
