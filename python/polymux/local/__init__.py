"""Run the operations without a server, on local engines."""
