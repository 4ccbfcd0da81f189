"""Models of the engines: which there are to pull, which are installed, and where they lie.

This is an inner face of the house, whose outer ones are `polymux models`, the settings of servers
and `Local`: it may change. docs/reference/models.md says what users see.
"""
