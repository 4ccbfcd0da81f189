"""Servers on loopback that the tests of the client talk to; nothing of polymux is used in them."""
