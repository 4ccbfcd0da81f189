"""A pytest plugin that removes polymux's assertions, like ``python -OO``.

Use ``python -m pytest -p support.without_assertions ...``. The tests keep their assertions. Child
processes get ``PYTHONOPTIMIZE=2``.
"""

from __future__ import annotations

import dis
import os
import sys
from importlib.machinery import SourceFileLoader
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import CodeType

    import pytest

_LEVEL = 2
_RAISES = dis.opmap["LOAD_ASSERTION_ERROR"]
_whole = SourceFileLoader.get_code


def _stripped(self: SourceFileLoader, fullname: str) -> CodeType | None:
    if fullname.partition(".")[0] != "polymux":
        return _whole(self, fullname)
    path = self.get_filename(fullname)
    return compile(self.get_data(path), path, "exec", dont_inherit=True, optimize=_LEVEL)


def assertions(code: CodeType) -> int:
    """The number of assertions in a module and everything defined in it."""
    found = code.co_code[::2].count(_RAISES)
    inner = (one for one in code.co_consts if hasattr(one, "co_consts"))
    return found + sum(assertions(one) for one in inner)


def _begin() -> None:
    loaded = [name for name in sys.modules if name.partition(".")[0] == "polymux"]
    assert not loaded, loaded
    SourceFileLoader.get_code = _stripped  # type: ignore[method-assign]
    os.environ["PYTHONOPTIMIZE"] = str(_LEVEL)


_begin()  # Plugins are imported before any conftest.py.


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Check that loaded modules have no assertions, although their sources have some."""
    modules = [one for name, one in sys.modules.items() if name.startswith("polymux.")]
    assert len(modules) > 20
    functions = 0
    in_sources = 0
    for module in modules:
        path = getattr(module, "__file__", None)
        if path is None or not path.endswith(".py"):
            continue
        if in_sources <= 3:  # Three are enough.
            with open(path, "rb") as file:  # noqa: PTH123
                in_sources += assertions(compile(file.read(), path, "exec", optimize=0))
        for one in vars(module).values():
            for member in (one, *getattr(one, "__dict__", {}).values()):
                code = getattr(member, "__code__", None)
                if code is not None and code.co_filename == path:
                    functions += 1
                    assert not assertions(code), code
    assert functions > 500
    assert in_sources > 3
