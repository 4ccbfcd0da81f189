"""Streams of tokens: many slow ones at once, open ones, cancelled ones, and a fast one."""
