"""Pictures, detail, video and music by diffusion, on torch and diffusers, in a process of its own.

`engine` is what the process runs, `manager` holds the models and the device; there is a module for
each operation. `backend` is what the service sees.
"""
