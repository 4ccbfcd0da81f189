"""Helpers of the test-suite: real media files, references made by real programs, parsers."""
