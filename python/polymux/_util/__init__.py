"""General helpers that every layer may import."""
