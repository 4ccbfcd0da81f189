"""The server: overhead, streams, rejections, deadlines, uploads, memory, and models."""
