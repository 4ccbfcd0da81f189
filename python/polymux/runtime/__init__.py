"""The composition root: one registry of engines and upstreams; services built from settings."""
