"""Conversion to MP3, compared with common programs and packages."""
