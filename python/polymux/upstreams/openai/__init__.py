"""Upstreams that speak the OpenAI API."""

from polymux.upstreams.openai.backend import OpenAIUpstream

__all__ = ["OpenAIUpstream"]
