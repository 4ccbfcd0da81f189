"""Speech-to-text engine."""
