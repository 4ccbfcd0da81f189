"""The server: overhead, streams, refusals, deadlines, uploads, memory, and models behind it."""
