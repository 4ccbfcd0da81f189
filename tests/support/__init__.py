"""Helpers of the test suite: media files, references from real programs, parsers."""
