"""The code generator of `scripts/generate`."""
