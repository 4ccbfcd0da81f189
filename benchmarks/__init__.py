"""Measurements of polymux against named peers, as ratios. `README.md` tells how to read them."""
