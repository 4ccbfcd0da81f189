"""Hostile files and failing systems."""
