"""Media engine: opens untrusted files in a sandboxed process."""
