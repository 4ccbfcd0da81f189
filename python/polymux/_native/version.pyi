# Written by the build from pyproject.toml, so that one number exists.

__version__: str
