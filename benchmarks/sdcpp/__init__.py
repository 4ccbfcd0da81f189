"""An image on a laptop: stable-diffusion.cpp with quantized weights, and diffusers on torch."""
