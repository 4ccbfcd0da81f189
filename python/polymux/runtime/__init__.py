"""Composition root: creates services with their engines and upstreams from settings."""
