"""Upscaling by tiled diffusion."""
