"""Upstreams: servers that run operations for this one, and the mapping of their errors."""
