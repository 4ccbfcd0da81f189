"""A Python package is installed, but a shared library that it needs is missing."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING

import pytest
from polymux.engines.chat.engine import ChatEngine
from polymux.errors import NoBackendError
from support.commands import call

if TYPE_CHECKING:
    from pathlib import Path

MISSING = "libgomp.so.1: cannot open shared object file: No such file or directory"


@pytest.fixture
def packages(tmp_path: Path) -> Path:
    folder = tmp_path / "packages"
    folder.mkdir()
    (folder / "xllamacpp.py").write_text(f"raise ImportError({MISSING!r})\n")
    return folder


def test_doctor_names_the_system_package(packages: Path, tmp_path: Path) -> None:
    found = json.loads(call("doctor", "--json", cwd=tmp_path, PYTHONPATH=str(packages)).stdout)
    chat = found["engines"]["chat"]
    assert not chat["ok"]
    assert MISSING in chat["problem"]
    assert chat["remedy"] == "apt install libgomp1"


def test_the_error_of_the_engine_names_it_too(
    packages: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(packages)
    monkeypatch.delitem(sys.modules, "xllamacpp", raising=False)
    with pytest.raises(NoBackendError, match=r"libgomp\.so\.1.*apt install libgomp1"):
        ChatEngine().load({})
