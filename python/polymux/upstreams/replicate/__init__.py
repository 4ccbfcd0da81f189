"""Upstreams that speak the Replicate API."""

from polymux.upstreams.replicate.backend import ReplicateUpstream

__all__ = ["ReplicateUpstream"]
