"""Helpers without a subject of their own that every layer may import."""
