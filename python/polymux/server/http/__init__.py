"""The HTTP/1.1 protocol, bodies, responses and connection limits."""
