"""Settings that no other test comes by."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.errors import InvalidRequestError
from polymux.server.app import create_app
from polymux.server.doors.settings import DoorSettings
from polymux.server.settings import ServerSettings, StoreSettings, read_settings
from support.commands import run

if TYPE_CHECKING:
    from pathlib import Path


def written(folder: Path, text: str) -> Path:
    path = folder / "polymux.toml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "wanted", "there"),
    [
        ("", None, True),
        ("[doors]\n", None, True),
        ("[doors]\nopenai = false\n", False, False),
        ("host = '0.0.0.0'\n", None, False),
        ("public_url = 'https://tools.example'\n", None, False),
        ("public_url = 'https://tools.example'\n[doors]\nopenai = true\n", True, True),
    ],
)
def test_the_door_of_openai(tmp_path: Path, text: str, wanted: bool | None, there: bool) -> None:
    """Where nobody but this machine is meant it is open, and elsewhere where it is wanted."""
    settings = read_settings(written(tmp_path, text))
    assert settings.doors.openai is wanted
    assert settings.openai_door is there


@pytest.mark.parametrize(("wanted", "there"), [(None, False), (True, True)])
def test_the_door_on_other_addresses(tmp_path: Path, wanted: bool | None, there: bool) -> None:
    settings = ServerSettings(
        public_url="https://tools.example",
        doors=DoorSettings(openai=wanted),
        store=StoreSettings(tmp_path / "s"),
    )
    paths = {route.path for route in create_app(settings).routes}  # type: ignore[attr-defined]
    assert ("/v1/models" in paths) is there


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[doors]\nopenai = 1\n", "doors.openai=1: must be true or false"),
        ("[doors]\nopenai = 'yes'\n", "must be true or false"),
        ("[doors]\nopenia = true\n", "doors.openia is not known"),
        ("doors = true\n", "doors must be a table"),
    ],
)
def test_doors_that_are_none(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(InvalidRequestError, match=told):
        read_settings(written(tmp_path, text))


def test_the_command_knows_doors(tmp_path: Path) -> None:
    written(tmp_path, "[doors]\nopenai = false\n")
    run("config", "check", "polymux.toml", cwd=tmp_path)
    written(tmp_path, "[doors]\nopenai = 2\n")
    done = run("config", "check", "polymux.toml", cwd=tmp_path, code=None)
    assert done.returncode != 0
    assert b"doors.openai=2: must be true or false" in done.stdout + done.stderr
