"""Tests with real files and real programs."""
