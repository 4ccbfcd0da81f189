"""A lock for imports during calls. A fork waits until it is free.

A child process inherits the lock of a module that another thread of its parent is importing. It
would wait for that lock forever.

Example:
    >>> with IMPORTING:
    ...     from polymux.client.remote_file import RemoteFile
"""

import os
from _thread import RLock

IMPORTING = RLock()
os.register_at_fork(
    before=IMPORTING.acquire,
    after_in_parent=IMPORTING.release,
    after_in_child=IMPORTING.release,
)
