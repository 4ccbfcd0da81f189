"""Upload of one large file in a form."""
