"""Servers for the benchmarks of clients."""
