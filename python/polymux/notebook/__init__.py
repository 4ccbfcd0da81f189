"""polymux in notebooks: bars for what takes time, a cell that asks, results that show themselves.

Nothing here is imported before it is used, and IPython, tqdm and ipywidgets only where they are
wanted: the extra ``notebook`` installs them.

Example:
    >>> import polymux
    >>> from polymux.notebook import progress
    >>> song = polymux.convert_to_mp3("song.flac", on_progress=progress("converting"))
    >>> "<audio controls" in song._repr_html_()
    True
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux.notebook.progress_bars import Bar, progress

if TYPE_CHECKING:
    from IPython.core.interactiveshell import InteractiveShell

__all__ = ["Bar", "load_ipython_extension", "progress"]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """Gives a notebook the cell magic ``%%polymux``; ``%load_ext polymux.notebook`` calls it.

    ``%%polymux [--model M] [--system S] [--server URL]`` asks a chat model what the rest of the
    cell says, and shows the answer as it comes. Without ``--server`` the server is looked for as
    `polymux.Client` does; the key always is, so that none stands in a notebook.

    Args:
        shell: The notebook's IPython.

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
    from polymux.notebook.magic import ask

    manager = shell.magics_manager
    manager.register_function(ask(shell), magic_kind="cell", magic_name="polymux")
