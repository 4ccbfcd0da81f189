"""Bad input: what hostile files and failing systems may not do."""
