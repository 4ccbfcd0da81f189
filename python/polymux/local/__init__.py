"""The operations without a server, on engines of this machine."""
