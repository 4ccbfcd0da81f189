"""The HTTP client: synchronous and asynchronous."""
