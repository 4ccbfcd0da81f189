"""The models of the engines: the registry of models to download, and the installed models.

This package is internal and may change. Its public interfaces are `polymux models`, the server
settings and `Local`. docs/reference/models.md is the user documentation.
"""
