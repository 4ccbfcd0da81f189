"""The URL fetcher with SSRF protection."""
