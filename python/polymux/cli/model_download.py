"""`polymux models pull` and `add`: what is asked, what is shown meanwhile, what is printed."""

from __future__ import annotations

import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING, Self

from polymux._util.text import display_name, size
from polymux.cli import exit_codes
from polymux.cli.errors import say
from polymux.cli.models import described
from polymux.cli.terminal import transfer_line, write_json, write_line
from polymux.errors import InputNotFoundError, InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.models import catalogue, download, import_local
from polymux.models.errors import ModelError
from polymux.models.families import checked_name
from polymux.models.repositories import resolved

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from types import TracebackType

    from polymux.cli.terminal import Screen
    from polymux.models.catalogue import Model
    from polymux.models.folder import Installed, ModelsFolder

_DRAW_EVERY_S = 0.1
_HEX_DIGITS = 64


class Line:
    """A progress line, drawn where standard error is a terminal, and gone when its block ends.

    Args:
        screen: Where it is drawn.
        verb: What was done with the bytes.
    """

    def __init__(self, screen: Screen, verb: str = "fetched") -> None:
        self._screen = screen
        self._verb = verb
        self._what = ""
        self._began = 0.0
        self._before = 0
        self._drawn = 0.0

    def __call__(self, what: str, done: int, total: int | None) -> None:
        now = monotonic()
        # What is begun anew is so in the eyes of whoever watches, too.
        if what != self._what or done < self._before:
            self._what, self._began, self._before, self._drawn = what, now, done, 0.0
        if now - self._drawn >= _DRAW_EVERY_S:
            self._drawn = now
            line = transfer_line(self._verb, done, total, now - self._began, self._before)
            self._screen.draw(f"{line}  {display_name(what)}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._screen.clear()


def wanted(name: str) -> Model:
    """The model of that name in the catalogue.

    Raises:
        InputNotFoundError: There is none; the message names those that there are.
    """
    found = catalogue.find(name)
    if found is None:
        known = ", ".join(one.name for one in catalogue.all_models())
        raise InputNotFoundError(
            f"there is no model {display_name(name)}: the catalogue has {known}, and "
            "'polymux models add' takes others"
        )
    return found


def agreed(question: str, screen: Screen, done: str) -> bool:
    """Asks on the terminal.

    Raises:
        InvalidRequestError: There is none to ask on.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise InvalidRequestError(f"nothing was {done}: there is no terminal to ask on; give --yes")
    screen.clear()
    sys.stderr.write(f"{question} [y/N] ")
    sys.stderr.flush()
    if sys.stdin.readline().strip().lower() in ("y", "yes"):
        return True
    say(f"nothing was {done}")
    return False


def pull(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    """Fetches models of the catalogue; the exit code."""
    models = [wanted(name) for name in dict.fromkeys(options.names)]
    missing = []
    for model in models:
        found = folder.find(model.name)
        if found is None:
            missing.append(model)
        elif found.problem:
            raise ModelError(
                f"{model.name} is here and damaged ({found.problem}): "
                f"'polymux models rm {model.name}' removes it, then pull it again"
            )
        else:
            screen.say(f"{model.name} is here already")
    policy = _policy(options.allow_host)
    for number, model in enumerate(missing):
        missing[number] = resolved(model, policy)
        # Whoever is asked must see what about.
        _tell(model, missing[number], screen.say if options.yes else screen.complain)
    question = "Fetch it, under this licence?" if len(missing) == 1 else "Fetch them?"
    if missing and not options.yes and not agreed(question, screen, "fetched"):
        return exit_codes.FAILURE
    for model in missing:
        _pull(model, folder, screen, policy)
    _print([folder.get(one.name) for one in models], options, folder, several=True)
    return exit_codes.SUCCESS


def _tell(known: Model, model: Model, show: Callable[[str], object]) -> None:
    show(f"{model.name}: {model.title}")
    show(f"  licence   {model.license} ({model.license_source})")
    if model.license_note:
        show(f"  note      {model.license_note}")
    show(f"  download  {size(model.download_bytes or 0)}; {size(model.bytes or 0)} on disk")
    for origin in model.origins:
        show(f"  from      {origin}")
    if not known.wanted:
        return
    pinned = {one.name for one in known.files}
    show("  hashes    as the repository tells them now, as nobody has noted them before:")
    for one in model.files:
        if one.name not in pinned:
            part = one.parts[0]
            digest = part.sha256 or f"git {part.source.git_oid}"
            made = " (a pickle; it is converted to safetensors)"
            show(f"            {digest}  {one.name}{made if one.converted else ''}")


def _policy(hosts: Sequence[str]) -> FetchPolicy:
    return FetchPolicy(allowed_hosts=tuple(hosts))


def _pull(model: Model, folder: ModelsFolder, screen: Screen, policy: FetchPolicy) -> Installed:
    try:
        with Line(screen) as line:
            return download.pull(model, folder, policy=policy, on_progress=line)
    except BaseException:
        if folder.is_begun(model.name):
            screen.say("what was fetched is kept: the same command goes on with it")
        raise


def add(options: argparse.Namespace, folder: ModelsFolder, screen: Screen) -> int:
    """Names the user's own files, or fetches one; the exit code."""
    checked_name(options.name)
    if (options.path is None) == (options.url is None):
        raise InvalidRequestError("give either a file or folder, or --url")
    if options.url is None:
        if options.sha256 is not None or options.allow_host:
            raise InvalidRequestError("--sha256 and --allow-host belong to --url")
        with Line(screen, "copied" if options.copy else "read") as line:
            made = import_local.add(
                options.name, Path(options.path), folder, family=options.family,
                license=options.license, copy=options.copy, on_progress=line,
            )  # fmt: skip
    else:
        _check_url(options)
        model = download.of_url(options.name, options.url, options.sha256, license=options.license)
        made = _pull(model, folder, screen, _policy(options.allow_host))
    _print([made], options, folder)
    return exit_codes.SUCCESS


def _check_url(options: argparse.Namespace) -> None:
    digits = (options.sha256 or "").lower()
    if len(digits) != _HEX_DIGITS or not set(digits) <= set("0123456789abcdef"):
        raise InvalidRequestError(
            "--url needs --sha256 with the 64 hexadecimal digits of the file's SHA-256: whoever "
            "offers the file tells it"
        )
    if options.family not in (None, "chat"):
        raise InvalidRequestError(
            f"--url fetches one file, and a model for {options.family} is more than one: fetch "
            "them into a folder, and give that"
        )
    if options.copy:
        raise InvalidRequestError("--copy is for files that are here")


def _print(
    made: list[Installed], options: argparse.Namespace, folder: ModelsFolder, *,
    several: bool = False,
) -> None:  # fmt: skip
    if options.as_json:
        plain = [described(folder, one, catalogue.find(one.name), whole=True) for one in made]
        write_json(plain if several else plain[0])
        return
    for one in made:
        write_line(display_name(str(one.folder)))
