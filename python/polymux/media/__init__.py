"""Conversion, probing, remuxing and decoding of media files."""
