"""Tests that use real files and real programs."""
