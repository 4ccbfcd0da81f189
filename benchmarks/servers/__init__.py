"""Servers that the benchmarks of clients talk to."""
