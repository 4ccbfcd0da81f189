"""Diffusion: polymux's engine against plain diffusers, with the same weights in one process."""
