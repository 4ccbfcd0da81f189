"""Notebook support: progress bars, a cell magic for chats, and display of results.

Nothing here is imported before it is used. IPython, tqdm and ipywidgets are optional; install them
with the extra ``notebook``.

Example:
    >>> import polymux
    >>> from polymux.notebook import progress
    >>> song = polymux.convert_to_mp3("song.flac", on_progress=progress("converting"))
    >>> "<audio controls" in song._repr_html_()
    True
"""

from __future__ import annotations

import argparse
import shlex
from contextlib import nullcontext
from time import monotonic
from typing import TYPE_CHECKING, Any, NoReturn

from polymux._util.html_repr import markdown
from polymux.errors import PolymuxError
from polymux.notebook.progress_bars import Bar, progress

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

    from polymux.client.chat_stream import ChatStream
    from polymux.local.sync_local import Local

__all__ = ["Bar", "load_ipython_extension", "progress"]

_BETWEEN_UPDATES_S = 0.1
_HELP = (
    "usage: %%polymux [--model M] [--system S] [--local | --server URL], with the question in the "
    "lines below"
)


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Register the cell magic ``%%polymux``; ``%load_ext polymux.notebook`` calls it.

    ``%%polymux [--model M] [--system S] [--local | --server URL]`` sends the rest of the cell to a
    chat model and streams the answer. With ``--local``, or ``local = true`` in the configuration
    file, an engine on this machine answers. Otherwise, without ``--server``, the server is
    configured as in `polymux.Client`. The API key is never an option: it would be stored in the
    notebook.

    Args:
        shell: The notebook's IPython shell.

    Example:
        >>> from IPython.core.interactiveshell import InteractiveShell
        >>> from polymux.notebook import load_ipython_extension
        >>> from traitlets.config import Config
        >>> quiet = Config({"HistoryManager": {"enabled": False}})
        >>> shell = InteractiveShell(ipython_dir="ipython", config=quiet)
        >>> load_ipython_extension(shell)
        >>> shell.find_cell_magic("polymux").__name__
        'polymux'
    """
    from IPython.core.error import UsageError

    engines = _Engines()

    def polymux(line: str, cell: str) -> None:
        """Ask a chat model: %%polymux [--model M] [--system S] [--local | --server URL]."""
        try:
            options = _words().parse_args(shlex.split(line))
        except ValueError as error:
            raise UsageError(f"{error}. {_HELP}") from None
        question = cell.strip()
        if not question:
            raise UsageError(f"missing question. {_HELP}")
        messages = [{"role": "user", "content": question}]
        if options.system:
            messages.insert(0, {"role": "system", "content": options.system})
        try:
            _ask(shell, options, messages, engines)
        except PolymuxError as error:
            # Show only the message, without a traceback.
            raise UsageError(f"{type(error).__name__}: {error}") from None

    manager = shell.magics_manager
    manager.register_function(polymux, magic_kind="cell", magic_name="polymux")


class _Answer:
    """The answer so far, for display in a notebook.

    Attributes:
        text: The received text.
    """

    def __init__(self, text: str) -> None:
        self.text = text

    def _repr_markdown_(self) -> str:
        """Return the text as safe Markdown."""
        return markdown(self.text)

    def __repr__(self) -> str:
        return self.text


class _Words(argparse.ArgumentParser):
    """Parser of the options after the magic's name."""

    def error(self, message: str) -> NoReturn:
        """Raise an exception instead of ending the process."""
        raise ValueError(message)


def _words() -> _Words:
    words = _Words(prog="%%polymux", add_help=False, allow_abbrev=False)
    words.add_argument("--model")
    words.add_argument("--system")
    where = words.add_mutually_exclusive_group()
    where.add_argument("--server")
    where.add_argument("--local", action=argparse.BooleanOptionalAction)
    return words


class _Engines:
    """The local engines of a notebook. They stay loaded between cells, and end with the kernel."""

    def __init__(self) -> None:
        self._local: Local | None = None

    def get(self) -> Local:
        from polymux.local.sync_local import Local

        self._local = self._local or Local()
        return self._local


def _ask(
    shell: Any, options: argparse.Namespace, messages: list[dict[str, str]], engines: _Engines
) -> None:
    from polymux.client.sync_client import Client
    from polymux.config import prefers_local

    is_local = options.local
    if is_local is None:
        is_local = options.server is None and prefers_local()
    with (
        nullcontext(engines.get()) if is_local else Client(options.server) as client,
        client.chat(messages, model=options.model, stream=True) as stream,
    ):
        if getattr(shell, "kernel", None) is None:
            _print(stream)
        else:
            _show(stream)


def _print(stream: ChatStream) -> None:
    from polymux.cli.terminal import harmless

    for text in stream.texts():
        print(harmless(text), end="", flush=True)  # noqa: T201 - output of the magic
    print()  # noqa: T201


def _show(stream: ChatStream) -> None:
    from IPython.display import display

    place: Any = display(_Answer(""), display_id=True)  # type: ignore[no-untyped-call]
    shown = monotonic()
    try:
        for _ in stream.texts():
            if monotonic() - shown >= _BETWEEN_UPDATES_S:
                place.update(_Answer(stream.text))
                shown = monotonic()
    finally:
        # Also show the last text after Ctrl-C or a lost connection.
        place.update(_Answer(stream.text))
