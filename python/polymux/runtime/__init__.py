"""The composition root: one registry of engines and upstreams, and the services built from settings."""
