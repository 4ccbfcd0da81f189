"""Cost of polymux as a gateway in front of another server."""
