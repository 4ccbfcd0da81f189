"""Engines: what does the work on this machine, each in a child process that is watched.

An engine knows neither HTTP nor jobs: it loads, runs, and is thrown away with its process.
"""
