"""Request bodies: writing JSON from Python objects, and checking JSON that was received."""
