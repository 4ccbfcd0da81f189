"""Image and video generation with stable-diffusion.cpp and quantized weights.

`engine` runs in a separate process, `models` describes files of models, and `backend` is the
service's interface. The engine in `polymux.engines.diffusion` needs more memory, but runs more
kinds of models.
"""
