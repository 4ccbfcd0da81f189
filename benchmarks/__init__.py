"""Benchmarks that compare polymux with other programs and libraries.

`README.md` explains the figures.
"""
