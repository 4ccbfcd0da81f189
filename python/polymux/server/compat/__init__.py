"""Other ways into the server than its own interface, each on where it is wanted."""
