"""Diffusion: our engine against plain diffusers, on the same weights, in one process."""
