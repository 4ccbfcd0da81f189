"""Cost of a Ray cluster on a single machine."""
