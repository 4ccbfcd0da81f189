"""Engine processes: protocol, child, supervisor, sandbox."""
