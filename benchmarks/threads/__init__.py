"""Chat beside other processes."""
