"""Servers of others that do operations for this one: what is asked of them, and how they fail."""
