"""API keys, authentication and rate limits."""
