"""Failures of a catalogue of songs."""

from polymux.errors._base import PolymuxError


class CatalogueError(PolymuxError):
    """A catalogue of songs cannot be opened, read or written.

    Attributes:
        code: ``catalogue_failed``; ``catalogue_busy`` where another process writes to it,
            ``catalogue_damaged`` where its database is no longer whole, ``storage_full`` where its
            disk is full.

    Example:
        >>> import polymux
        >>> polymux.CatalogueError("its disk is full", code="storage_full").code
        'storage_full'
    """

    code = "catalogue_failed"
