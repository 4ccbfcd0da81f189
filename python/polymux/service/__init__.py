"""The service: any operation, run by an engine of this machine or handed to an upstream.

No HTTP in it. `polymux.Local` and the server are its two doors; what both decide alike, admission,
jobs, files, is decided here.
"""
