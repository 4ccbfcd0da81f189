"""Downloads from web pages, in sandboxed processes behind an SSRF-checking proxy."""
