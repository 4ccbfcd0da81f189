"""Routes of the server's API."""
