"""The URL fetcher with SSRF protection."""

from polymux.fetch.fetcher import FetchLimits, FetchPolicy, fetch

__all__ = ["FetchLimits", "FetchPolicy", "fetch"]
