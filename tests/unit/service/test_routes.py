"""Which backend a chat's model leads to."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from polymux import errors
from polymux.service.routes import Route, Routes
from support.services import Scripted, chat_of


def backend(name: str, models: tuple[str, ...] | None = None) -> Scripted:
    made = Scripted(name)
    made.models = models
    return made


def led(routes: Routes, model: str) -> list[str]:
    work = chat_of()
    return [one.name for one in routes.backends_of(replace(work, model=model))]


def test_what_names_a_model_gets_it() -> None:
    """Before those that take any name, each kind in its order; the default is the first of all."""
    names = {"any": None, "fast": ("fast",), "other": None, "both": ("fast", "slow")}
    routes = Routes([backend(name, models) for name, models in names.items()])
    assert led(routes, "fast") == ["fast", "both", "any", "other"]
    assert led(routes, "slow") == ["both", "any", "other"]
    assert led(routes, "unheard") == ["any", "other"]
    assert led(routes, "default") == list(names)
    work = replace(chat_of(), model="slow")
    behind = routes.behind(routes.backends["both"], work)
    assert [one.name for one in behind] == ["any", "other"]


def test_an_operation_that_the_configuration_leads_nowhere() -> None:
    """No advice to install what is there."""
    routes = Routes([backend("any")], {"free_chat": []})
    for ask in (
        lambda: routes.check_operation("free_chat"),
        lambda: routes.backends_of(replace(chat_of(), operation="free_chat")),
    ):
        with pytest.raises(errors.NoBackendError, match=r"routes.free_chat .* is empty") as told:
            ask()
        assert "install" not in str(told.value)


def test_the_models_of_a_route_are_names_too() -> None:
    wanted = [Route("any"), Route("other", ("fast",))]
    routes = Routes([backend("any"), backend("other")], {"chat": wanted})
    assert led(routes, "fast") == ["other", "any"]
    assert asyncio.run(routes.listed_chat_models()) == ["fast"]


def test_a_model_that_nothing_has() -> None:
    routes = Routes([backend("fast", ("fast",))])
    with pytest.raises(errors.BadRequestError, match="slow"):
        led(routes, "slow")
