"""Floors: the minimum cost of a request and of a token, without a client library."""
