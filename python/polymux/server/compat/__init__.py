"""Compatibility APIs, which the settings enable: OpenAI, Replicate and MCP."""
