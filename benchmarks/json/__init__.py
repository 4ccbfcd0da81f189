"""Request bodies: writing JSON from Python objects, and validating received JSON."""
