"""Conversion to MP3 against the programs and packages people use for it today."""
