"""The store of a `Local`: in a folder of the user's, what it keeps has no end."""

from __future__ import annotations

import math
import threading
from typing import TYPE_CHECKING

from polymux.service.model import LOCAL
from polymux.service.store import Store

if TYPE_CHECKING:
    from pathlib import Path

_CAP_BYTES = 100 << 30
_OWN_LIFE_S = 7 * 86400.0


class LocalStore(Store):
    """A store that several may close at once.

    Args:
        folder: Made where there is none.
        is_users: Whether it is the user's: results stay until they are removed by hand. Else they
            go with the folder, or after seven days.

    Raises:
        StoreError: Another has it open; it is damaged; it cannot be written.
    """

    def __init__(self, folder: Path, *, is_users: bool) -> None:
        """Opens it."""
        self._one_closes = threading.Lock()
        life_s = math.inf if is_users else _OWN_LIFE_S
        super().__init__(folder, cap_bytes=_CAP_BYTES, life_s=life_s)
        if is_users:
            try:
                self._keep()
            except BaseException:
                self.close()
                raise

    def _keep(self) -> None:
        """Takes the end from what earlier releases have written down with one.

        Nobody has swept yet, so it holds for files whose time is over as well. What a server keeps
        in the same folder has its own. The catalogue's thread has nothing to do yet.
        """
        self._database.execute(
            "UPDATE files SET expires_at = ? WHERE owner = ? AND expires_at < ?",
            (math.inf, LOCAL.id, math.inf),
        )

    def close(self) -> None:
        """Finishes what is being written, and lets the next one in. Any number of times.

        A loop that ends leaves the thread behind on which it was doing this, and does it again.
        """
        with self._one_closes:
            super().close()
