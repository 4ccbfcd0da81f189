"""Upstreams that speak the Replicate API."""
