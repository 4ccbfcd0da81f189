"""The service: runs operations on local engines or upstreams; manages admission, jobs and files.

Contains no HTTP: `polymux.Local` and the server both use it.
"""
