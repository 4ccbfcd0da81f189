"""Small requests: sequential, concurrent, and over new TLS connections."""
