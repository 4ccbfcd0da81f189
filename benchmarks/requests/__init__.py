"""Small requests: one after another, many at once, and over new TLS connections."""
