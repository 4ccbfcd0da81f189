"""Chooses, plants and hunts faults; see scripts/plant-faults."""
