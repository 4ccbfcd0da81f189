"""Upstreams that speak the OpenAI API."""
