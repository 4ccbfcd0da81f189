"""Engines that run operations on this machine, each in a supervised child process.

Engines do not depend on HTTP or jobs: they load models and run requests. They stop with their
process.
"""
