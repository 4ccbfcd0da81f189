"""What importing a client costs, and making the first one, and its first request."""
