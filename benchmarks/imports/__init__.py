"""Cost of importing a client, creating it, and sending its first request."""
