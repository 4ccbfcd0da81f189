"""Image, video and music generation with torch and diffusers, in a separate process.

`engine` runs in the process, and `pipelines` manages models and the device. Each operation has a
module. `backend` is the service's interface.
"""
