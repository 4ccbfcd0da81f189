"""Servers on loopback for tests of the client. They share no code with polymux."""
